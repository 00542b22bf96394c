//! The worker's mailbox: hints from scripts to the roles.

use std::sync::Arc;

use futures_util::StreamExt;

use super::core::Core;
use crate::{backoff::Backoff, store::Hint};

/// Reads the mailbox until dropped. Without it the worker works by polling.
pub(crate) async fn read_forever(core: Arc<Core>) {
    let mut backoff = Backoff::new();
    loop {
        match core.store.mailbox(core.config.worker.clone().into()).await {
            Ok(mut hints) => {
                while let Some(hint) = hints.next().await {
                    backoff.reset();
                    deliver(&core, hint);
                }
            }
            Err(error) if backoff.is_fresh() => {
                tracing::warn!(worker = %core.config.worker, %error, "the mailbox cannot be opened; new work is found by polling");
            }
            Err(_) => {}
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

fn deliver(core: &Core, hint: Hint) {
    match hint {
        Hint::Ready { partition } => core.fetch.ring(|news| {
            news.ready.insert(partition);
        }),
        Hint::Timer { partition } => core.keeper.ring(|news| {
            news.timers.insert(partition);
        }),
        Hint::Cancelled { id, tail } => core.claims.cancel(&id, tail),
        Hint::Subscribed => {
            core.beat_now.send_modify(|n| *n = n.wrapping_add(1));
            core.keeper.ring(|news| news.reconnected = true);
            core.fetch.ring(|news| news.look_everywhere = true);
        }
        Hint::Done { .. } => {}
    }
}
