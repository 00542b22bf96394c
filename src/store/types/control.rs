use serde::{Deserialize, Serialize};

use crate::{
    ids::{InstanceId, RunId},
    store::Status,
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
}

impl Control {
    /// The word for it in scripts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
        }
    }

    /// The status it leads to.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Cancel => Status::Cancelled,
            Self::Terminate => Status::Terminated,
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
    /// There is no such instance.
    NotFound,
}
