use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    engine::Limits,
    ids::{ListName, Nonce, Partition, RunId, TaskName, Ticket, WorkerId},
    store::TaskRecord,
    time::Timestamp,
};

/// What bounds attempts, for all tasks of a worker that have a bound.
pub type TaskLimits = HashMap<ListName, HashMap<TaskName, Limits>>;

/// Claims up to `want` tasks from the heads of `lists`, in that order.
///
/// One call of a worker is in flight in each partition. A call that is repeated with the same nonce gets the same
/// claims again, however much has become ready meanwhile.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Where.
    pub partition: Partition,
    /// For whom.
    pub worker: WorkerId,
    /// New for each call, the same in its repeats.
    pub nonce: Nonce,
    /// The most tasks: 0 to [`ClaimRequest::MAX_WANT`]. 0 passes a hint on: another parked worker of these lists is woken if
    /// something stands in them.
    pub want: u16,
    /// The lists to look into, rotated by the caller: 1 to [`ClaimRequest::MAX_LISTS`].
    pub lists: Vec<ListName>,
    /// How long the claims hold without a heartbeat.
    pub ttl: Duration,
    /// The bounds of tasks that have any.
    pub limits: Arc<TaskLimits>,
    /// Whether to be woken when something comes.
    pub parking: Parking,
}

impl ClaimRequest {
    /// The most tasks of one call.
    pub const MAX_WANT: u16 = 256;
    /// The most lists of one call.
    pub const MAX_LISTS: usize = 64;
    /// The most bytes of input in one reply; a larger input is left for [`Inspect::values`](crate::store::Inspect::values).
    pub const MAX_INPUT: usize = 256 * 1024;
}

/// Whether a worker is woken when one of its lists is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parking {
    /// No.
    Never,
    /// If the call finds too little: the worker is parked at each of its lists.
    WhenShort,
    /// As [`Parking::WhenShort`], and it is parked already: if the call finds enough it is unparked.
    Parked,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClaimReply {
    /// The claims, in the order they were taken.
    pub claims: Vec<Claimed>,
    /// The call hit its bound of work (many entries were dropped): repeat it at once, with a new nonce.
    pub again: bool,
    /// The worker is parked now.
    pub parked: bool,
    /// Entries whose snapshot cannot be read; they are kept aside and stop nobody.
    pub aside: Vec<AsideEntry>,
    /// Grows when the store lost history (a failover to an older copy): for the side effects of handlers.
    pub epoch: u64,
}

/// An entry that was set aside, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsideEntry {
    /// The ticket as it stands in the store.
    pub ticket: String,
    /// Why it cannot be run.
    pub reason: String,
}

/// A task that now belongs to the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// What settle, extend and release send back.
    pub ticket: Ticket,
    /// The run.
    pub run: RunId,
    /// The record as it is stored now: `running`. Together with `run` it is the fence.
    pub record: TaskRecord,
    /// The input; `None` for a join, for a follow-up claim, and when it is too large for this reply.
    pub input: Option<Bytes>,
    /// When all attempts are over, if the task has a deadline.
    pub overall: Option<Timestamp>,
    /// The store's time of the claim.
    pub now: Timestamp,
}
