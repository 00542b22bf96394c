//! Pure: from a graph, a node and what happened in it to what must be stored because of it.
//!
//! No async, clock, randomness or IO: those are arguments. A store only applies what is decided here, so two stores
//! cannot drift apart.

mod decide;
mod follow_up;
mod retry;

pub use decide::{Attempt, Decision, Failure, Outcome, begin, decide};
pub use follow_up::{FollowUp, Next, Wait};
pub use retry::{Dead, NotReached, RetryFrom, RetryPlan, Standing, retry};

pub(crate) use retry::goes_on;

pub use crate::workflow::Limits;
