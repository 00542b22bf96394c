//! A worker's life: its roles, its drain, its leave.

use std::{any::Any, collections::HashMap, future::Future, sync::Arc, time::Duration};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, timeout, timeout_at},
};

use super::{
    announce,
    core::Core,
    fetcher::Fetcher,
    handle::{WorkerError, WorkerSummary},
    heartbeat::Heartbeat,
    keeper::Keeper,
    mailbox,
    settle::Settler,
};
use crate::{
    backoff::Backoff,
    ids::Partition,
    store::{ReleaseRequest, Store, StoreError},
    workflow::AnyWorkflow,
};

/// How long the last words to the store may take.
pub(super) const LEAVE: Duration = Duration::from_secs(2);

/// The roles that run as tasks, by name.
#[derive(Debug, Default)]
struct Roles {
    set: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Roles {
    fn spawn(&mut self, name: &'static str, role: impl Future<Output = ()> + Send + 'static) {
        let id = self.set.spawn(role).id();
        self.names.insert(id, name);
    }

    /// Until a role panics. Roles that end do so because there is nothing left for them.
    async fn panicked(&mut self) -> WorkerError {
        while let Some(ended) = self.set.join_next_with_id().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                let role = self.names.get(&error.id()).copied().unwrap_or("role");
                return WorkerError::Panicked {
                    role,
                    message: panic_of(error),
                };
            }
        }
        std::future::pending().await
    }
}

/// Everything from the first heartbeat to the leave. When the future is dropped, the worker stops without a word: its
/// tasks are dropped and its claims expire.
pub(crate) async fn run(
    core: Arc<Core>,
    settlers: Vec<Settler>,
) -> Result<WorkerSummary, WorkerError> {
    let _dropped = (
        core.stop.clone().drop_guard(),
        core.abort.clone().drop_guard(),
    );
    let mut heartbeat = Heartbeat::start(Arc::clone(&core))
        .map_err(|error| WorkerError::NoThread(error.to_string().into()))?;
    let mut roles = Roles::default();
    roles.spawn("mailbox", mailbox::read_forever(Arc::clone(&core)));
    roles.spawn("publisher", publish(Arc::clone(&core)));
    roles.spawn("keeper", Keeper::new(Arc::clone(&core)).run());
    for mut settler in settlers {
        roles.spawn("settler", async move { settler.run().await });
    }
    let mut fetcher = Roles::default();
    fetcher.spawn("fetcher", Fetcher::new(Arc::clone(&core)).run());
    tracing::info!(worker = %core.config.worker, slots = core.config.concurrency, "the worker runs");

    let fault = tokio::select! {
        biased;
        () = core.stop.cancelled() => None,
        error = heartbeat.panicked() => Some(error),
        error = roles.panicked() => Some(error),
        error = fetcher.panicked() => Some(error),
    };
    core.stop.cancel();
    tracing::info!(worker = %core.config.worker, running = core.claims.len(), "the worker stops: no new tasks");
    drain(&core, &mut fetcher).await;
    heartbeat.stop().await;
    drop(roles);
    leave(&core).await;
    let summary = core.summary();
    tracing::info!(worker = %core.config.worker, ?summary, "the worker has ended");
    fault.map_or(Ok(summary), Err)
}

/// Lets tasks finish for as long as the drain timeout, then drops them and gives them back.
async fn drain(core: &Core, fetcher: &mut Roles) {
    let deadline = Instant::now() + core.config.drain_timeout;
    let finished = async {
        // Calls in flight may still bring claims, which have to be given back.
        while let Some(ended) = fetcher.set.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the fetcher ended badly");
            }
        }
        core.tasks.close();
        core.tasks.wait().await;
    };
    tokio::pin!(finished);
    if timeout_at(deadline, &mut finished).await.is_ok() {
        return;
    }
    tracing::warn!(worker = %core.config.worker, running = core.claims.len(), "the drain timeout is over; what still runs is stopped and given back");
    core.abort.cancel();
    if timeout(LEAVE, &mut finished).await.is_err() {
        tracing::error!(worker = %core.config.worker, claims = core.claims.len(), "some claims could not be given back; they expire after their TTL");
    }
}

/// Tells every partition that this worker is gone; without it, its presence expires.
async fn leave(core: &Core) {
    let all = Partition::all(core.store.partitions()).map(|partition| async move {
        let store: &dyn Store = core.store.as_ref();
        let left = store.release(ReleaseRequest {
            partition,
            worker: core.config.worker.clone(),
            items: Vec::new(),
            leave: true,
        });
        if let Ok(Err(error)) = timeout(LEAVE, left).await {
            tracing::warn!(worker = %core.config.worker, %partition, %error, "the leave could not be told");
        }
    });
    let store: &dyn Store = core.store.as_ref();
    let farewell = timeout(LEAVE, store.announce(announce::farewell(core)));
    let (_, told) = tokio::join!(futures_util::future::join_all(all), farewell);
    if let Ok(Err(error)) = told {
        tracing::debug!(worker = %core.config.worker, %error, "the worker is listed until its time is over");
    }
}

/// Publishes the definitions, so that clients can start by name.
async fn publish(core: Arc<Core>) {
    let mut backoff = Backoff::new();
    for workflow in core.catalog.workflows() {
        while let Err(error) = publish_one(&core, workflow).await {
            if backoff.is_fresh() {
                tracing::warn!(worker = %core.config.worker, workflow = %workflow.name(), %error, "the definition cannot be published yet");
            }
            tokio::time::sleep(backoff.delay()).await;
        }
        backoff.reset();
    }
}

/// Publishes one definition.
pub(crate) async fn publish_one(core: &Core, workflow: &AnyWorkflow) -> Result<(), StoreError> {
    let bytes = workflow
        .graph()
        .to_bytes()
        .map_err(|error| StoreError::Protocol {
            call: "publish",
            reason: error.to_string(),
        })?;
    let store: &dyn Store = core.store.as_ref();
    store.publish(workflow.name(), workflow.hash(), bytes).await
}

/// Why the task that a worker is ended without an outcome.
pub(crate) fn join_error(error: JoinError) -> WorkerError {
    if error.is_panic() {
        WorkerError::Panicked {
            role: "life",
            message: panic_of(error),
        }
    } else {
        WorkerError::RuntimeGone
    }
}

fn panic_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_message(panic.as_ref()),
        Err(error) => error.to_string(),
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
