use std::time::Duration;

use crate::{
    ids::{InstanceId, Partition, TaskName, WorkerId},
    time::Timestamp,
};

/// The keeper's round in one partition: promote what is due, recover what a dead worker held, prune what is old.
#[derive(Debug, Clone)]
pub struct TickRequest {
    /// Where.
    pub partition: Partition,
    /// Who wants to be keeper, and for how long; `None` for a reaper that stands alone.
    pub keeper: Option<(WorkerId, Duration)>,
    /// What the store's clock should say by the caller's monotonic clock; if it is off by more than
    /// [`TickRequest::MAX_STEP`], nothing is reaped or pruned in this call.
    pub expected: Option<Timestamp>,
    /// The most delayed tickets to promote, up to [`TickRequest::MOST`]; 0 skips it.
    pub promote: u32,
    /// The most running tickets to look at, up to [`TickRequest::MOST`]; 0 skips it.
    pub reap: u32,
    /// The most finished instances to remove, up to [`TickRequest::MOST`]; 0 skips it.
    pub prune: u32,
    /// How long to wait after the second crash of a task, doubled with each further one, at most 60 s; the first one
    /// is ready at once.
    pub crash_delay: Duration,
    /// The claim TTL of the caller: a claim key that lives longer than what its owner asked for (the clock was set
    /// back) is cut.
    pub ttl: Duration,
    /// How long finished instances are kept; at least [`Retention::LEAST`] in any case.
    pub retention: Retention,
}

impl TickRequest {
    /// A step of the clock that pauses reaping and pruning.
    pub const MAX_STEP: Duration = Duration::from_secs(2);
    /// The most that one call promotes, looks at or removes, each: beyond, it would hold up all others.
    pub const MOST: u32 = 1000;
    /// How far ahead a running ticket is looked at again, at most.
    pub const LOOK: Duration = Duration::from_secs(5);
}

/// How long finished instances are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Default: 24 hours.
    pub completed: Duration,
    /// Failed ones: kept for a person. Default: 30 days.
    pub failed: Duration,
    /// Cancelled and terminated ones. Default: 30 days.
    pub cancelled: Duration,
}

impl Retention {
    /// Finished instances are kept at least so long, for repeated calls to get their answer: a client repeats a start for
    /// 60 s, and its last repeat may be on its way for a while.
    pub const LEAST: Duration = Duration::from_secs(120);
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        Self {
            completed: Duration::from_secs(DAY),
            failed: Duration::from_secs(30 * DAY),
            cancelled: Duration::from_secs(30 * DAY),
        }
    }
}

/// Whether the caller is the keeper of the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeeperRole {
    /// It is, until its time runs out.
    Keeper,
    /// Somebody else is, or nobody was asked for.
    #[default]
    Other,
}

/// How the two clocks compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clocks {
    /// As expected.
    #[default]
    Steady,
    /// The store's clock moved: nothing was reaped or pruned.
    Stepped {
        /// By so many milliseconds; negative when it was set back.
        by: i64,
    },
}

/// Whether a keeper may reap and prune; kept by the caller between ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// Not now: the clock stepped or the connection is new, and heartbeats have to come first.
    Paused,
}

/// What a tick did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TickReply {
    /// The store's time.
    pub now: Timestamp,
    /// Whether the caller is keeper.
    pub role: KeeperRole,
    /// Whether the clock stepped.
    pub clocks: Clocks,
    /// How many delayed tickets became ready.
    pub promoted: u32,
    /// What was recovered.
    pub recovered: Vec<Recovered>,
    /// How many finished instances were removed.
    pub pruned: u32,
    /// A bound was hit: tick again at once.
    pub again: bool,
    /// When the next delayed ticket is due.
    pub next_due: Option<Timestamp>,
}

/// One task that was taken from a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The instance.
    pub id: InstanceId,
    /// The task.
    pub task: TaskName,
    /// Who held it.
    pub worker: WorkerId,
    /// What became of it.
    pub recovery: Recovery,
}

/// What became of a task whose claim expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// Its worker crashed; the task is ready again, or will be after a delay.
    Requeued {
        /// How often that happened to this task.
        crashes: u32,
    },
    /// Its worker crashed once too often; the instance failed.
    Failed,
    /// Its worker crashed once too often; the instance is paused for a person.
    Paused,
    /// Its worker lives but does not hold it any more; ready again, not counted.
    Lost,
    /// It went past its deadline; the engine decides on a retry.
    TimedOut,
}
