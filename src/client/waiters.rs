//! Who waits for which instance: one mailbox for all handles of a client.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    backoff::Backoff,
    ids::{InstanceId, MailboxId, RunTail},
    store::{Hint, Store},
};

type Key = (InstanceId, RunTail);

/// Who waits for what; the result, if its hint brought it.
type Waiting = BTreeMap<Key, watch::Sender<Option<Bytes>>>;

#[derive(Debug)]
pub(crate) struct Waiters {
    pub(crate) mailbox: MailboxId,
    inner: Arc<Mutex<Waiting>>,
    reader: Mutex<Option<JoinHandle<()>>>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            mailbox: MailboxId::unique(),
            inner: Arc::default(),
            reader: Mutex::new(None),
        }
    }

    /// Listens for the end of a run. The mailbox is opened with the first listener; hints that come before it is open
    /// are made up for when it is.
    pub(crate) fn listen(&self, store: &Arc<dyn Store>, id: &InstanceId, tail: RunTail) -> Waiter {
        self.open(store);
        let key = (id.clone(), tail);
        let receiver = lock(&self.inner)
            .entry(key.clone())
            .or_insert_with(|| watch::channel(None).0)
            .subscribe();
        Waiter {
            key,
            receiver: Some(receiver),
            inner: Arc::clone(&self.inner),
        }
    }

    /// Opens the mailbox, also again when the runtime that read it is gone.
    fn open(&self, store: &Arc<dyn Store>) {
        let mut reader = lock(&self.reader);
        if reader.as_ref().is_none_or(JoinHandle::is_finished) {
            let (store, mailbox) = (Arc::clone(store), self.mailbox.clone());
            let inner = Arc::clone(&self.inner);
            *reader = Some(tokio::spawn(async move {
                read_forever(&store, &mailbox, &inner).await;
            }));
        }
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        if let Some(reader) = lock(&self.reader).take() {
            reader.abort();
        }
    }
}

async fn read_forever(store: &Arc<dyn Store>, mailbox: &MailboxId, inner: &Mutex<Waiting>) {
    let mut backoff = Backoff::new();
    loop {
        match store.mailbox(mailbox.clone()).await {
            Ok(mut hints) => {
                while let Some(hint) = hints.next().await {
                    backoff.reset();
                    match hint {
                        Hint::Done { id, tail, result } => wake(inner, &(id, tail), result),
                        Hint::Subscribed => wake_all(inner),
                        Hint::Ready { .. } | Hint::Timer { .. } | Hint::Cancelled { .. } => {}
                    }
                }
            }
            Err(error) if backoff.is_fresh() => {
                tracing::warn!(%mailbox, %error, "the mailbox cannot be opened; results are found by polling");
            }
            Err(_) => {}
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

/// Wakes the listeners of one run.
fn wake(inner: &Mutex<Waiting>, key: &Key, result: Option<Bytes>) {
    if let Some(sender) = lock(inner).get(key) {
        sender.send_modify(|known| *known = known.take().or(result));
    }
}

/// Hints may have been missed: everybody looks.
fn wake_all(inner: &Mutex<Waiting>) {
    for sender in lock(inner).values() {
        sender.send_modify(|_| ());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One listener.
#[derive(Debug)]
pub(crate) struct Waiter {
    key: Key,
    receiver: Option<watch::Receiver<Option<Bytes>>>,
    inner: Arc<Mutex<Waiting>>,
}

impl Waiter {
    /// Hints before now are of no interest.
    pub(crate) fn reset(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            receiver.mark_unchanged();
        }
    }

    /// Until the next hint; the result, if it brings that.
    pub(crate) async fn hint(&mut self) -> Option<Bytes> {
        if let Some(receiver) = &mut self.receiver
            && receiver.changed().await.is_ok()
        {
            return receiver.borrow_and_update().clone();
        }
        std::future::pending().await
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.receiver = None;
        let mut waiting = lock(&self.inner);
        if waiting
            .get(&self.key)
            .is_some_and(|sender| sender.receiver_count() == 0)
        {
            waiting.remove(&self.key);
        }
    }
}
