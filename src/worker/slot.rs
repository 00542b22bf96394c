//! One unit of concurrency: runs a claimed task, hands over what became of it, and goes on with its follow-up.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use super::{
    claims::{Claim, HeldClaim},
    core::{Core, SettleFailure},
    executor::{self, Ended, Known},
    telemetry,
};
use crate::{
    backoff::Backoff,
    engine::FollowUp,
    ids::{InputRef, Nonce, ValueField},
    store::{
        ClaimNext, ErrorKind, ErrorRecord, ReleaseReply, ReleaseRequest, SettleReply, Settlement,
        Store, StoreError, Verdict,
    },
};

/// How many follow-ups a slot runs in a row before it lets others in the same list go first.
const ROW: u32 = 16;

/// What became of a claimed task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Its result is stored.
    Completed,
    /// The node waits for a signal.
    Waiting,
    /// The attempt failed; another one follows.
    Retried,
    /// It failed for good, and its instance with it.
    Failed,
    /// The claim belonged to somebody else before the outcome came; nothing is stored.
    Lost,
    /// The instance was over before the outcome came; nothing is stored.
    Cancelled,
    /// It is ready again, uncounted.
    GivenBack,
    /// Its settlement could not be stored: the claim will expire.
    Unsettled,
}

/// Runs a claim and its follow-ups. The slot is free when the outcome of the last is on its way to the store.
pub(crate) async fn run(core: Arc<Core>, held: HeldClaim, mut slot: Option<OwnedSemaphorePermit>) {
    let mut row = Row::Following(0);
    let mut current = Some((held, None));
    while let Some((held, known)) = current.take() {
        let (_, next) = step(&core, held, known, row, &mut slot).await;
        row = row.next();
        current = next;
    }
    core.leave(slot);
}

/// Whether follow-ups may be claimed with the settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    /// Yes; so many were.
    Following(u32),
    /// No: one task is driven by hand.
    Single,
}

impl Row {
    fn next(self) -> Self {
        match self {
            Self::Following(n) => Self::Following(n.saturating_add(1)),
            Self::Single => Self::Single,
        }
    }
}

type Next = Option<(HeldClaim, Option<Known>)>;

/// One task from claim to settlement.
pub(crate) async fn step(
    core: &Arc<Core>,
    held: HeldClaim,
    known: Option<Known>,
    row: Row,
    slot: &mut Option<OwnedSemaphorePermit>,
) -> (Fate, Next) {
    let span = telemetry::span(core, held.claim());
    step_in_span(core, held, known, row, slot)
        .instrument(span)
        .await
}

async fn step_in_span(
    core: &Arc<Core>,
    held: HeldClaim,
    known: Option<Known>,
    row: Row,
    slot: &mut Option<OwnedSemaphorePermit>,
) -> (Fate, Next) {
    if core.stop.is_cancelled() {
        return (give_back(core, &held).await, None);
    }
    let claim = Arc::clone(held.claim());
    match executor::execute(core, &claim, known).await {
        Ended::Decided {
            verdict,
            max_attempts,
            input,
        } => {
            telemetry::ended(&verdict, max_attempts);
            commit(core, held, verdict, input, (row, slot)).await
        }
        Ended::Lost => {
            tracing::warn!("the claim is lost; the task was stopped and nothing is stored");
            (Fate::Lost, None)
        }
        Ended::Cancelled => {
            tracing::info!("the instance is over; the task was stopped");
            give_back(core, &held).await;
            (Fate::Cancelled, None)
        }
        Ended::NotOurs { reason } => {
            tracing::warn!(%reason, "this worker cannot run the task; it is given back");
            let list = held.claim().claimed.ticket.list.clone();
            core.fetch.ring(|news| news.mute.push(list));
            (give_back(core, &held).await, None)
        }
        Ended::Aborted => {
            tracing::info!("the worker stops; the task is given back");
            (give_back(core, &held).await, None)
        }
    }
}

async fn commit(
    core: &Arc<Core>,
    held: HeldClaim,
    verdict: Verdict,
    input: Option<Known>,
    (row, slot): (Row, &mut Option<OwnedSemaphorePermit>),
) -> (Fate, Next) {
    let fate = match &verdict {
        Verdict::Completed { .. } => Fate::Completed,
        Verdict::Wait(_) => Fate::Waiting,
        Verdict::Retry { .. } => Fate::Retried,
        Verdict::Failed { .. } | Verdict::Paused { .. } => Fate::Failed,
    };
    let output = match &verdict {
        Verdict::Completed { output, .. } => output.clone(),
        Verdict::Wait(_)
        | Verdict::Retry { .. }
        | Verdict::Failed { .. }
        | Verdict::Paused { .. } => None,
    };
    let settlement = Settlement {
        holding: held.claim().holding(),
        claim_next: claim_next(core, &verdict, row),
        verdict,
    };
    // A follow-up runs on the same slot.
    let slot = slot.take_if(|_| settlement.claim_next.is_none());
    let left = slot.is_some();
    match core.settle(held.partition(), settlement, slot).await {
        Ok(SettleReply::Stored { next }) => {
            let known = next.as_ref().and_then(|next| {
                known_input(held.claim(), next.ticket.input.clone(), output, input)
            });
            let next = next.map(|next| (core.claims.hold(held.partition(), *next), known));
            core.count_settled();
            (fate, next)
        }
        Ok(SettleReply::Lost) => {
            tracing::warn!("the claim was lost before its result came; nothing is stored");
            (Fate::Lost, None)
        }
        Ok(SettleReply::Cancelled | SettleReply::Gone) => {
            tracing::info!("the instance is over; the result is not stored");
            (Fate::Cancelled, None)
        }
        Err(SettleFailure::Stopped) => (Fate::Unsettled, None),
        Err(SettleFailure::Store(error)) => {
            let refused = Refused {
                fate,
                reason: telemetry::chain(error.as_ref()),
            };
            // What is refused is not done with: it takes the place of another task until it is.
            let slot = if left { core.slot().await } else { None };
            let fate = refused.settle(core, &held).await;
            core.leave(slot);
            (fate, None)
        }
    }
}

