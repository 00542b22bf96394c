//! What something cost: time, CPU of this process and of Redis, calls and commands.

use std::time::Duration;

use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use redis::aio::MultiplexedConnection;
use tokio::time::Instant;

use super::stats::Stats;

/// Microseconds up to ten minutes, three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("bounds that are allowed")
}

/// Reads all counters at one moment.
#[derive(Clone)]
pub(crate) struct Meter {
    nodes: Vec<MultiplexedConnection>,
}

/// All counters at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    at: Instant,
    client: Duration,
    redis: Stats,
}

/// What happened between two moments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spent {
    pub(crate) seconds: f64,
    /// CPU seconds of this process, and of its worker processes that have ended.
    pub(crate) client: f64,
    /// CPU seconds of all nodes.
    pub(crate) redis: f64,
    /// Seconds inside scripts.
    pub(crate) scripts: f64,
    /// Script calls.
    pub(crate) calls: f64,
    /// Commands inside scripts.
    pub(crate) commands: f64,
    /// Calls of each command, most often called first.
    pub(crate) each: Vec<(String, f64)>,
}

impl Meter {
    pub(crate) fn new(nodes: Vec<MultiplexedConnection>) -> Self {
        Self { nodes }
    }

    /// Now.
    pub(crate) async fn mark(&self) -> anyhow::Result<Mark> {
        let mut redis = Stats::default();
        for node in &self.nodes {
            redis.add(&Stats::of(&mut node.clone()).await?);
        }
        Ok(Mark {
            at: Instant::now(),
            client: cpu(UsageWho::RUSAGE_SELF)? + cpu(UsageWho::RUSAGE_CHILDREN)?,
            redis,
        })
    }
}

impl Mark {
    /// What happened since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> Spent {
        let scripts = self.redis.scripts_since(&earlier.redis);
        Spent {
            seconds: (self.at - earlier.at).as_secs_f64(),
            client: self.client.saturating_sub(earlier.client).as_secs_f64(),
            redis: self.redis.cpu - earlier.redis.cpu,
            scripts: scripts.micros / 1e6,
            calls: scripts.calls,
            commands: self.redis.inside_since(&earlier.redis).calls,
            each: self.redis.each_since(&earlier.redis),
        }
    }
}

fn cpu(who: UsageWho) -> anyhow::Result<Duration> {
    let usage = getrusage(who)?;
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    Ok(Duration::from_micros(
        micros(usage.user_time()) + micros(usage.system_time()),
    ))
}
