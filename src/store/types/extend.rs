use std::time::Duration;

use crate::{
    ids::{Partition, RunId, Ticket, WorkerId},
    store::TaskRecord,
};

/// A claim that its worker believes to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Holding {
    /// As the claim returned it.
    pub ticket: Ticket,
    /// The run.
    pub run: RunId,
    /// The record, as the claim returned it.
    pub record: TaskRecord,
}

/// Extends claims by `ttl` from now, and the worker's presence, which is set first, also when there is no claim.
///
/// A claim key that expired while nobody reaped it is set again. A claim is not extended beyond its attempt's deadline
/// plus [`ExtendRequest::GRACE`].
#[derive(Debug, Clone)]
pub struct ExtendRequest {
    /// Where.
    pub partition: Partition,
    /// Who.
    pub worker: WorkerId,
    /// How long the claims hold from now.
    pub ttl: Duration,
    /// At most [`ExtendRequest::MAX_ITEMS`].
    pub items: Vec<Holding>,
}

impl ExtendRequest {
    /// The most claims of one call.
    pub const MAX_ITEMS: usize = 256;
    /// How long after its deadline an attempt may still be settled by its own worker before a reaper takes it away.
    pub const GRACE: Duration = Duration::from_millis(500);
}

/// What a heartbeat learns of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It holds.
    Ok,
    /// It belongs to somebody else or to nobody; stop, and store nothing.
    Lost,
    /// The instance is over; stop.
    Cancelled,
}
