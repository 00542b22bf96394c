//! Where state lives. A store applies transitions, it decides nothing: two stores that apply the same transitions
//! cannot drift apart.
//!
//! Every transition is atomic and safe to repeat with the same arguments: a caller whose reply was lost asks again and
//! gets the answer it would have got.

mod inspect;
mod listing;
pub mod memory;
mod meta;
mod record;
pub mod redis;
mod types;

use std::{fmt, num::NonZeroU16, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::{
    inspect::{
        ControlRecord, Counts, EarlySignal, Finished, Header, Inspect, JoinRecord, Presence,
        Snapshot, WaitRecord,
    },
    listing::{
        Announcement, DefinitionRecord, Found, ListRecord, Place, Position, Scan, Summaries,
        Summary, WorkerRecord,
    },
    meta::StartMeta,
    record::{Status, TaskRecord, TaskState},
    types::{
        AsideEntry, Begin, ClaimNext, ClaimReply, ClaimRequest, Claimed, Clocks, Control,
        ControlReply, ControlRequest, ErrorRecord, Event, ExtendRequest, Gate, Held, Hint, Hints,
        Holding, IdPolicy, KeeperRole, NoteReply, NoteRequest, Parking, Recovered, Recovery,
        ReleaseReply, ReleaseRequest, Retention, RetryRequest, SettleReply, SettleRequest,
        Settlement, SignalReply, SignalRequest, StartItem, StartReply, StatusEvent, StatusEvents,
        TaskLimits, TickReply, TickRequest, Verdict,
    },
};
use crate::ids::{DefinitionHash, InstanceId, MailboxId, Partition, RunId, WorkflowName};
pub use crate::{error::StoreError, task::ErrorKind};

/// One method for each transition. All are atomic; dropping the future of a call leaves it undecided whether it was
/// carried out, as a lost reply does.
#[async_trait]
pub trait Store: Inspect + fmt::Debug + Send + Sync + 'static {
    /// How many partitions the namespace has.
    fn partitions(&self) -> NonZeroU16;

    /// The largest payload that is accepted, in bytes. Default: 16 MiB.
    fn max_payload(&self) -> usize;

    /// absent → live. Items of one partition; answers in their order.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] and [`StoreError::Request`] before anything is sent; else the connection's.
    async fn start(
        &self,
        partition: Partition,
        items: Vec<StartItem>,
    ) -> Result<Vec<StartReply>, StoreError>;

    /// ready → running.
    ///
    /// # Errors
    /// [`StoreError::Request`] before anything is sent; else the connection's.
    async fn claim(&self, request: ClaimRequest) -> Result<ClaimReply, StoreError>;

    /// running → running, and the worker's presence. Answers in the order of the items.
    ///
    /// # Errors
    /// As [`Store::claim`].
    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Held>, StoreError>;

    /// running → completed, delayed or failed, with all that follows. Answers in the order of the items.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] when an output is over the limit, before anything is sent; as [`Store::claim`].
    async fn settle(&self, request: SettleRequest) -> Result<Vec<SettleReply>, StoreError>;

    /// running → ready. Answers in the order of the items.
    ///
    /// # Errors
    /// As [`Store::claim`].
    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, StoreError>;

    /// running → running: what a task says of itself and shares.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] and [`StoreError::Request`] before anything is sent; [`StoreError::OutOfMemory`], as a
    /// start; as [`Store::claim`].
    async fn note(&self, request: NoteRequest) -> Result<NoteReply, StoreError>;

    /// due → ready, expired → ready or dead, old → gone.
    ///
    /// # Errors
    /// As [`Store::claim`].
    async fn tick(&self, request: TickRequest) -> Result<TickReply, StoreError>;

    /// waiting → ready, or kept until a node waits.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] before anything is sent; else the connection's.
    async fn signal(&self, request: SignalRequest) -> Result<SignalReply, StoreError>;

    /// Steers one instance: all but [`Control::Retry`], which is [`Store::retry`].
    ///
    /// # Errors
    /// [`StoreError::Request`] for a retry; else the connection's.
    async fn control(&self, request: ControlRequest) -> Result<ControlReply, StoreError>;

    /// dead → live: what the plan names begins again or goes on, what is downstream of it is taken back.
    ///
    /// # Errors
    /// As [`Store::claim`].
    async fn retry(&self, request: RetryRequest) -> Result<ControlReply, StoreError>;

    /// Asks for [`Hint::Done`] when this run is over (at most 16 mailboxes for each instance, the newest), and answers
    /// with the header as it is now.
    ///
    /// # Errors
    /// As [`Inspect::header`].
    async fn watch(
        &self,
        id: &InstanceId,
        run: RunId,
        mailbox: &MailboxId,
    ) -> Result<Option<Header>, StoreError>;

    /// Publishes a definition. The name points to it afterwards if it was not known before.
    ///
    /// # Errors
    /// The connection's.
    async fn publish(
        &self,
        workflow: &WorkflowName,
        hash: DefinitionHash,
        definition: Bytes,
    ) -> Result<(), StoreError>;

    /// A worker says what it is and does; nothing depends on it.
    ///
    /// # Errors
    /// The connection's.
    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError>;

    /// The current definition of a name, for a client that has only the name.
    ///
    /// # Errors
    /// The connection's.
    async fn definition(
        &self,
        workflow: &WorkflowName,
    ) -> Result<Option<(DefinitionHash, Bytes)>, StoreError>;

    /// A definition by its hash, as it was published.
    ///
    /// # Errors
    /// The connection's.
    async fn published(&self, hash: DefinitionHash) -> Result<Option<Bytes>, StoreError>;

    /// A store of the same data with connections of its own, made on the calling runtime: for heartbeats, which have to
    /// go on when the runtime of this store is held up.
    ///
    /// # Errors
    /// The connection's.
    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError>;

    /// Opens a mailbox in all partitions.
    ///
    /// # Errors
    /// [`StoreError::Right`] and the connection's.
    async fn mailbox(&self, mailbox: MailboxId) -> Result<Hints, StoreError>;

    /// Listens to status changes in all partitions, from now on.
    ///
    /// # Errors
    /// As [`Store::mailbox`].
    async fn events(&self) -> Result<StatusEvents, StoreError>;
}

/// What a client, a worker or a reaper can be built on: a store, or an `Arc<dyn Store>`.
pub trait IntoStore {
    /// As a shared store.
    fn into_store(self) -> Arc<dyn Store>;
}

impl<S: Store> IntoStore for S {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}
