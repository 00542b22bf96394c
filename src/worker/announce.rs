//! What a worker says of itself, for people: with its heartbeats, and far from its tasks.

use std::{collections::BTreeSet, time::Duration};

use super::core::Core;
use crate::{
    ids::QueueName,
    store::{Announcement, Store},
};

/// The shortest and the longest time between two announcements, whatever the heartbeats are.
const INTERVAL: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));

/// Until dropped. One that fails is made up for by the next.
pub(crate) async fn repeatedly(core: &Core, store: &dyn Store) {
    let interval = core.config.heartbeat_interval();
    let interval = interval.clamp(INTERVAL.0, INTERVAL.1);
    loop {
        if let Err(error) = store.announce(announcement(core, 3 * interval)).await {
            tracing::debug!(worker = %core.config.worker, %error, "the worker could not say how it is");
        }
        tokio::time::sleep(interval).await;
    }
}

/// What to say when the worker leaves.
pub(crate) fn farewell(core: &Core) -> Announcement {
    announcement(core, Duration::ZERO)
}

fn announcement(core: &Core, ttl: Duration) -> Announcement {
    let workflows = core.catalog.workflows();
    let queues = core.catalog.lists().iter().map(|list| list.queue.clone());
    let queues: BTreeSet<QueueName> = queues.collect();
    Announcement {
        id: core.config.worker.clone(),
        host: gethostname::gethostname().to_string_lossy().into_owned(),
        pid: std::process::id(),
        definitions: workflows.map(|w| (w.name().clone(), w.hash())).collect(),
        queues: queues.into_iter().collect(),
        slots: core.config.concurrency,
        busy: core.busy(),
        draining: core.stop.is_cancelled(),
        uptime: core.health.uptime(),
        ttl,
    }
}
