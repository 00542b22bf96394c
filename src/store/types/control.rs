use serde::{Deserialize, Serialize};

use crate::{
    engine::RetryPlan,
    ids::{InstanceId, Nonce, RunId},
    store::Status,
    time::Timestamp,
};

/// Steers one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRequest {
    /// The instance.
    pub id: InstanceId,
    /// The run that is meant; `None` means whichever is there.
    pub run: Option<RunId>,
    /// What to do.
    pub control: Control,
    /// Why; stored as `control`.
    pub reason: Option<String>,
    /// Who; stored as `control`.
    pub actor: Option<String>,
    /// New for each call, the same in its repeats.
    pub nonce: Nonce,
}

impl ControlRequest {
    /// The most parked tickets that one call gives back.
    pub const MAX_RESUMED: usize = 1000;
}

/// Brings a dead instance back to life.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryRequest {
    /// The instance.
    pub id: InstanceId,
    /// The run that is meant.
    pub run: RunId,
    /// When it died: the plan was made for this death and for no later one.
    pub died_at: Timestamp,
    /// What begins again, what goes on and what is taken back.
    pub plan: RetryPlan,
    /// Why; stored as `control`.
    pub reason: Option<String>,
    /// Who; stored as `control`.
    pub actor: Option<String>,
    /// New for each call, the same in its repeats.
    pub nonce: Nonce,
}

impl RetryRequest {
    /// The most nodes and joins of one plan: more than a workflow can have.
    pub const MAX_NODES: usize = 4000;
}

/// What to do with an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Control {
    /// End it as `cancelled`: owners of running tasks are told, late results refused.
    Cancel,
    /// End it as `terminated`, without ceremony.
    Terminate,
    /// Let nothing more of it be claimed; what runs goes on, and is settled.
    Pause,
    /// Let it go on after a pause.
    Resume,
    /// Bring it back to life after it failed; see [`Store::retry`](crate::store::Store::retry).
    Retry,
    /// Remove it with all that is stored of it; only when it is over.
    Delete,
}

impl Control {
    /// The word for it in scripts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Delete => "delete",
        }
    }

    /// The status it leads to; `None` when nothing is left to have one.
    #[must_use]
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Cancel => Some(Status::Cancelled),
            Self::Terminate => Some(Status::Terminated),
            Self::Pause => Some(Status::Paused),
            Self::Resume | Self::Retry => Some(Status::Running),
            Self::Delete => None,
        }
    }
}

/// The answer: exactly one of the possible ends has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlReply {
    /// It is done; also the answer to a repeat by the same run that found it done the same way.
    Done {
        /// The run that was steered.
        run: RunId,
    },
    /// The instance was over before.
    Over {
        /// The run.
        run: RunId,
        /// How it ended.
        status: Status,
    },
    /// The id has another run now.
    Replaced {
        /// The run that is there.
        run: RunId,
    },
    /// To pause: it is paused already.
    AlreadyPaused {
        /// The run.
        run: RunId,
    },
    /// To delete or to retry: it is not over, and has to be ended first.
    Live {
        /// The run.
        run: RunId,
        /// Where it is.
        status: Status,
    },
    /// To resume: it goes on, but more was parked than one call gives back. Repeat the call.
    Again {
        /// The run.
        run: RunId,
    },
    /// To retry: it died once more since the plan was made. Make another plan.
    Changed {
        /// The run.
        run: RunId,
    },
    /// There is no such instance.
    NotFound,
}
