//! What running tasks write down: their progress, at most once a second and before their settlement, and the values
//! that the tasks of an instance share, at once. A task that writes nothing costs nothing.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::claims::Claim;
use crate::{
    backoff::Backoff,
    ids::{Partition, SharedKey, ValueField},
    store::{Held, NoteReply, NoteRequest, Store, StoreError},
    task::{StateError, Writer},
};

/// The shortest time between two notes of progress of one task.
const PACE: Duration = Duration::from_secs(1);
/// From this age on a heartbeat sends what the task's own runtime did not: it is blocked.
const BEHIND: Duration = Duration::from_secs(2);

/// The notes of one claim.
#[derive(Debug)]
pub(crate) struct Notes {
    store: Arc<dyn Store>,
    unsent: Mutex<Option<Unsent>>,
    versions: AtomicU64,
    said: Notify,
    /// How many notes were sent: one after the other, so that none overtakes one that was made later.
    sent: tokio::sync::Mutex<u64>,
}

/// The last progress, until it is stored.
#[derive(Debug, Clone)]
struct Unsent {
    value: Bytes,
    /// How long there has been some.
    since: Instant,
    /// Tells it from what was said later.
    version: u64,
}

impl Notes {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            unsent: Mutex::new(None),
            versions: AtomicU64::new(0),
            said: Notify::new(),
            sent: tokio::sync::Mutex::new(0),
        }
    }

    fn unsent(&self) -> MutexGuard<'_, Option<Unsent>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stored(&self, version: u64) {
        let mut unsent = self.unsent();
        match &mut *unsent {
            Some(newer) if newer.version != version => newer.since = Instant::now(),
            stored => *stored = None,
        }
    }
}

impl Claim {
    fn partition(&self, store: &dyn Store) -> Partition {
        self.claimed.ticket.id.partition(store.partitions())
    }

    fn progress_field(&self) -> ValueField {
        ValueField::Progress(self.claimed.ticket.task.clone())
    }

    /// Sends one note, and the progress that is waiting with it.
    async fn send(
        &self,
        store: &dyn Store,
        sent: &mut u64,
        shared: Option<(SharedKey, Bytes)>,
    ) -> Result<NoteReply, StoreError> {
        let unsent = self.notes.unsent().clone();
        let version = unsent.as_ref().map(|unsent| unsent.version);
        let said = unsent.map(|unsent| (self.progress_field(), unsent.value));
        let shared = shared.map(|(key, value)| (ValueField::Shared(key), value));
        let values: Vec<_> = said.into_iter().chain(shared).collect();
        if values.is_empty() {
            return Ok(NoteReply::Noted);
        }
        *sent += 1;
        let reply = store
            .note(NoteRequest {
                partition: self.partition(store),
                holding: self.holding(),
                number: *sent,
                values,
            })
            .await;
        match reply {
            Ok(NoteReply::Lost | NoteReply::Gone) => self.learn(Held::Lost),
            Ok(NoteReply::Cancelled) => self.learn(Held::Cancelled),
            Ok(NoteReply::Noted) => version.into_iter().for_each(|v| self.notes.is_stored(v)),
            Ok(NoteReply::Full) | Err(_) => {}
        }
        reply
    }

    /// Sends progress while the handler runs, from time to time.
    async fn send_progress(&self) {
        loop {
            self.notes.said.notified().await;
            let mut sent = self.notes.sent.lock().await;
            if let Err(error) = self.send(self.notes.store.as_ref(), &mut sent, None).await {
                tracing::debug!(%error, "progress cannot be noted yet");
                self.notes.said.notify_one();
            }
            drop(sent);
            sleep(PACE).await;
        }
    }

    /// Sends the last progress before the task is settled, for as long as the claim holds.
    pub(crate) async fn last_progress(&self) {
        if self.notes.unsent().is_none() {
            return;
        }
        let sending = async {
            let mut sent = self.notes.sent.lock().await;
            let mut backoff = Backoff::new();
            while let Err(error) = self.send(self.notes.store.as_ref(), &mut sent, None).await {
                if !error.is_retryable() {
                    tracing::warn!(%error, "the last progress is not noted");
                    return;
                }
                sleep(backoff.delay()).await;
            }
        };
        tokio::select! {
            biased;
            () = self.lost.cancelled() => {}
            () = self.cancelled.cancelled() => {}
            () = sending => {}
        }
    }

    /// Whether progress waits for longer than it should.
    pub(crate) fn is_behind(&self) -> bool {
        let unsent = self.notes.unsent();
        unsent
            .as_ref()
            .is_some_and(|unsent| unsent.since.elapsed() >= BEHIND)
    }

    /// Sends progress that waits because the task blocks its runtime; with the heartbeat's own store.
    pub(crate) async fn overdue_progress(&self, store: &dyn Store) {
        // Whoever sends just now may stand on the blocked runtime: a heartbeat waits for nobody.
        if let Ok(mut sent) = self.notes.sent.try_lock()
            && let Err(error) = self.send(store, &mut sent, None).await
        {
            tracing::debug!(%error, "progress cannot be noted yet");
        }
    }
}

/// Work on a task, and beside it the sending of its progress.
pub(crate) async fn beside<T>(claim: &Claim, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        () = claim.send_progress() => std::future::pending().await,
    }
}

impl Writer for Claim {
    fn progress(&self, value: Bytes) {
        let mut unsent = self.notes.unsent();
        let before = unsent.as_ref();
        *unsent = Some(Unsent {
            value,
            since: before.map_or_else(Instant::now, |before| before.since),
            version: self.notes.versions.fetch_add(1, Ordering::Relaxed),
        });
        drop(unsent);
        self.notes.said.notify_one();
    }

    fn set(&self, key: SharedKey, value: Bytes) -> BoxFuture<'_, Result<(), StateError>> {
        async move {
            let mut sent = self.notes.sent.lock().await;
            let mut backoff = Backoff::new();
            loop {
                let shared = Some((key.clone(), value.clone()));
                match self
                    .send(self.notes.store.as_ref(), &mut sent, shared)
                    .await
                {
                    Ok(NoteReply::Noted) => return Ok(()),
                    Ok(NoteReply::Full) => {
                        let limit = NoteRequest::MAX_SHARED;
                        return Err(StateError::Full { limit });
                    }
                    Ok(NoteReply::Lost | NoteReply::Cancelled | NoteReply::Gone) => {
                        return Err(StateError::Lost);
                    }
                    // The bounds of the task end it.
                    Err(error) if error.is_retryable() => sleep(backoff.delay()).await,
                    Err(error) => return Err(StateError::Store(Arc::new(error))),
                }
            }
        }
        .boxed()
    }

    fn read(&self, field: ValueField) -> BoxFuture<'_, Result<Option<Bytes>, StateError>> {
        async move {
            if field == self.progress_field()
                && let Some(unsent) = &*self.notes.unsent()
            {
                return Ok(Some(unsent.value.clone()));
            }
            let ticket = &self.claimed.ticket;
            let mut backoff = Backoff::new();
            loop {
                let fields = std::slice::from_ref(&field);
                let store = self.notes.store.as_ref();
                match store.values(&ticket.id, self.claimed.run, fields).await {
                    Ok(values) => return Ok(values.into_iter().next().flatten()),
                    Err(error) if error.is_retryable() => sleep(backoff.delay()).await,
                    Err(error) => return Err(StateError::Store(Arc::new(error))),
                }
            }
        }
        .boxed()
    }
}
