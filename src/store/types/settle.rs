use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Claimed, Holding};
use crate::{
    engine::{FollowUp, Wait},
    ids::{Nonce, Partition, TaskName, WorkerId},
    task::ErrorKind,
    time::Timestamp,
};

/// Stores what became of running tasks and does what follows. Items apply one after another, each whole.
#[derive(Debug, Clone)]
pub struct SettleRequest {
    /// Where.
    pub partition: Partition,
    /// Who.
    pub worker: WorkerId,
    /// How long follow-up claims hold without a heartbeat.
    pub ttl: Duration,
    /// At most [`SettleRequest::MAX_ITEMS`].
    pub items: Vec<Settlement>,
}

impl SettleRequest {
    /// The most settlements of one call.
    pub const MAX_ITEMS: usize = 128;
}

/// What became of one running task.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// The claim, with its fence.
    pub holding: Holding,
    /// What became of it.
    pub verdict: Verdict,
    /// Which follow-up to claim at once for the same worker.
    pub claim_next: Option<ClaimNext>,
}

/// What became of a task, as the engine decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The node is done.
    Completed {
        /// The result; `None` for a node without a value of its own (a delay).
        output: Option<Bytes>,
        /// What follows.
        follow_ups: Vec<FollowUp>,
    },
    /// The node waits for a signal, or is ready again at once with one that came before.
    Wait(Wait),
    /// The attempt failed; another one follows after a delay. Counts as a failure.
    Retry {
        /// How long to wait; zero makes it ready at once.
        after: Duration,
        /// Why.
        error: ErrorRecord,
    },
    /// The task failed for good, and its instance with it. Counts as a failure.
    Failed {
        /// Why.
        error: ErrorRecord,
    },
    /// The task failed for good, and its instance is paused for a person: the task begins again, its failures and
    /// crashes forgotten, when the instance is resumed.
    Paused {
        /// Why.
        error: ErrorRecord,
    },
}

/// A request to claim a follow-up in the transition that makes it ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimNext {
    /// Which of the follow-ups: a [`FollowUp::Ready`], or a [`FollowUp::Arrive`] that may fire.
    pub follow_up: usize,
    /// The nonce of the new claim.
    pub nonce: Nonce,
    /// Claim only if nothing stands in the follow-up's list: fairness after a row of follow-up claims.
    pub only_if_empty: bool,
}

/// The answer to one settlement.
#[derive(Debug, Clone, PartialEq)]
pub enum SettleReply {
    /// It is stored; also the answer to a repeat, with the same follow-up claim.
    Stored {
        /// The follow-up claim. Its input is `None`: the caller has just stored it, or assembles it for a join.
        next: Option<Box<Claimed>>,
    },
    /// The claim belongs to somebody else or to nobody; nothing was stored.
    Lost,
    /// The instance is over; nothing was stored.
    Cancelled,
    /// There is no such instance (any more); nothing was stored.
    Gone,
}

/// A failed attempt, as it is kept in `:errors:<id>` and, for the last one, in the snapshot's `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The task.
    pub task: TaskName,
    /// Which attempt.
    pub attempt: u32,
    /// The whole message, with its causes.
    pub message: String,
    /// Who ran it.
    pub worker: Option<WorkerId>,
    /// When, in milliseconds since the Unix epoch.
    pub at: i64,
}

impl ErrorRecord {
    /// The message of an instance whose workers crashed once too often.
    pub const LEASE_EXPIRED: &str = "worker lease expired";
    /// How many are kept for each instance.
    pub const KEPT: usize = 20;

    /// When it happened.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}
