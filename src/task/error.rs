use serde::{Deserialize, Serialize};

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The handler returned an error.
    Error,
    /// The handler returned an error that no retry can mend.
    Permanent,
    /// The handler panicked.
    Panic,
    /// The attempt took longer than its timeout.
    Timeout,
    /// All attempts together took longer than the task's deadline.
    Deadline,
    /// The worker stopped without a word.
    Crash,
}
