use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::{
    ids::{InstanceId, Partition, RunId, RunTail},
    store::Status,
    time::Timestamp,
};

/// A lossy message to a worker or a client: what it says is stored too, and is found by polling.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// Something is ready in a list at which the worker was parked; it is not parked any more.
    Ready {
        /// Where.
        partition: Partition,
    },
    /// A timer was set that is due before all others: tick again by then. Sent to the keeper.
    Timer {
        /// Where.
        partition: Partition,
    },
    /// An instance with running tasks of this worker is over.
    Cancelled {
        /// The instance.
        id: InstanceId,
        /// Which run.
        tail: RunTail,
    },
    /// An instance that this mailbox waits for is over, or was replaced.
    Done {
        /// The instance.
        id: InstanceId,
        /// Which run.
        tail: RunTail,
        /// Its result, if it completed with one of at most [`Hint::TOLD`] bytes that its last settlement brought.
        result: Option<Bytes>,
    },
    /// The subscription is new, or was broken and is back: hints may have been missed, look yourself.
    Subscribed,
}

impl Hint {
    /// The largest result that [`Hint::Done`] brings along, in bytes.
    pub const TOLD: usize = 1024;
}

/// A mailbox. Ends only when the store is gone; a broken connection is re-made and told by [`Hint::Subscribed`], which
/// is also the first hint. Dropping it unsubscribes.
pub type Hints = BoxStream<'static, Hint>;

/// A change of status of an instance, published by the transition that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEvent {
    /// The instance.
    pub id: InstanceId,
    /// Its run.
    pub run: RunId,
    /// The workflow's status before; `None` at the start.
    pub from: Option<Status>,
    /// And after.
    pub to: Status,
    /// The store's time.
    pub at: Timestamp,
    /// The message, only when the instance failed, or is paused because of an error.
    pub error: Option<String>,
}

/// What a subscription to status changes brings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An instance has changed its status.
    Changed(StatusEvent),
    /// Changes were missed here: the subscriber fell behind, or its connection was broken. What is stored says how things
    /// stand.
    Missed {
        /// How many; `None` when nobody knows.
        events: Option<u64>,
    },
}

/// Status changes of all instances. Lossy: a subscriber that falls behind misses events, is told so and slows nobody.
pub type StatusEvents = BoxStream<'static, Event>;
