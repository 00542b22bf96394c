//! One file for each command of operation: what it takes, what it answers.

pub(crate) mod definitions;
pub(crate) mod workers;
