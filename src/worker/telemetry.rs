//! What a worker says: one span for each task, and a line for each end of an attempt, its level by weight.

use std::error::Error;

use tracing::Span;

use super::{claims::Claim, core::Core};
use crate::{ids::InputRef, store::Verdict};

/// The span of a task; everything a handler logs stands in it.
pub(crate) fn span(core: &Core, claim: &Claim) -> Span {
    let ticket = &claim.claimed.ticket;
    tracing::info_span!(
        "task",
        worker = %core.config.worker,
        instance = %ticket.id,
        run = %claim.claimed.run,
        task = %ticket.task,
        attempt = claim.claimed.record.attempt,
        joins = matches!(ticket.input, InputRef::Join),
    )
}

/// How an attempt ended.
pub(crate) fn ended(verdict: &Verdict, max_attempts: u32) {
    match verdict {
        Verdict::Completed { .. } => tracing::debug!("completed"),
        Verdict::Wait(wait) => tracing::debug!(signal = %wait.signal, "waits for a signal"),
        Verdict::Retry { after, error } => {
            tracing::warn!(
                max_attempts,
                next_attempt_in = ?after,
                kind = ?error.kind,
                error = %error.message,
                "the attempt failed; another one follows"
            );
        }
        Verdict::Failed { error } => {
            tracing::error!(
                max_attempts,
                kind = ?error.kind,
                error = %error.message,
                "the task failed for good, and its instance with it"
            );
        }
        Verdict::Paused { error } => {
            tracing::error!(
                max_attempts,
                kind = ?error.kind,
                error = %error.message,
                "the task failed for good; its instance is paused for a person, who can resume it"
            );
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
