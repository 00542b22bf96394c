use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, mpsc, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    catalog::Catalog,
    claims::Claims,
    config::Config,
    fetcher::FetchBell,
    handle::WorkerSummary,
    health::{Contact, Health},
    keeper::KeeperBell,
    settle::{self, Commit},
};
use crate::{
    ids::Partition,
    store::{SettleReply, Settlement, Store, StoreError},
    task::{Layer, States},
};

/// What the roles of one worker share.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) states: Arc<States>,
    /// Around each handler, the outermost first.
    pub(crate) layers: Vec<Arc<dyn Layer>>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) tasks: TaskTracker,
    pub(crate) fetch: FetchBell,
    pub(crate) keeper: KeeperBell,
    /// Heartbeats are wanted at once when it changes.
    pub(crate) beat_now: watch::Sender<u64>,
    pub(crate) health: Contact,
    /// No more claims; what runs may finish.
    pub(crate) stop: CancellationToken,
    /// What still runs is dropped and given back.
    pub(crate) abort: CancellationToken,
    slots: Arc<Semaphore>,
    present: Vec<CancellationToken>,
    epoch: AtomicU64,
    settled: AtomicU64,
    given_back: AtomicU64,
    settlers: Vec<mpsc::Sender<Commit>>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Where the settlers read, one for each partition.
pub(crate) type Inboxes = Vec<mpsc::Receiver<Commit>>;

impl Core {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        config: Config,
        catalog: Catalog,
        (states, layers): (States, Vec<Arc<dyn Layer>>),
    ) -> (Self, Inboxes) {
        let (settlers, inboxes) = Partition::all(store.partitions())
            .map(|_| mpsc::channel(256))
            .unzip();
        let claims = Arc::new(Claims::new(Arc::clone(&store)));
        let core = Self {
            slots: Arc::new(Semaphore::new(config.concurrency)),
            present: Partition::all(store.partitions())
                .map(|_| CancellationToken::new())
                .collect(),
            store,
            config,
            catalog,
            states: Arc::new(states),
            layers,
            claims,
            tasks: TaskTracker::new(),
            fetch: FetchBell::default(),
            keeper: KeeperBell::default(),
            beat_now: watch::channel(0).0,
            health: Contact::new(),
            stop: CancellationToken::new(),
            abort: CancellationToken::new(),
            epoch: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            given_back: AtomicU64::new(0),
            settlers,
        };
        (core, inboxes)
    }

    /// How many tasks could be claimed now.
    pub(crate) fn free_slots(&self) -> usize {
        self.slots.available_permits()
    }

    /// Slots for tasks that are about to be claimed; none for none.
    pub(crate) fn reserve(
        &self,
        count: usize,
    ) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(None);
        }
        Arc::clone(&self.slots)
            .try_acquire_many_owned(count)
            .map(Some)
    }

    /// A slot for a task that has left its own, before any new one is claimed; none when the worker stops.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned();
        self.stop.run_until_cancelled(slot).await?.ok()
    }

    /// Gives a slot back to those that claim.
    pub(crate) fn leave(&self, slot: Option<OwnedSemaphorePermit>) {
        if slot.is_some() {
            drop(slot);
            self.fetch.ring(|_| {});
        }
    }

    /// How many slots are in use, or a little more: tasks leave theirs before their claims.
    pub(crate) fn busy(&self) -> usize {
        self.claims.len().min(self.config.concurrency)
    }

    /// The store knows that this worker lives.
    pub(crate) fn present(&self, partition: Partition) {
        let present = &self.present[usize::from(partition.number())];
        if !present.is_cancelled() {
            present.cancel();
            self.fetch.ring(|_| {});
        }
    }

    /// Whether a first heartbeat got through: before it nothing is claimed, since a claim of a worker that is not present
    /// counts as a crash when it expires.
    pub(crate) fn is_present(&self, partition: Partition) -> bool {
        self.present[usize::from(partition.number())].is_cancelled()
    }

    /// The epoch as the store said it last.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(crate) fn saw_epoch(&self, epoch: u64) {
        self.epoch.fetch_max(epoch, Ordering::Relaxed);
    }

    pub(crate) fn count_settled(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_given_back(&self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self) -> WorkerSummary {
        WorkerSummary {
            settled: self.settled.load(Ordering::Relaxed),
            given_back: self.given_back.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn health_now(&self, ended: bool) -> Health {
        Health {
            last_contact: self.health.last(),
            slots: self.config.concurrency,
            running: self.claims.len(),
            draining: self.stop.is_cancelled(),
            ended,
            keeper_of: self.health.keeper_of.load(Ordering::Relaxed),
        }
    }

    /// Stores what became of a task, with all that ends meanwhile. A slot that comes along is free when the call begins; that
    /// of a large result when the call has ended.
    pub(crate) async fn settle(
        &self,
        partition: Partition,
        settlement: Settlement,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Result<SettleReply, SettleFailure> {
        if settle::is_large(&settlement) {
            let reply = settle::alone(self, partition, settlement).await;
            self.leave(slot);
            return reply
                .ok_or(SettleFailure::Stopped)?
                .map_err(|error| SettleFailure::Store(Arc::new(error)));
        }
        let (reply, answer) = oneshot::channel();
        let settler = &self.settlers[usize::from(partition.number())];
        settler
            .send(Commit {
                settlement,
                slot,
                reply,
            })
            .await
            .map_err(|_| SettleFailure::Stopped)?;
        answer
            .await
            .map_err(|_| SettleFailure::Stopped)?
            .map_err(SettleFailure::Store)
    }
}

/// Why a settlement has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettleFailure {
    /// The store cannot digest it, however often it is asked.
    #[error("{0}")]
    Store(Arc<StoreError>),
    /// The worker was dropped.
    #[error("the worker was dropped")]
    Stopped,
}
