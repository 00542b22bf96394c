//! Pure: from a graph, a node and what happened in it to what must be stored because of it.

mod follow_up;

pub use follow_up::{FollowUp, Limits, Next};
