use std::{fmt, sync::Arc};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    builder::WorkerBuilder,
    core::{Core, Inboxes},
    handle::{WorkerError, WorkerHandle, WorkerSummary},
    heartbeat,
    keeper::Keeper,
    roles,
    settle::Settler,
    slot::{self, Row},
};
use crate::{
    client::Client,
    ids::{InstanceId, Nonce, Partition, TaskName, WorkerId},
    store::{ClaimRequest, Claimed, IntoStore, Parking, Store, StoreError, TickReply},
};

/// Runs the tasks of its workflows.
///
/// Handlers run as tasks of the runtime that the worker is started on. A handler that blocks its thread holds up others on
/// that runtime, and the worker's own roles with them, except for heartbeats, which have a thread of their own: claims
/// are kept. Blocking work belongs into `tokio::task::spawn_blocking`.
pub struct Worker {
    core: Arc<Core>,
    settlers: Vec<Settler>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}

/// A task that was driven by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Driven {
    /// The instance.
    pub id: InstanceId,
    /// The task.
    pub task: TaskName,
    /// Which attempt.
    pub attempt: u32,
    /// What became of it.
    pub fate: slot::Fate,
}

impl Worker {
    /// A worker on a store.
    pub fn builder(store: impl IntoStore) -> WorkerBuilder {
        WorkerBuilder::new(store)
    }

    pub(super) fn new(core: Arc<Core>, inboxes: Inboxes) -> Self {
        let settlers = Settler::all(&core, inboxes);
        Self { core, settlers }
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &WorkerId {
        &self.core.config.worker
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.core.store)
    }

    /// A client of the worker's store.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.store())
    }

    /// Runs it in the background, on the current runtime, until the handle says so or the last handle is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use = "the worker stops when its last handle is dropped"]
    pub fn spawn(self) -> WorkerHandle {
        let (outcome, ended) = watch::channel(None);
        let handle = WorkerHandle::new(Arc::clone(&self.core), ended);
        let life = tokio::spawn(roles::run(self.core, self.settlers));
        tokio::spawn(async move {
            let ended = life
                .await
                .unwrap_or_else(|error| Err(roles::join_error(error)));
            outcome.send_replace(Some(ended));
        });
        handle
    }

    /// Runs it until the token is cancelled, then drains as [`WorkerHandle::shutdown`] does. If the future is dropped,
    /// running tasks are dropped and given back as far as the store can be told; else their claims expire.
    ///
    /// # Errors
    /// [`WorkerError`] when it did not end in good order.
    pub async fn run(self, token: CancellationToken) -> Result<WorkerSummary, WorkerError> {
        let stop = self.core.stop.clone();
        let life = roles::run(self.core, self.settlers);
        tokio::pin!(life);
        tokio::select! {
            biased;
            ended = &mut life => return ended,
            () = token.cancelled() => stop.cancel(),
        }
        life.await
    }

    /// Claims one task that is ready, runs it and stores its outcome; `None` when nothing is ready. For tests and for
    /// driving a workflow by hand: no follow-up is claimed with it, and nothing else is running. Claims are extended
    /// while the handler yields, so a handler that blocks longer than the claim TTL may lose its claim.
    ///
    /// If the future is dropped, the claim expires.
    ///
    /// # Errors
    /// The store's, of publishing and claiming.
    pub async fn run_once(&mut self) -> Result<Option<Driven>, StoreError> {
        for workflow in self.core.catalog.workflows() {
            roles::publish_one(&self.core, workflow).await?;
        }
        for partition in Partition::all(self.core.store.partitions()) {
            heartbeat::beat(&self.core, self.core.store.as_ref(), partition).await?;
            for lists in self.core.catalog.lists().chunks(ClaimRequest::MAX_LISTS) {
                let reply = self
                    .core
                    .store
                    .claim(ClaimRequest {
                        partition,
                        worker: self.core.config.worker.clone(),
                        nonce: Nonce::random(),
                        want: 1,
                        lists: lists.to_vec(),
                        ttl: self.core.config.claim_ttl,
                        limits: Arc::clone(self.core.catalog.limits()),
                        parking: Parking::Never,
                    })
                    .await?;
                self.core.saw_epoch(reply.epoch);
                if let Some(claimed) = reply.claims.into_iter().next() {
                    return Ok(Some(self.drive(partition, claimed).await));
                }
            }
        }
        Ok(None)
    }

    /// One keeper's round in every partition, by hand: timers that are due become ready, expired claims are recovered,
    /// old instances removed. A worker that runs does this by itself.
    ///
    /// # Errors
    /// The store's, of the first partition that failed.
    pub async fn tick(&mut self) -> Result<Vec<TickReply>, StoreError> {
        Keeper::new(Arc::clone(&self.core)).tick_all().await
    }

    async fn drive(&mut self, partition: Partition, claimed: Claimed) -> Driven {
        let held = self.core.claims.hold(partition, claimed);
        let claim = Arc::clone(held.claim());
        let settler = &mut self.settlers[usize::from(partition.number())];
        let heartbeats = async {
            loop {
                tokio::time::sleep(self.core.config.heartbeat_interval()).await;
                let store = self.core.store.as_ref();
                if let Err(error) = heartbeat::beat(&self.core, store, partition).await {
                    tracing::warn!(%error, "a heartbeat failed; the task goes on");
                }
            }
        };
        let ticket = &claim.claimed.ticket;
        let mut no_slot = None;
        let (fate, _) = tokio::select! {
            biased;
            done = slot::step(&self.core, held, None, Row::Single, &mut no_slot) => done,
            () = heartbeats => std::future::pending().await,
            () = settler.run() => std::future::pending().await,
        };
        Driven {
            id: ticket.id.clone(),
            task: ticket.task.clone(),
            attempt: claim.claimed.record.attempt,
            fate,
        }
    }
}
