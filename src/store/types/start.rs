use std::time::Duration;

use bytes::Bytes;

use crate::{
    engine::FollowUp,
    ids::{DefinitionHash, InstanceId, MailboxId, QueueName, RunId, SignalName, WorkflowName},
    store::Status,
    time::Timestamp,
    workflow::OnExhausted,
};

/// One instance to start. A call carries items of one partition, at most [`StartItem::MAX_ITEMS`] and
/// [`StartItem::MAX_BYTES`]; they apply one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct StartItem {
    /// The instance.
    pub id: InstanceId,
    /// The new run; repeating a call with the same run is safe.
    pub run: RunId,
    /// What to do when there is an instance of this id.
    pub policy: IdPolicy,
    /// The workflow's name.
    pub workflow: WorkflowName,
    /// Its definition.
    pub definition: DefinitionHash,
    /// The workflow's queue.
    pub queue: QueueName,
    /// When it begins.
    pub begin: Begin,
    /// The signals that a node of the workflow waits for: others are refused.
    pub signals: Vec<SignalName>,
    /// What the workflow starts with: at least one follow-up, each [`FollowUp::Ready`] or [`FollowUp::After`].
    pub first: Vec<FollowUp>,
    /// The payload.
    pub input: Bytes,
    /// Labels, creator and trace parent, as MessagePack; `None` stores nothing.
    pub meta: Option<Bytes>,
    /// How many crashes of each task's workers are survived.
    pub max_crashes: u32,
    /// What one crash more leads to.
    pub on_exhausted: OnExhausted,
    /// A mailbox that wants [`Hint::Done`](super::Hint::Done).
    pub waiter: Option<MailboxId>,
}

impl StartItem {
    /// The most items in one call.
    pub const MAX_ITEMS: usize = 500;
    /// The most bytes of payload in one call of several items; a single item may be larger.
    pub const MAX_BYTES: usize = 1 << 20;

    /// What counts towards [`StartItem::MAX_BYTES`].
    pub(crate) fn payload_len(&self) -> usize {
        self.input.len() + self.meta.as_ref().map_or(0, Bytes::len)
    }
}

/// When the first nodes become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begin {
    /// At once.
    #[default]
    Now,
    /// After a duration.
    After(Duration),
    /// At a time; at once if it has passed.
    At(Timestamp),
}

/// What a start does when its id is taken. Default: [`IdPolicy::Fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdPolicy {
    /// Refuse: [`StartReply::Exists`].
    #[default]
    Fail,
    /// Answer with the instance that is there: [`StartReply::Existing`].
    UseExisting,
    /// Replace it if it is over, else refuse.
    ReplaceFinished,
    /// Replace it, ending it as `terminated` if it is not over.
    TerminateAndReplace,
}

impl IdPolicy {
    /// All policies.
    pub const ALL: [Self; 4] = [
        Self::Fail,
        Self::UseExisting,
        Self::ReplaceFinished,
        Self::TerminateAndReplace,
    ];

    /// The word for it, in scripts and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::UseExisting => "use-existing",
            Self::ReplaceFinished => "replace-finished",
            Self::TerminateAndReplace => "terminate-and-replace",
        }
    }
}

/// The answer to one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartReply {
    /// It lives, or it did: this run is the one stored. Also the answer to a repeated call.
    Started,
    /// The id is taken, and the policy says to refuse.
    Exists {
        /// The run that is there.
        run: RunId,
        /// Its status.
        status: Status,
    },
    /// The id is taken, and the policy says to use what is there.
    Existing {
        /// The run that is there.
        run: RunId,
        /// Its status.
        status: Status,
    },
    /// This run was started and has since been replaced (one of the last 8).
    Superseded,
}
