//! One file for each command of operation: what it takes, what it answers.

pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod dead;
pub(crate) mod definitions;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod functions;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod queues;
pub(crate) mod reap;
pub(crate) mod result;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod top;
pub(crate) mod why;
pub(crate) mod workers;
