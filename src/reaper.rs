//! Recovers what stopped workers held, and removes what is old.
//!
//! Every worker does this for itself. A [`Reaper`] of its own is for a process that runs no tasks: a page, a cron job,
//! or a test that wants to do one round by hand.

use std::{collections::BTreeSet, fmt, num::NonZeroU16, sync::Arc, time::Duration};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub use crate::options::OptionError;
use crate::{
    backoff::Backoff,
    ids::{Partition, WorkerId},
    options,
    rounds::{RoundSettings, Rounds},
    store::{IntoStore, Recovered, Recovery, Retention, Store, StoreError, TickReply, TickRequest},
};

/// What a [`Reaper`] did in one tick.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReapReport {
    /// Every task that was taken from a worker, oldest first in each partition.
    pub recovered: Vec<Recovered>,
    /// How many finished instances were removed.
    pub pruned: u32,
    /// A bound was hit somewhere: there is more to do at once.
    pub again: bool,
}

impl ReapReport {
    /// Tasks that are ready again because their worker crashed.
    #[must_use]
    pub fn requeued(&self) -> usize {
        self.count(|r| matches!(r, Recovery::Requeued { .. }))
    }

    /// Instances that failed because of too many crashes.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.count(|r| matches!(r, Recovery::Failed))
    }

    /// Instances that were paused because of too many crashes.
    #[must_use]
    pub fn paused(&self) -> usize {
        self.count(|r| matches!(r, Recovery::Paused))
    }

    /// Tasks whose worker lives but did not hold them any more.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.count(|r| matches!(r, Recovery::Lost))
    }

    /// Attempts that went past their deadline.
    #[must_use]
    pub fn timed_out(&self) -> usize {
        self.count(|r| matches!(r, Recovery::TimedOut))
    }

    /// The workers that stopped without a word.
    #[must_use]
    pub fn lost_workers(&self) -> BTreeSet<WorkerId> {
        self.recovered
            .iter()
            .filter(|r| {
                matches!(
                    r.recovery,
                    Recovery::Requeued { .. } | Recovery::Failed | Recovery::Paused
                )
            })
            .map(|r| r.worker.clone())
            .collect()
    }

    fn count(&self, is: fn(&Recovery) -> bool) -> usize {
        self.recovered.iter().filter(|r| is(&r.recovery)).count()
    }

    fn add(&mut self, reply: TickReply) {
        self.recovered.extend(reply.recovered);
        self.pruned += reply.pruned;
        self.again |= reply.again;
    }
}

/// Recovers expired claims and applies retention, in all partitions. Two of them, or one beside workers, are harmless:
/// each recovery happens once.
pub struct Reaper {
    store: Arc<dyn Store>,
    interval: Duration,
    settings: RoundSettings,
    rounds: Mutex<Vec<Rounds>>,
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper")
            .field("interval", &self.interval)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Reaper {
    /// A reaper for all partitions of a store.
    pub fn builder(store: impl IntoStore) -> ReaperBuilder {
        ReaperBuilder {
            store: store.into_store(),
            interval: Duration::from_secs(1),
            batch_size: 100,
            crash_delay: Duration::from_secs(1),
            retention: Retention::default(),
            outage_pause: Duration::from_secs(10),
        }
    }

    /// One round in every partition: at most `batch_size` claims and as many old instances in each.
    ///
    /// Safe to drop and to repeat: every recovery is one transition of the store.
    ///
    /// # Errors
    /// The store's, of the first partition that failed; what the partitions before it did is logged. For
    /// [`ReaperBuilder::outage_pause`] after the store answers again, rounds in that partition recover nothing.
    pub async fn tick(&self) -> Result<ReapReport, StoreError> {
        let mut report = ReapReport::default();
        for rounds in self.rounds.lock().await.iter_mut() {
            report.add(rounds.tick(self.store.as_ref(), &self.settings).await?);
        }
        Ok(report)
    }

    /// A round in each interval, the first after one interval; at once while batches are full. Ends when the token is
    /// cancelled, also in the middle of a round, which is safe. An error of the store is logged and the next interval
    /// tries again.
    pub async fn run(&self, token: CancellationToken) {
        token.run_until_cancelled(self.rounds_forever()).await;
    }

    async fn rounds_forever(&self) {
        let mut backoff = Backoff::capped(self.interval.max(Duration::from_secs(5)));
        loop {
            tokio::time::sleep(self.interval).await;
            loop {
                match self.tick().await {
                    Ok(report) => {
                        backoff.reset();
                        if !report.again {
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a round of the reaper failed; it goes on");
                        tokio::time::sleep(backoff.delay()).await;
                        break;
                    }
                }
            }
        }
    }
}

/// Builds a [`Reaper`].
#[must_use = "a builder does nothing until build()"]
#[derive(Debug)]
pub struct ReaperBuilder {
    store: Arc<dyn Store>,
    interval: Duration,
    batch_size: u32,
    crash_delay: Duration,
    retention: Retention,
    outage_pause: Duration,
}

impl ReaperBuilder {
    /// How often a round is done, from 10 ms to an hour. Default: 1 s.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// The most expired claims, and the most old instances, of one round in a partition: 1 to 1000. Default: 100.
    pub fn batch_size(mut self, size: u32) -> Self {
        self.batch_size = size;
        self
    }

    /// How long a task waits after its second crash, doubled with each further one up to 60 s, from 1 ms to 60 s; after
    /// the first it is ready at once. Default: 1 s.
    pub fn crash_delay(mut self, delay: Duration) -> Self {
        self.crash_delay = delay;
        self
    }

    /// How long finished instances are kept. Default: [`Retention::default`].
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// How long nothing is recovered after the store answers again, or its clock moved, up to a day: the workers'
    /// heartbeats have to come first. Default: 10 s.
    pub fn outage_pause(mut self, pause: Duration) -> Self {
        self.outage_pause = pause;
        self
    }

    /// The reaper.
    ///
    /// # Errors
    /// [`OptionError`] names the option that is out of range, and what is allowed.
    pub fn build(self) -> Result<Reaper, OptionError> {
        const MILLI: Duration = Duration::from_millis(1);
        const DAY: Duration = Duration::from_secs(24 * 3600);
        options::duration(
            "interval",
            self.interval,
            10 * MILLI,
            Duration::from_secs(3600),
        )?;
        let most = TickRequest::MOST as usize;
        options::number("batch_size", self.batch_size as usize, 1, most)?;
        options::duration(
            "crash_delay",
            self.crash_delay,
            MILLI,
            Duration::from_secs(60),
        )?;
        options::duration("outage_pause", self.outage_pause, Duration::ZERO, DAY)?;
        let partitions: NonZeroU16 = self.store.partitions();
        Ok(Reaper {
            store: self.store,
            interval: self.interval,
            settings: RoundSettings {
                keeper: None,
                promote: 0,
                reap: self.batch_size,
                prune: self.batch_size,
                crash_delay: self.crash_delay,
                ttl: Duration::from_secs(30),
                retention: self.retention,
                pause: self.outage_pause,
            },
            rounds: Mutex::new(Partition::all(partitions).map(Rounds::new).collect()),
        })
    }
}
