//! Heartbeats: on a thread of their own, so that handlers that block the runtime cannot stop them.

use std::{panic::AssertUnwindSafe, sync::Arc, thread, time::Duration};

use futures_util::{FutureExt, future::join_all};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{announce, config::Heartbeats, core::Core, handle::WorkerError, roles::panic_message};
use crate::{
    backoff::Backoff,
    ids::Partition,
    store::{ExtendRequest, Store, StoreError},
};

/// The thread. It ends when `stop` is cancelled, also when this value is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: CancellationToken,
    /// What it panicked with, if it did. The sender is gone with the thread.
    panic: watch::Receiver<Option<String>>,
}

impl Heartbeat {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread or no event queue for it.
    pub(crate) fn start(core: Arc<Core>) -> std::io::Result<Self> {
        let stop = CancellationToken::new();
        let (told, panic) = watch::channel(None);
        let place = core.config.heartbeats;
        let beats = beat_until(stop.clone(), core, told);
        match place {
            Heartbeats::OwnThread => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                thread::Builder::new()
                    .name("tenure-heartbeat".into())
                    .spawn(move || runtime.block_on(beats))?;
            }
            #[cfg(feature = "testing")]
            Heartbeats::WorkersRuntime => {
                tokio::spawn(beats);
            }
        }
        Ok(Self { stop, panic })
    }

    /// Until it panics: a worker without heartbeats would lose every claim.
    pub(crate) async fn panicked(&mut self) -> WorkerError {
        let told = self.panic.wait_for(Option::is_some).await;
        let message = told.ok().and_then(|message| message.clone());
        match message {
            Some(message) => WorkerError::Panicked {
                role: "heartbeat",
                message,
            },
            None => std::future::pending().await,
        }
    }

    /// Stops it and waits for its end.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        // An error is what is awaited: the sender is gone with the thread.
        while self.panic.changed().await.is_ok() {}
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Tells of its panic.
async fn beat_until(stop: CancellationToken, core: Arc<Core>, told: watch::Sender<Option<String>>) {
    let beats = stop.run_until_cancelled(beat_all(&core));
    if let Err(panic) = AssertUnwindSafe(beats).catch_unwind().await {
        told.send_replace(Some(panic_message(panic.as_ref())));
    }
}

async fn beat_all(core: &Arc<Core>) {
    let store = own_store(core).await;
    let all = Partition::all(store.partitions());
    let beats = join_all(all.map(|partition| beat_forever(core, &store, partition)));
    tokio::join!(beats, announce::repeatedly(core, store.as_ref()));
}

/// A store with connections made on this thread's runtime: one shared with a blocked runtime would be blocked too.
async fn own_store(core: &Core) -> Arc<dyn Store> {
    let mut backoff = Backoff::capped(Duration::from_secs(1));
    loop {
        match core.store.separate().await {
            Ok(store) => return store,
            Err(error) => {
                tracing::warn!(worker = %core.config.worker, %error, "no connection for heartbeats yet");
                tokio::time::sleep(backoff.delay()).await;
            }
        }
    }
}

async fn beat_forever(core: &Core, store: &Arc<dyn Store>, partition: Partition) {
    let interval = core.config.heartbeat_interval();
    // Sooner than the pause of a reaper after an outage, which is one interval.
    let mut backoff = Backoff::capped((interval / 2).min(Duration::from_secs(1)));
    let mut nudged = core.beat_now.subscribe();
    loop {
        nudged.mark_unchanged();
        let wait = match beat(core, store.as_ref(), partition).await {
            Ok(()) => {
                backoff.reset();
                core.present(partition);
                interval
            }
            Err(error) => {
                if backoff.is_fresh() {
                    tracing::warn!(worker = %core.config.worker, %partition, %error, "a heartbeat failed; tasks go on");
                }
                backoff.delay()
            }
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            changed = nudged.changed() => if changed.is_err() { return },
        }
    }
}

/// The most tasks whose progress one heartbeat sends for them.
const OVERDUE: usize = 16;

/// One heartbeat in one partition: presence first, then every claim.
pub(crate) async fn beat(
    core: &Core,
    store: &dyn Store,
    partition: Partition,
) -> Result<(), StoreError> {
    let claims = core.claims.of(partition);
    let mut rest = claims.as_slice();
    loop {
        let (chunk, left) = rest.split_at(rest.len().min(ExtendRequest::MAX_ITEMS));
        let held = store
            .extend(ExtendRequest {
                partition,
                worker: core.config.worker.clone(),
                ttl: core.config.claim_ttl,
                items: chunk.iter().map(|claim| claim.holding()).collect(),
            })
            .await?;
        core.health.heard();
        for (claim, held) in chunk.iter().zip(held) {
            claim.learn(held);
        }
        rest = left;
        if rest.is_empty() {
            break;
        }
    }
    for claim in claims
        .iter()
        .filter(|claim| claim.is_behind())
        .take(OVERDUE)
    {
        claim.overdue_progress(store).await;
    }
    Ok(())
}
