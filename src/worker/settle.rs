//! Group commit: what ends while a call is in flight goes with the next one, so that under load one call carries many
//! settlements and their follow-up claims. Under load a second call is in flight: the store has work while the worker
//! reads the answers of the first. What goes leaves its slot to the next task, so that claims are on their way meanwhile.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, oneshot},
    time::sleep,
};

use super::{
    core::{Core, Inboxes},
    roles::LEAVE,
};
use crate::{
    backoff::Backoff,
    ids::Partition,
    store::{SettleReply, SettleRequest, Settlement, StoreError, Verdict},
};

/// A settlement on its way.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) settlement: Settlement,
    /// The task's, unless a follow-up may need it.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    pub(crate) reply: oneshot::Sender<Result<SettleReply, Arc<StoreError>>>,
}

/// The role, one for each partition.
#[derive(Debug)]
pub(crate) struct Settler {
    core: Arc<Core>,
    partition: Partition,
    inbox: mpsc::Receiver<Commit>,
    waiting: VecDeque<Commit>,
}

impl Settler {
    /// The most bytes of results in one call of several settlements.
    const MAX_BYTES: usize = 1 << 20;

    /// One for each partition, in their order.
    pub(crate) fn all(core: &Arc<Core>, inboxes: Inboxes) -> Vec<Self> {
        Partition::all(core.store.partitions())
            .zip(inboxes)
            .map(|(partition, inbox)| Self {
                core: Arc::clone(core),
                partition,
                inbox,
                waiting: VecDeque::new(),
            })
            .collect()
    }

    /// The most calls in flight.
    const CALLS: usize = 2;
    /// How many settlements are worth a call beside another.
    const WORTH: usize = 32;

    /// Until nobody can send any more and all is answered.
    pub(crate) async fn run(&mut self) {
        let mut calls = FuturesUnordered::new();
        let mut open = true;
        loop {
            while self.is_due(calls.len()) {
                let mut batch = self.take_batch();
                self.leave_slots(&mut batch);
                calls.push(commit(Arc::clone(&self.core), self.partition, batch));
            }
            tokio::select! {
                biased;
                Some(()) = calls.next() => {}
                commit = self.inbox.recv(), if open => match commit {
                    Some(commit) => self.waiting.push_back(commit),
                    None => open = false,
                },
                else => return,
            }
            while let Ok(commit) = self.inbox.try_recv() {
                self.waiting.push_back(commit);
            }
        }
    }

    /// Whether what waits goes now: at once when no call is in flight.
    fn is_due(&self, in_flight: usize) -> bool {
        let least = if in_flight == 0 { 1 } else { Self::WORTH };
        in_flight < Self::CALLS && self.waiting.len() >= least
    }

    /// Others may run in them now: of those that left there are no more than the calls in flight can hold.
    fn leave_slots(&self, batch: &mut [Commit]) {
        let left: Vec<_> = batch.iter_mut().filter_map(|c| c.slot.take()).collect();
        if !left.is_empty() {
            // All of them before the word, so that one call claims for all.
            drop(left);
            self.core.fetch.ring(|_| {});
        }
    }

    fn take_batch(&mut self) -> Vec<Commit> {
        let mut bytes = 0;
        let mut count = 0;
        for commit in self.waiting.iter().take(SettleRequest::MAX_ITEMS) {
            bytes += output_len(&commit.settlement);
            if count > 0 && bytes > Self::MAX_BYTES {
                break;
            }
            count += 1;
        }
        self.waiting.drain(..count).collect()
    }
}

/// Stores a batch, however long the store is away: the items stay the same, so a repeat is safe.
async fn commit(core: Arc<Core>, partition: Partition, batch: Vec<Commit>) {
    match send(&core, partition, items(&batch)).await {
        Ok(replies) => answer(batch, replies),
        Err(error) if batch.len() == 1 => answer_error(batch, error),
        // One item that the store cannot digest must not take the others with it.
        Err(_) => {
            for commit in batch {
                let one = vec![commit];
                match send(&core, partition, items(&one)).await {
                    Ok(replies) => answer(one, replies),
                    Err(error) => answer_error(one, error),
                }
            }
        }
    }
}

fn items(batch: &[Commit]) -> Vec<Settlement> {
    batch.iter().map(|c| c.settlement.clone()).collect()
}

/// Whether it may succeed later. A user or a right that is missing is given back by somebody who sees the warning, and
/// the results must be there then.
fn may_heal(error: &StoreError) -> bool {
    error.is_retryable() || matches!(error, StoreError::Login | StoreError::Right { .. })
}

/// One call, repeated for as long as it may succeed.
async fn send(
    core: &Core,
    partition: Partition,
    items: Vec<Settlement>,
) -> Result<Vec<SettleReply>, StoreError> {
    let request = SettleRequest {
        partition,
        worker: core.config.worker.clone(),
        ttl: core.config.claim_ttl,
        items,
    };
    let mut backoff = Backoff::new();
    loop {
        match core.store.settle(request.clone()).await {
            Ok(replies) => {
                core.health.heard();
                return Ok(replies);
            }
            Err(error) if may_heal(&error) => {
                if backoff.is_fresh() {
                    tracing::warn!(worker = %core.config.worker, %partition, results = request.items.len(), %error, "results cannot be stored yet; they are kept and sent again");
                }
                sleep(backoff.delay()).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// From this many bytes on a result goes alone: a transfer that takes long, or that the line never lets through, must
/// hold up no other.
const LARGE: usize = 256 * 1024;

/// Whether a settlement does not go through the settler.
pub(crate) fn is_large(settlement: &Settlement) -> bool {
    output_len(settlement) > LARGE
}

/// Stores one large result; nothing when the worker stops and has no more time.
pub(crate) async fn alone(
    core: &Core,
    partition: Partition,
    settlement: Settlement,
) -> Option<Result<SettleReply, StoreError>> {
    let too_late = async {
        core.abort.cancelled().await;
        sleep(LEAVE).await;
    };
    let replies = tokio::select! {
        biased;
        replies = send(core, partition, vec![settlement]) => replies,
        () = too_late => return None,
    };
    replies
        .map(|replies| replies.into_iter().next())
        .transpose()
}

fn output_len(settlement: &Settlement) -> usize {
    match &settlement.verdict {
        Verdict::Completed {
            output: Some(output),
            ..
        } => output.len(),
        Verdict::Completed { output: None, .. }
        | Verdict::Wait(_)
        | Verdict::Retry { .. }
        | Verdict::Failed { .. }
        | Verdict::Paused { .. } => 0,
    }
}

fn answer(batch: Vec<Commit>, replies: Vec<SettleReply>) {
    for (commit, reply) in batch.into_iter().zip(replies) {
        // The task is gone only when the worker was dropped; then nobody wants to know.
        commit.reply.send(Ok(reply)).ok();
    }
}

fn answer_error(batch: Vec<Commit>, error: StoreError) {
    let error = Arc::new(error);
    for commit in batch {
        commit.reply.send(Err(Arc::clone(&error))).ok();
    }
}
