use super::Holding;
use crate::ids::{Partition, WorkerId};

/// Gives claims back: running → ready, at the head of its list. Counts neither as a failure nor as a crash.
#[derive(Debug, Clone)]
pub struct ReleaseRequest {
    /// Where.
    pub partition: Partition,
    /// Who.
    pub worker: WorkerId,
    /// At most [`ReleaseRequest::MAX_ITEMS`].
    pub items: Vec<Holding>,
    /// The worker stops: its presence, its keeper role and its parking places go too.
    pub leave: bool,
}

impl ReleaseRequest {
    /// The most claims of one call.
    pub const MAX_ITEMS: usize = 256;
}

/// The answer for one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReply {
    /// It is ready again. A repeat answers [`ReleaseReply::Lost`]: there is nothing left to give back.
    Released,
    /// It did not belong to the caller any more.
    Lost,
    /// The instance is over; the claim is gone.
    Cancelled,
}
