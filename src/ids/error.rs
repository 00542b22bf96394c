//! What is wrong with an id.

use super::MAX_INSTANCE_ID;

/// An id or a name that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// A name is empty, too long, or holds a character outside `[A-Za-z0-9_.-]`.
    #[error(
        "`{value}` is not a valid {kind}: it must be 1 to {max} characters of A-Z a-z 0-9 _ . -"
    )]
    Name {
        /// What the name was for.
        kind: &'static str,
        /// What was given, shortened.
        value: String,
        /// The longest name allowed here.
        max: usize,
    },
    /// An instance id is empty, too long, or holds a character that is reserved.
    #[error(
        "`{value}` is not a valid instance id: it must be 1 to {MAX_INSTANCE_ID} bytes without control characters, `/` (children) and `~` (placement)"
    )]
    Instance {
        /// What was given, shortened.
        value: String,
    },
    /// Text that is not a UUID stands where a run is expected.
    #[error(
        "`{value}` is not a run: it must be a UUID such as 0198c0de-7e57-7000-8000-00000000abcd"
    )]
    Run {
        /// What was given, shortened.
        value: String,
    },
    /// A stored id (entry, ticket, list, record) cannot be read.
    #[error("`{value}` is not a valid {kind}")]
    Stored {
        /// What should have stood there.
        kind: &'static str,
        /// What stood there, shortened.
        value: String,
    },
}

pub(crate) fn shorten(value: &str) -> String {
    let mut shown: String = value
        .chars()
        .take(80)
        .flat_map(char::escape_default)
        .collect();
    if value.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}
