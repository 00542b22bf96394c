use std::{fmt, sync::Arc};

use tokio::sync::watch;

use super::{core::Core, health::Health};
use crate::{client::Client, ids::WorkerId, store::Store};

/// What a worker did, when it has ended in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerSummary {
    /// How many tasks it ran to a stored outcome, failures included.
    pub settled: u64,
    /// How many tasks were still running at the drain deadline and were given back.
    pub given_back: u64,
}

/// Why a worker ended otherwise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// One of the worker's own parts panicked; this is a fault of Tenure. Its tasks were drained as in a shutdown.
    #[error("the worker's {role} panicked: {message}")]
    Panicked {
        /// Which part.
        role: &'static str,
        /// The panic's message.
        message: String,
    },
    /// The runtime was shut down under the worker.
    #[error(
        "the worker's runtime was shut down before the worker; its claims expire after their TTL"
    )]
    RuntimeGone,
    /// The system has no thread for the heartbeats.
    #[error("the heartbeat thread cannot be started: {0}")]
    NoThread(Arc<str>),
}

/// A running worker. Cheap to clone; when the last clone is dropped the worker shuts down gracefully.
#[derive(Clone)]
pub struct WorkerHandle {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    ended: watch::Receiver<Option<Result<WorkerSummary, WorkerError>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.stop.cancel();
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle")
            .field("worker", self.id())
            .finish_non_exhaustive()
    }
}

impl WorkerHandle {
    pub(crate) fn new(
        core: Arc<Core>,
        ended: watch::Receiver<Option<Result<WorkerSummary, WorkerError>>>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner { core, ended }),
        }
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &WorkerId {
        &self.inner.core.config.worker
    }

    /// Tells the worker to stop: it claims nothing more, lets running tasks finish for at most the drain timeout, gives
    /// the rest back and leaves. Returns at once, can be repeated, and never fails; [`WorkerHandle::join`] waits for the
    /// end.
    pub fn shutdown(&self) {
        self.inner.core.stop.cancel();
    }

    /// Waits until the worker has ended. Every caller gets the outcome. Dropping the future changes nothing.
    ///
    /// # Errors
    /// [`WorkerError`] when it did not end in good order.
    pub async fn join(&self) -> Result<WorkerSummary, WorkerError> {
        let mut ended = self.inner.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(WorkerError::RuntimeGone)),
            Err(_) => Err(WorkerError::RuntimeGone),
        }
    }

    /// How the worker is. Does not ask the store.
    #[must_use]
    pub fn health(&self) -> Health {
        let ended = self.inner.ended.borrow().is_some();
        self.inner.core.health_now(ended)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.core.store)
    }

    /// A client of the worker's store.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.store())
    }
}
