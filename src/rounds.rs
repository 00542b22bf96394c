//! The keeper's rounds in one partition, as a worker and a reaper do them.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    ids::{Partition, WorkerId},
    store::{
        Clocks, Gate, KeeperRole, Recovered, Recovery, Retention, Store, StoreError, TickReply,
        TickRequest,
    },
    time::{Timestamp, millis},
};

/// What a round does, wherever it is done.
#[derive(Debug, Clone)]
pub(crate) struct RoundSettings {
    pub(crate) keeper: Option<(WorkerId, Duration)>,
    pub(crate) promote: u32,
    pub(crate) reap: u32,
    pub(crate) prune: u32,
    pub(crate) crash_delay: Duration,
    pub(crate) ttl: Duration,
    pub(crate) retention: Retention,
    /// How long reaping and pruning wait after an outage or a step of the clock, for heartbeats to come first.
    pub(crate) pause: Duration,
}

/// The rounds in one partition: what is remembered from one to the next.
#[derive(Debug)]
pub(crate) struct Rounds {
    partition: Partition,
    clock: Option<Reading>,
    paused_until: Option<Instant>,
    /// Nobody knows for how long the store has been away: the last round failed, or there was none yet.
    away: bool,
}

/// The store's time, as the last call told it.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time: Timestamp,
    /// When it was asked for; it was read at some time from then on ...
    asked: Instant,
    /// ... until so much later, when the answer came.
    took: Duration,
}

impl Reading {
    /// Whether a difference that the store found between its clock and ours is no more than slow calls make: this one,
    /// or the one that took `took`.
    fn explains(&self, by: i64, took: Duration) -> bool {
        let slack = millis(TickRequest::MAX_STEP);
        -millis(self.took) - slack <= by && by <= millis(took) + slack
    }
}

impl Rounds {
    pub(crate) fn new(partition: Partition) -> Self {
        Self {
            partition,
            clock: None,
            paused_until: None,
            away: false,
        }
    }

    /// Reaps and prunes nothing for a while.
    pub(crate) fn pause(&mut self, duration: Duration) {
        self.paused_until = Some(Instant::now() + duration);
    }

    /// Until the store has answered, and for a pause after that, nothing is reaped or pruned: what a keeper does not know
    /// when it begins is whether the store has been away until now.
    pub(crate) fn begin(&mut self) {
        self.away = true;
    }

    fn gate(&mut self) -> Gate {
        match self.paused_until {
            _ if self.away => Gate::Paused,
            Some(until) if Instant::now() < until => Gate::Paused,
            _ => {
                self.paused_until = None;
                Gate::Open
            }
        }
    }

    /// One round.
    pub(crate) async fn tick(
        &mut self,
        store: &dyn Store,
        settings: &RoundSettings,
    ) -> Result<TickReply, StoreError> {
        let (reap, prune) = match self.gate() {
            Gate::Open => (settings.reap, settings.prune),
            Gate::Paused => (0, 0),
        };
        let asked = Instant::now();
        let expected = self.clock.map(|last| last.time.plus(asked - last.asked));
        let reply = store
            .tick(TickRequest {
                partition: self.partition,
                keeper: settings.keeper.clone(),
                expected,
                promote: settings.promote,
                reap,
                prune,
                crash_delay: settings.crash_delay,
                ttl: settings.ttl,
                retention: settings.retention,
            })
            .await;
        match &reply {
            Ok(reply) => self.learn(reply, asked, settings.pause),
            Err(_) => self.away = true,
        }
        reply
    }

    fn learn(&mut self, reply: &TickReply, asked: Instant, pause: Duration) {
        let reading = Reading {
            time: reply.now,
            asked,
            took: asked.elapsed(),
        };
        let before = self.clock.replace(reading);
        if std::mem::take(&mut self.away) {
            // Claims may have run out while nobody could extend them. The time for it begins now that it can be done.
            self.pause(pause);
        }
        if let Clocks::Stepped { by } = reply.clocks
            && !before.is_some_and(|before| before.explains(by, reading.took))
        {
            tracing::warn!(partition = %self.partition, by_ms = by, "the store's clock moved; reaping pauses");
            self.pause(pause);
        }
        for recovered in &reply.recovered {
            report(recovered);
        }
    }
}

fn report(recovered: &Recovered) {
    let Recovered {
        id,
        task,
        worker,
        recovery,
    } = recovered;
    match recovery {
        Recovery::Requeued { crashes } => {
            tracing::warn!(instance = %id, %task, lost_worker = %worker, crashes, "its worker stopped; the task is ready again");
        }
        Recovery::Failed => {
            tracing::error!(instance = %id, %task, lost_worker = %worker, "its workers stopped too often; the instance failed");
        }
        Recovery::Paused => {
            tracing::error!(instance = %id, %task, lost_worker = %worker, "its workers stopped too often; the instance is paused for a person, who can resume it");
        }
        Recovery::Lost => {
            tracing::info!(instance = %id, %task, worker = %worker, "its worker lives but does not hold it; the task is ready again");
        }
        Recovery::TimedOut => {
            tracing::warn!(instance = %id, %task, worker = %worker, "the attempt went past its deadline");
        }
    }
}

/// Whether a reply says that the caller keeps the partition.
pub(crate) fn is_keeper(reply: &TickReply) -> bool {
    matches!(reply.role, KeeperRole::Keeper)
}
