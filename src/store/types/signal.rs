use bytes::Bytes;

use crate::{
    ids::{InstanceId, RunId, SignalId, SignalName},
    store::Status,
};

/// Sends a signal to an instance: the oldest of the nodes that wait for it takes it and is ready in the same transition;
/// while none waits it is kept for the one to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRequest {
    /// The instance.
    pub id: InstanceId,
    /// The run that is meant; `None` means whichever is there.
    pub run: Option<RunId>,
    /// What the node waits for.
    pub name: SignalName,
    /// The same in all repeats of one signal: it counts once.
    pub signal: SignalId,
    /// The value of the node.
    pub payload: Bytes,
}

impl SignalRequest {
    /// The most signals of one run that are kept for nodes that do not wait yet.
    pub const MAX_EARLY: usize = 1000;
    /// How many bytes of ids of accepted signals are remembered, each with one more: the last 1000 signals of a run at
    /// least, about 2000 with ids that a client made.
    pub const HEARD: usize = 65_536;
}

/// The answer to a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalReply {
    /// It is stored; also the answer to a repeat, whatever became of the instance since.
    Accepted {
        /// The run that has it.
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
    /// No node of the instance's definition waits for a signal of this name.
    NotAwaited {
        /// The signals that nodes of it wait for.
        awaited: Vec<SignalName>,
    },
    /// [`SignalRequest::MAX_EARLY`] signals are kept already. None of them is given up for a newer one: each was
    /// acknowledged.
    Full,
    /// There is no such instance.
    NotFound,
}
