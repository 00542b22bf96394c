use bytes::Bytes;

use super::Holding;
use crate::{
    ids::{Partition, ValueField},
    task::Notebook,
};

/// Writes down what a running task says of itself ([`ValueField::Progress`], its own alone) and what the tasks of its
/// instance share ([`ValueField::Shared`]). Fenced as a settlement is: a worker that lost its claim changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteRequest {
    /// Where.
    pub partition: Partition,
    /// The claim, with its fence.
    pub holding: Holding,
    /// Counts the notes of an attempt, from 1: a repeat changes nothing of what was noted after it.
    pub number: u64,
    /// The values, each field once.
    pub values: Vec<(ValueField, Bytes)>,
}

impl NoteRequest {
    /// The most values of one call.
    pub const MAX_VALUES: usize = 16;
    /// The longest value, in bytes.
    pub const MAX_BYTES: usize = Notebook::MAX_BYTES;
    /// The most shared values of an instance.
    pub const MAX_SHARED: usize = 64;
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteReply {
    /// It is stored; also the answer to a repeat.
    Noted,
    /// The instance has [`NoteRequest::MAX_SHARED`] shared values already; nothing was stored.
    Full,
    /// The claim belongs to somebody else or to nobody; nothing was stored.
    Lost,
    /// The instance is over; nothing was stored.
    Cancelled,
    /// There is no such instance (any more); nothing was stored.
    Gone,
}
