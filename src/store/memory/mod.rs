//! In memory: for tests, for trying things out, and as the definition of what a transition does.
//!
//! Each transition is a function over the state of one partition and a time; nothing of it can be seen half done.

mod call;
mod claim;
mod control;
mod extend;
mod inspect;
mod listing;
mod mailbox;
mod note;
mod release;
mod retry;
mod scored;
mod settle;
mod signal;
mod start;
mod state;
mod tick;

use std::{
    fmt,
    num::NonZeroU16,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::state::Damage;
use self::{
    call::Call,
    mailbox::Mailboxes,
    state::{Instance, Share, State},
};
use super::{
    Announcement, ClaimReply, ClaimRequest, ControlReply, ControlRequest, ExtendRequest, Header,
    Held, Hints, NoteReply, NoteRequest, ReleaseReply, ReleaseRequest, RetryRequest, SettleReply,
    SettleRequest, SignalReply, SignalRequest, StartItem, StartReply, StatusEvents, Store,
    StoreError, TickReply, TickRequest, types::Bounds,
};
use crate::{
    ids::{
        DefinitionHash, InstanceId, MailboxId, Partition, RunId, TaskName, Ticket, WorkflowName,
    },
    time::{Clock, Timestamp},
};

/// The default of [`MemoryStoreBuilder::max_payload`]: 16 MiB.
const MAX_PAYLOAD: usize = 16 << 20;

/// A store in the memory of this process. Clones share their state; it is gone with the last of them.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    mailboxes: Arc<Mutex<Mailboxes>>,
    clock: Clock,
    partitions: NonZeroU16,
    max_payload: usize,
}

impl MemoryStore {
    /// An empty store with one partition, on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An empty store with one partition, on this clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        Self::builder().clock(clock).build()
    }

    /// An empty store with other settings.
    #[must_use]
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder {
            clock: Clock::system(),
            partitions: NonZeroU16::MIN,
            max_payload: MAX_PAYLOAD,
        }
    }

    /// Makes a stored record unreadable, as a newer version or a slip of a hand would: for tests. Does nothing when
    /// there is no such instance.
    #[doc(hidden)]
    pub fn damage(&self, id: &InstanceId, damage: Damage) {
        let mut state = self.state();
        let share = state.share(id.partition(self.partitions));
        if let Some(instance) = share.instances.get_mut(id) {
            instance.damage = Some(damage);
        }
    }

    /// Deletes the claim key of a task, as a person with `redis-cli` may: for tests.
    #[doc(hidden)]
    pub fn delete_claim_key(&self, id: &InstanceId, task: &TaskName) {
        let mut state = self.state();
        let share = state.share(id.partition(self.partitions));
        share.claims.remove(&(id.clone(), task.clone()));
    }

    /// Puts an entry into its ready list whatever its task does: it is only a hint, which may stand there twice or come
    /// late. For tests.
    #[doc(hidden)]
    pub fn repeat_entry(&self, ticket: &Ticket) {
        let partition = ticket.id.partition(self.partitions);
        self.transition(partition, |call| call.append(ticket.clone()));
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            partitions: self.partitions,
            max_payload: self.max_payload,
        }
    }

    /// A panic in a transition leaves what it had done; going on is better than to end every other worker too.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mailboxes(&self) -> MutexGuard<'_, Mailboxes> {
        self.mailboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One transition: atomic, at one time, its hints sent before anybody else sees what it did.
    fn transition<R>(&self, partition: Partition, change: impl FnOnce(&mut Call) -> R) -> R {
        let mut state = self.state();
        let mut call = Call::new(state.share(partition), self.clock.now());
        let reply = change(&mut call);
        let outbox = call.finish();
        self.mailboxes().send(outbox);
        reply
    }

    fn look<R>(
        &self,
        partition: Partition,
        look: impl FnOnce(&Share, Timestamp) -> R,
    ) -> Result<R, StoreError> {
        self.bounds().partition(partition)?;
        let mut state = self.state();
        Ok(look(state.share(partition), self.clock.now()))
    }

    fn read<R>(
        &self,
        id: &InstanceId,
        read: impl FnOnce(&Instance) -> Result<R, StoreError>,
    ) -> Result<Option<R>, StoreError> {
        let mut state = self.state();
        let share = state.share(id.partition(self.partitions));
        share.instances.get(id).map(read).transpose()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("partitions", &self.partitions)
            .field("max_payload", &self.max_payload)
            .finish_non_exhaustive()
    }
}

