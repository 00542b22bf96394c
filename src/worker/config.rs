use std::time::Duration;

use crate::{
    ids::WorkerId,
    options::{self, OptionError},
    store::{ClaimRequest, Retention, TickRequest},
};

/// All numbers of a worker. The builder documents them; here are their defaults and ranges.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) worker: WorkerId,
    pub(crate) concurrency: usize,
    pub(crate) claim_ttl: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) max_batch: usize,
    pub(crate) reap_interval: Duration,
    pub(crate) reap_batch: usize,
    pub(crate) crash_delay: Duration,
    pub(crate) retention: Retention,
    pub(crate) heartbeats: Heartbeats,
}

/// Where heartbeats are sent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heartbeats {
    /// A thread of their own, which a blocked runtime cannot stop.
    OwnThread,
    /// The worker's runtime: a simulation has only one thread, whose time it controls.
    #[cfg(feature = "testing")]
    WorkersRuntime,
}

const DAY: Duration = Duration::from_secs(24 * 3600);
const MILLI: Duration = Duration::from_millis(1);

impl Config {
    pub(crate) fn new() -> Self {
        Self {
            worker: WorkerId::unique(),
            concurrency: 100,
            claim_ttl: Duration::from_secs(30),
            poll_interval: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            max_batch: usize::from(ClaimRequest::MAX_WANT),
            reap_interval: Duration::from_secs(1),
            reap_batch: 100,
            crash_delay: Duration::from_secs(1),
            retention: Retention::default(),
            heartbeats: Heartbeats::OwnThread,
        }
    }

    /// How many tasks one call may claim: half of the slots, so that the store works on one half while the worker has the
    /// answers about the other. With all of them in one call each waits for the other.
    pub(crate) fn most_in_a_call(&self) -> usize {
        self.concurrency.div_ceil(2).min(self.max_batch)
    }

    pub(crate) fn check(&self) -> Result<(), OptionError> {
        options::number("concurrency", self.concurrency, 1, 100_000)?;
        options::number(
            "max_batch",
            self.max_batch,
            1,
            usize::from(ClaimRequest::MAX_WANT),
        )?;
        options::number("reap_batch", self.reap_batch, 1, TickRequest::MOST as usize)?;
        options::duration("claim_ttl", self.claim_ttl, 50 * MILLI, DAY)?;
        options::duration(
            "poll_interval",
            self.poll_interval,
            10 * MILLI,
            Duration::from_secs(5),
        )?;
        options::duration(
            "reap_interval",
            self.reap_interval,
            10 * MILLI,
            3600 * 1000 * MILLI,
        )?;
        options::duration("drain_timeout", self.drain_timeout, Duration::ZERO, DAY)?;
        options::duration("cancel_grace", self.cancel_grace, Duration::ZERO, DAY)?;
        options::duration("crash_delay", self.crash_delay, MILLI, 60_000 * MILLI)
    }

    /// How often claims are extended.
    pub(crate) fn heartbeat_interval(&self) -> Duration {
        self.claim_ttl / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // W02
    #[test]
    fn absurd_values_are_refused_with_what_is_allowed() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::new();
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert!(Config::new().check().is_ok());
        assert_eq!(
            refused(|c| c.claim_ttl = Duration::ZERO),
            "claim_ttl must be 50ms to 86400s, it is 0ns"
        );
        assert!(refused(|c| c.claim_ttl = Duration::MAX).contains("50ms to 86400s"));
        assert!(refused(|c| c.concurrency = 0).contains("1 to 100000"));
        assert!(refused(|c| c.poll_interval = Duration::ZERO).starts_with("poll_interval"));
        assert!(refused(|c| c.reap_interval = Duration::ZERO).starts_with("reap_interval"));
        assert!(refused(|c| c.max_batch = 257).starts_with("max_batch"));
        assert_eq!(
            refused(|c| c.reap_batch = 1001),
            "reap_batch must be 1 to 1000, it is 1001"
        );
    }

    // W01
    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let config = Config::new();
        assert_eq!(config.claim_ttl, Duration::from_secs(30));
        assert_eq!(config.heartbeat_interval(), Duration::from_secs(10));
        assert_eq!(config.concurrency, 100);
        assert_ne!(config.worker, Config::new().worker, "unique for each start");
    }
}
