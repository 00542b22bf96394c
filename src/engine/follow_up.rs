//! What is to happen after a node, as data: the engine decides it, a store applies it in one transition.

use std::time::Duration;

use crate::{
    ids::{InputRef, ListName, SignalName, TaskName, ValueField},
    workflow::Limits,
};

/// One consequence of a settled node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowUp {
    /// A task is ready. `open` + 1.
    Ready(Next),
    /// A task is ready after a delay. `open` + 1.
    After {
        /// The task.
        next: Next,
        /// How long after the transition.
        delay: Duration,
    },
    /// A branch arrives at a join, which fires once: when `need` branches have arrived. `open` + 1 if it fires.
    Arrive {
        /// The join's own task, with [`InputRef::Join`].
        next: Next,
        /// How many arrivals make it fire.
        need: u16,
        /// How many branches there are.
        total: u16,
    },
    /// A node waits for a signal, or is ready at once with one that came before. `open` + 1.
    Wait {
        /// The node, with its own value as input, of unknown length.
        next: Next,
        /// What for.
        wait: Wait,
    },
    /// The value of the instance is decided: this field holds it. The instance is completed when `open` is 0.
    End {
        /// The field that holds the result.
        result: ValueField,
    },
}

/// What a node waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The signal.
    pub signal: SignalName,
    /// For how long; `None` is for ever.
    pub timeout: Option<Duration>,
}

/// A node that is to be queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The node.
    pub task: TaskName,
    /// The ready list it goes to.
    pub list: ListName,
    /// Where its input is.
    pub input: InputRef,
    /// What bounds an attempt at it, for the store to write the deadline down when it is claimed at once.
    pub limits: Limits,
}
