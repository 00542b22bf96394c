use std::{fmt, time::Duration};

use super::{MAX_BRANCHES, MAX_DURATION, MAX_NODES, MIN_DURATION};
use crate::{codec::CodecError, ids::IdError};

/// All that is wrong with a workflow.
#[derive(Debug, PartialEq, thiserror::Error)]
pub struct BuildErrors {
    pub(super) workflow: String,
    pub(super) errors: Vec<BuildError>,
}

impl BuildErrors {
    /// Each mistake, in the order of the definition; at least one.
    #[must_use]
    pub fn errors(&self) -> &[BuildError] {
        &self.errors
    }
}

impl fmt::Display for BuildErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workflow `{}` cannot be built: ", self.workflow)?;
        for (i, error) in self.errors.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

/// One mistake in a workflow.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A name is not allowed.
    #[error(transparent)]
    Name(#[from] IdError),
    /// Two nodes have one name.
    #[error("`{node}` names more than one node: each task, join and delay needs a name of its own")]
    Duplicate {
        /// The name.
        node: String,
    },
    /// There is nothing in it.
    #[error("it has no nodes: it needs at least one task or delay")]
    Empty,
    /// There is too much in it.
    #[error("it has {given} nodes: at most {MAX_NODES} are allowed")]
    Nodes {
        /// How many there are.
        given: usize,
    },
    /// A fork has no branch, or too many.
    #[error(
        "the fork that ends in `{join}` has {}: 1 to {MAX_BRANCHES} are allowed",
        branches(*given)
    )]
    Branches {
        /// The join of the fork.
        join: String,
        /// How many branches there are; counted up to one more than is allowed.
        given: usize,
    },
    /// A duration is zero or absurd.
    #[error(
        "the {what} of `{node}` is {given:?}: {MIN_DURATION:?} to {} days are allowed",
        MAX_DURATION.as_secs() / 86_400
    )]
    Duration {
        /// The node.
        node: String,
        /// Which of its durations.
        what: &'static str,
        /// What it is.
        given: Duration,
    },
    /// A task may not even be tried.
    #[error("the max_attempts of `{node}` is 0: at least 1 is allowed, which is no retry")]
    Attempts {
        /// The node.
        node: String,
    },
    /// A jitter is not a part of a delay.
    #[error("the jitter of `{node}` is {given}: 0 to 1 is allowed")]
    Jitter {
        /// The node.
        node: String,
        /// What it is.
        given: f64,
    },
}

fn branches(given: usize) -> String {
    match given {
        0 => "no branches".into(),
        n if n > MAX_BRANCHES => format!("more than {MAX_BRANCHES} branches"),
        n => format!("{n} branches"),
    }
}

/// Why stored bytes are not a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// They are not the MessagePack of a graph.
    #[error("the stored definition cannot be read")]
    Unreadable(#[from] CodecError),
    /// They were written in another format.
    #[error(
        "the stored definition has format {found}, this version reads up to {supported}: use a newer version"
    )]
    Version {
        /// The format of the stored definition.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// They hold what no builder lets through.
    #[error("the stored definition is not valid")]
    Rules(#[from] BuildErrors),
    /// Its nodes are not connected as a builder connects them.
    #[error("the stored definition is not valid: node {node} {problem}")]
    Wiring {
        /// The place of the node in the list, from 0.
        node: usize,
        /// What is wrong with it.
        problem: Wiring,
    },
}

/// How a node of a stored graph is connected wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wiring {
    /// An edge or a branch names a node that is not in the list.
    #[error("is not in the list of nodes, yet another one leads to it")]
    Missing,
    /// It cannot be reached from the start.
    #[error("cannot be reached from the start")]
    Unreachable,
    /// An edge leads from it to itself or to a node before it.
    #[error("leads back to itself or to a node before it")]
    Backwards,
    /// Two of its edges lead to one node.
    #[error("leads to one node twice")]
    Twice,
    /// It is not a join, and yet more than one node leads to it.
    #[error("is no join, yet more than one node leads to it")]
    ManyInputs,
    /// A join counts other arrivals than those that lead to it.
    #[error("is a join that does not wait for just the branches that lead to it")]
    Count,
    /// It takes other values than the branches that lead to it bring.
    #[error("takes other values than its branches bring")]
    Values,
    /// The workflow ends here, and elsewhere too.
    #[error("is where the workflow ends, and so is another one")]
    ManyEnds,
}
