//! Options of builders: one error for all that are out of range.

use std::{fmt, time::Duration};

/// An option of a worker or a reaper that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option} must be {allowed}, it is {given}")]
pub struct OptionError {
    /// The builder's method.
    pub option: &'static str,
    /// What was given.
    pub given: String,
    /// What is allowed.
    pub allowed: String,
}

/// Checks a duration against its range, both ends included.
pub(crate) fn duration(
    option: &'static str,
    given: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), OptionError> {
    range(option, given, least, most)
}

/// Checks a number against its range, both ends included.
pub(crate) fn number(
    option: &'static str,
    given: usize,
    least: usize,
    most: usize,
) -> Result<(), OptionError> {
    range(option, given, least, most)
}

fn range<T: PartialOrd + fmt::Debug + Copy>(
    option: &'static str,
    given: T,
    least: T,
    most: T,
) -> Result<(), OptionError> {
    if given < least || given > most {
        return Err(OptionError {
            option,
            given: format!("{given:?}"),
            allowed: format!("{least:?} to {most:?}"),
        });
    }
    Ok(())
}
