//! Pure: the typed builder, the graph, its policies and its hash.
//!
//! ```text
//! Workflow::builder ─> Chain ─ task, delay ─> Chain ─ build ─> Workflow ─ erase ─> AnyWorkflow
//!                        ├ await_signal ─> Chain                          └ graph ─> Graph
//!                        └ fork, fork_each ─> Forked ─ join ─> Chain
//! ```

mod approval;
mod chain;
mod check;
mod definition;
mod draft;
mod error;
mod fork;
mod graph;
mod hash;
mod policy;
mod raw;
#[cfg(test)]
mod tests;

pub use approval::{Approval, Decision};
pub use chain::{
    Anywhere, AtBranch, AtStart, BehindDelay, BehindTask, BehindWait, Chain, HasQueue, HasTimeout,
    IsTask,
};
pub use definition::{AnyWorkflow, Startable, Workflow, WorkflowRef};
pub use error::{BuildError, BuildErrors, GraphError, Wiring};
pub use fork::{Append, Forked, ForkedEach};
pub use graph::{Graph, Late, Node, NodeId, NodeKind, Source};
pub use policy::{Limits, MAX_DURATION, MIN_DURATION, OnExhausted, RetryPolicy};

/// The most nodes of a workflow.
pub const MAX_NODES: usize = 1000;
/// The most branches of a fork.
pub const MAX_BRANCHES: usize = 256;