/// Settings of a [`MemoryStore`].
#[derive(Debug, Clone)]
pub struct MemoryStoreBuilder {
    clock: Clock,
    partitions: NonZeroU16,
    max_payload: usize,
}

impl MemoryStoreBuilder {
    /// Where the time comes from. Default: the machine's clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// How many partitions there are. Default: 1.
    #[must_use]
    pub fn partitions(mut self, partitions: NonZeroU16) -> Self {
        self.partitions = partitions;
        self
    }

    /// The largest payload, in bytes. Default: 16 MiB.
    #[must_use]
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// The store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        MemoryStore {
            state: Arc::new(Mutex::new(State::new(self.partitions))),
            mailboxes: Arc::default(),
            clock: self.clock,
            partitions: self.partitions,
            max_payload: self.max_payload,
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn partitions(&self) -> NonZeroU16 {
        self.partitions
    }

    fn max_payload(&self) -> usize {
        self.max_payload
    }

    async fn start(
        &self,
        partition: Partition,
        items: Vec<StartItem>,
    ) -> Result<Vec<StartReply>, StoreError> {
        self.bounds().start(partition, &items)?;
        self.transition(partition, |call| start::start(call, &items))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimReply, StoreError> {
        self.bounds().claim(&request)?;
        Ok(self.transition(request.partition, |call| claim::claim(call, &request)))
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Held>, StoreError> {
        self.bounds().extend(&request)?;
        Ok(self.transition(request.partition, |call| extend::extend(call, &request)))
    }

    async fn settle(&self, request: SettleRequest) -> Result<Vec<SettleReply>, StoreError> {
        self.bounds().settle(&request)?;
        Ok(self.transition(request.partition, |call| settle::settle(call, &request)))
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, StoreError> {
        self.bounds().release(&request)?;
        Ok(self.transition(request.partition, |call| release::release(call, &request)))
    }

    async fn note(&self, request: NoteRequest) -> Result<NoteReply, StoreError> {
        self.bounds().note(&request)?;
        Ok(self.transition(request.partition, |call| note::note(call, &request)))
    }

    async fn tick(&self, request: TickRequest) -> Result<TickReply, StoreError> {
        self.bounds().tick(&request)?;
        Ok(self.transition(request.partition, |call| tick::tick(call, &request)))
    }

    async fn signal(&self, request: SignalRequest) -> Result<SignalReply, StoreError> {
        self.bounds().signal(&request)?;
        let partition = request.id.partition(self.partitions);
        self.transition(partition, |call| signal::signal(call, &request))
    }

    async fn control(&self, request: ControlRequest) -> Result<ControlReply, StoreError> {
        self.bounds().control(&request)?;
        let partition = request.id.partition(self.partitions);
        self.transition(partition, |call| control::control(call, &request))
    }

    async fn retry(&self, request: RetryRequest) -> Result<ControlReply, StoreError> {
        self.bounds().retry(&request)?;
        let partition = request.id.partition(self.partitions);
        self.transition(partition, |call| retry::retry(call, &request))
    }

    async fn watch(
        &self,
        id: &InstanceId,
        run: RunId,
        mailbox: &MailboxId,
    ) -> Result<Option<Header>, StoreError> {
        let mut state = self.state();
        let share = state.share(id.partition(self.partitions));
        let Some(instance) = share.instances.get_mut(id) else {
            return Ok(None);
        };
        if instance.is_of_other_format() {
            instance.check(id)?;
        }
        control::watch(instance, run, mailbox);
        Ok(Some(instance.header()))
    }

    async fn publish(
        &self,
        workflow: &WorkflowName,
        hash: DefinitionHash,
        definition: Bytes,
    ) -> Result<(), StoreError> {
        self.state().publish(workflow, hash, definition);
        Ok(())
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        listing::announce(&mut self.state(), announcement, self.clock.now());
        Ok(())
    }

    async fn definition(
        &self,
        workflow: &WorkflowName,
    ) -> Result<Option<(DefinitionHash, Bytes)>, StoreError> {
        Ok(self.state().definition(workflow))
    }

    async fn published(&self, hash: DefinitionHash) -> Result<Option<Bytes>, StoreError> {
        Ok(self.state().definitions.get(&hash).cloned())
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn mailbox(&self, mailbox: MailboxId) -> Result<Hints, StoreError> {
        Ok(self.mailboxes().open(mailbox))
    }

    async fn events(&self) -> Result<StatusEvents, StoreError> {
        Ok(self.mailboxes().events())
    }
}
