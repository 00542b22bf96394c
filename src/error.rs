//! What a store can answer instead of doing what it was asked. Answers that are expected (a lost claim, an instance
//! that is already there) are values, not errors.

use std::time::Duration;

use crate::ids::{IdError, InstanceId};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call to a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The server could not be reached, or the connection broke while the call was under way: it may or may not have
    /// been carried out. All calls of this crate are safe to repeat with the same arguments.
    #[error("the store at {server} cannot be reached")]
    Unavailable {
        /// The server, without user and password.
        server: String,
        /// What the connection said.
        source: Cause,
    },
    /// No answer within the response timeout; the call may or may not have been carried out.
    #[error("the store did not answer within {timeout:?}")]
    Timeout {
        /// The response timeout.
        timeout: Duration,
    },
    /// The server is loading its data, has just become a replica, or a slot is moving: nothing was written.
    #[error("the store is busy for a moment ({reason}); the call can be repeated")]
    Moment {
        /// The server's word for it, such as `LOADING`, `READONLY` or `TRYAGAIN`.
        reason: String,
    },
    /// The server is at its `maxmemory` and refuses what needs more: nothing was written.
    #[error(
        "the store is out of memory and refuses new work; raise its maxmemory, or let work finish and old instances be pruned"
    )]
    OutOfMemory,
    /// The user or password was refused. Neither is shown.
    #[error("the store refused the user or the password")]
    Login,
    /// The user lacks a right that Tenure needs.
    #[error(
        "the store's user may not {missing}; grant it `~{{{namespace}:*`, `~{{{namespace}}}:*`, `&{{{namespace}:*` and the commands in lua/README.md"
    )]
    Right {
        /// What is not allowed, as the server says it.
        missing: String,
        /// The namespace that was asked for.
        namespace: String,
    },
    /// The address cannot be used.
    #[error("`{url}` is not an address of a Redis: {reason}")]
    Address {
        /// The address, without user and password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate or a key that was given cannot be read. Nothing of it is shown.
    #[error(
        "{what} cannot be read: {reason}; give it in PEM, which begins with `-----BEGIN {begins}-----`"
    )]
    Certificate {
        /// Which it is.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
        /// How one begins.
        begins: &'static str,
    },
    /// The server cannot hold Tenure's data.
    #[error("the server at {server} cannot be used: {reason}")]
    Unsuitable {
        /// The server, without user and password.
        server: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The namespace was made with another number of partitions.
    #[error(
        "namespace `{namespace}` has {stored} partitions, this process was told {asked}; use {stored}, or a new namespace"
    )]
    Partitions {
        /// The namespace.
        namespace: String,
        /// What is stored.
        stored: u16,
        /// What was asked for.
        asked: u16,
    },
    /// A stored record cannot be read; it was left as it is.
    #[error("{what} of `{key}` cannot be read: {reason}; the record was left untouched")]
    Corrupt {
        /// The key.
        key: String,
        /// The field or the kind of record.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A snapshot was written by a newer version; it was left as it is.
    #[error(
        "instance `{id}` has format {found}, this version reads up to {supported}; the record was left untouched: use a newer version"
    )]
    Format {
        /// The instance.
        id: InstanceId,
        /// The format of the record.
        found: String,
        /// The newest format that can be read.
        supported: u32,
    },
    /// A payload is over the limit; nothing was sent.
    #[error(
        "{what} has {size} bytes, the limit is {limit}; store large data elsewhere and pass its address, or raise `max_payload`"
    )]
    TooLarge {
        /// What it was: an input, or the output of a task.
        what: String,
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A request asks for more than one call may do, or for nothing that makes sense; nothing was sent.
    #[error("{what} must be {allowed}, it is {given}")]
    Request {
        /// What was asked for.
        what: &'static str,
        /// What is allowed.
        allowed: String,
        /// What was given.
        given: String,
    },
    /// The server answered what no version of Tenure answers: it is not the server, or not the script, we believe it is.
    #[error("the store answered something unexpected to `{call}`: {reason}")]
    Protocol {
        /// The call.
        call: &'static str,
        /// What was odd about the answer.
        reason: String,
    },
    /// The server failed in a way that has no name here.
    #[error("the store failed in `{call}`")]
    Server {
        /// The call.
        call: &'static str,
        /// What the server said.
        source: Cause,
    },
    /// A stored id cannot be read.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl StoreError {
    /// Whether the same call may succeed later without a change by a person.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Timeout { .. }
                | Self::Moment { .. }
                | Self::OutOfMemory
        )
    }

    /// Whether the call may have been carried out although it failed.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Timeout { .. })
    }
}