/// A settlement that the store will not take, however often it is sent.
struct Refused {
    /// What it would have been.
    fate: Fate,
    reason: String,
}

impl Refused {
    /// Fails the task with what the store said: run again, it would end the same way, counted by nobody. A store that does
    /// not take that either gets its task back, later.
    async fn settle(self, core: &Core, held: &HeldClaim) -> Fate {
        let error = &self.reason;
        tracing::error!(
            error,
            "the store does not take the result; the task fails for that"
        );
        if self.fate != Fate::Failed {
            match core
                .settle(held.partition(), self.failure(core, held), None)
                .await
            {
                Ok(SettleReply::Stored { .. }) => {
                    core.count_settled();
                    return Fate::Failed;
                }
                Ok(SettleReply::Lost) => return Fate::Lost,
                Ok(SettleReply::Cancelled | SettleReply::Gone) => return Fate::Cancelled,
                Err(SettleFailure::Stopped) => return Fate::Unsettled,
                Err(SettleFailure::Store(_)) => {}
            }
        }
        tracing::error!("the store does not take the failure either; the task is given back");
        // Not at once: whatever is wrong with it will be wrong again.
        let wait = tokio::time::sleep(core.config.poll_interval);
        core.stop.run_until_cancelled(wait).await;
        give_back(core, held).await
    }

    fn failure(&self, core: &Core, held: &HeldClaim) -> Settlement {
        let claim = held.claim();
        let claimed = &claim.claimed;
        let error = ErrorRecord {
            kind: ErrorKind::Permanent,
            task: claimed.ticket.task.clone(),
            attempt: claimed.record.attempt,
            message: format!("the store does not take the result: {}", self.reason),
            worker: Some(core.config.worker.clone()),
            at: claimed.now.plus(claim.since.elapsed()).as_millis(),
        };
        Settlement {
            holding: claim.holding(),
            verdict: Verdict::Failed { error },
            claim_next: None,
        }
    }
}

/// Which follow-up this slot goes on with: the first that this worker may run.
fn claim_next(core: &Core, verdict: &Verdict, row: Row) -> Option<ClaimNext> {
    let Row::Following(done) = row else {
        return None;
    };
    let Verdict::Completed { follow_ups, .. } = verdict else {
        return None;
    };
    if core.stop.is_cancelled() {
        return None;
    }
    let follow_up = follow_ups.iter().position(|follow_up| match follow_up {
        FollowUp::Ready(next) | FollowUp::Arrive { next, .. } => core.catalog.serves(&next.list),
        FollowUp::After { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => false,
    })?;
    Some(ClaimNext {
        follow_up,
        nonce: Nonce::random(),
        only_if_empty: done >= ROW,
    })
}

/// The follow-up's input, if it is what this task just had in hand.
fn known_input(
    claim: &Claim,
    wanted: InputRef,
    output: Option<Bytes>,
    input: Option<Known>,
) -> Option<Known> {
    let InputRef::Field { field, .. } = wanted else {
        return None;
    };
    let own = ValueField::Output(claim.claimed.ticket.task.clone());
    match output {
        Some(bytes) if field == own => Some(Known { field, bytes }),
        _ => input.filter(|known| known.field == field),
    }
}

/// Releases a claim, for as long as it would hold without a heartbeat.
async fn give_back(core: &Core, held: &HeldClaim) -> Fate {
    let deadline = tokio::time::Instant::now() + core.config.claim_ttl;
    let mut backoff = Backoff::new();
    loop {
        match release(core, held).await {
            Ok(ReleaseReply::Released) => {
                core.count_given_back();
                return Fate::GivenBack;
            }
            Ok(ReleaseReply::Lost) => return Fate::Lost,
            Ok(ReleaseReply::Cancelled) => return Fate::Cancelled,
            Err(error) => {
                let wait = backoff.delay();
                if !error.is_retryable() || tokio::time::Instant::now() + wait > deadline {
                    tracing::warn!(%error, "the claim cannot be given back; it will expire");
                    return Fate::Unsettled;
                }
                tokio::time::sleep(wait).await;
            }
        }
    }
}

async fn release(core: &Core, held: &HeldClaim) -> Result<ReleaseReply, StoreError> {
    let store: &dyn Store = core.store.as_ref();
    let replies = store
        .release(ReleaseRequest {
            partition: held.partition(),
            worker: core.config.worker.clone(),
            items: vec![held.claim().holding()],
            leave: false,
        })
        .await?;
    core.health.heard();
    Ok(replies.first().copied().unwrap_or(ReleaseReply::Lost))
}
