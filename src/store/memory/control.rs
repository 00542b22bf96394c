//! live → cancelled or terminated, at once. Entries, timers and claim keys stay, and fall when they are met.

use super::{
    call::Call,
    state::{Damage, Instance},
};
use crate::{
    ids::{MailboxId, RunId},
    store::{ControlRecord, ControlReply, ControlRequest, StoreError},
};

/// How many mailboxes can wait for one instance.
const WAITERS: usize = 16;

pub(super) fn control(
    call: &mut Call,
    request: &ControlRequest,
) -> Result<ControlReply, StoreError> {
    let Some(instance) = call.share.instances.get_mut(&request.id) else {
        return Ok(ControlReply::NotFound);
    };
    let (run, status) = (instance.run, instance.status);
    if instance.is_foreign() {
        instance.check(&request.id)?;
    }
    if request.run.is_some_and(|meant| meant != run) {
        return Ok(ControlReply::Replaced { run });
    }
    if let Some(Damage::Format(_)) = instance.damage {
        instance.check(&request.id)?;
    }
    let end = request.control.status();
    if status == end && request.run.is_some() {
        return Ok(ControlReply::Done { run });
    }
    if status.is_terminal() {
        return Ok(ControlReply::Over { run, status });
    }
    instance.control = Some(ControlRecord {
        control: request.control,
        reason: request.reason.clone(),
        actor: request.actor.clone(),
    });
    call.end(&request.id, end);
    Ok(ControlReply::Done { run })
}

/// Writes down who waits for the end of a run; the newest are kept.
pub(super) fn watch(instance: &mut Instance, run: RunId, mailbox: &MailboxId) {
    if instance.run != run || instance.status.is_terminal() {
        return;
    }
    instance.waiters.retain(|waiter| waiter != mailbox);
    instance.waiters.push(mailbox.clone());
    let over = instance.waiters.len().saturating_sub(WAITERS);
    instance.waiters.drain(..over);
}
