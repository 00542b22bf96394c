//! What a person does with an instance: the status changes at once. Entries, timers and claim keys stay, and fall or
//! are parked when they are met.

use super::{
    call::Call,
    state::{Damage, Instance, Share},
};
use crate::{
    ids::{InstanceId, MailboxId, Nonce, RunId},
    store::{Control, ControlRecord, ControlReply, ControlRequest, Finished, Status, StoreError},
};

/// How many mailboxes can wait for one instance.
const WAITERS: usize = 16;
/// How far from one of its ends an entry of an index of finished instances is looked for.
const NEAR: usize = 1000;

pub(super) fn control(
    call: &mut Call,
    request: &ControlRequest,
) -> Result<ControlReply, StoreError> {
    let found = find(call, &request.id, request.run, request.nonce)?;
    let (run, status) = match found {
        Found::Answer(reply) => return Ok(reply),
        Found::Instance { run, status } => (run, status),
    };
    if request.control == Control::Delete {
        if !status.is_terminal() {
            return Ok(ControlReply::Live { run, status });
        }
        delete(call.share, &request.id);
        return Ok(ControlReply::Done { run });
    }
    let is_end = request.control.status().is_some_and(Status::is_terminal);
    if is_end && request.control.status() == Some(status) && request.run.is_some() {
        return Ok(ControlReply::Done { run });
    }
    if status.is_terminal() {
        return Ok(ControlReply::Over { run, status });
    }
    if request.control == Control::Pause && status == Status::Paused {
        return Ok(ControlReply::AlreadyPaused { run });
    }
    let record = ControlRecord {
        control: request.control,
        reason: request.reason.clone(),
        actor: request.actor.clone(),
    };
    match request.control {
        Control::Cancel => end(call, request, Status::Cancelled, record),
        Control::Terminate => end(call, request, Status::Terminated, record),
        Control::Pause => pause(call, request, record),
        Control::Resume => return Ok(resume(call, request, record, run)),
        Control::Retry | Control::Delete => {}
    }
    Ok(ControlReply::Done { run })
}

/// What a control meets.
pub(super) enum Found {
    /// Nothing to do.
    Answer(ControlReply),
    /// The run that is meant.
    Instance { run: RunId, status: Status },
}

/// Looks for the run that is meant; a call that is repeated is answered as before.
pub(super) fn find(
    call: &mut Call,
    id: &InstanceId,
    meant: Option<RunId>,
    nonce: Nonce,
) -> Result<Found, StoreError> {
    let Some(instance) = call.share.instances.get_mut(id) else {
        return Ok(Found::Answer(ControlReply::NotFound));
    };
    let (run, status) = (instance.run, instance.status);
    if instance.is_foreign() {
        instance.check(id)?;
    }
    if meant.is_some_and(|meant| meant != run) {
        return Ok(Found::Answer(ControlReply::Replaced { run }));
    }
    if let Some(Damage::Format(_)) = instance.damage {
        instance.check(id)?;
    }
    if instance.controlled == Some(nonce) {
        return Ok(Found::Answer(ControlReply::Done { run }));
    }
    Ok(Found::Instance { run, status })
}

/// Writes down who did what.
pub(super) fn record(
    call: &mut Call,
    id: &InstanceId,
    record: ControlRecord,
    nonce: Nonce,
) -> Option<()> {
    let instance = call.share.instances.get_mut(id)?;
    instance.control = Some(record);
    instance.controlled = Some(nonce);
    Some(())
}

fn end(call: &mut Call, request: &ControlRequest, status: Status, control: ControlRecord) {
    record(call, &request.id, control, request.nonce);
    call.end(&request.id, status);
}

fn pause(call: &mut Call, request: &ControlRequest, control: ControlRecord) {
    record(call, &request.id, control, request.nonce);
    call.share.paused.insert(request.id.clone());
    if let Some(instance) = call.share.instances.get_mut(&request.id) {
        instance.status = Status::Paused;
    }
    call.announce(&request.id, Status::Running, None);
}

/// Gives parked tickets back to their lists, in the order in which they were met.
fn resume(
    call: &mut Call,
    request: &ControlRequest,
    control: ControlRecord,
    run: RunId,
) -> ControlReply {
    let id = &request.id;
    let was_paused = call.share.paused.remove(id);
    for _ in 0..ControlRequest::MAX_RESUMED {
        let parked = call.share.parked.get_mut(id);
        let Some(ticket) = parked.and_then(std::collections::VecDeque::pop_front) else {
            break;
        };
        call.append(ticket);
    }
    let left = call.share.parked.get(id).is_some_and(|p| !p.is_empty());
    if !left {
        call.share.parked.remove(id);
    }
    if was_paused {
        if let Some(instance) = call.share.instances.get_mut(id) {
            instance.status = Status::Running;
            instance.error = None;
            instance.control = Some(control);
        }
        call.announce(id, Status::Paused, None);
    }
    if left {
        return ControlReply::Again { run };
    }
    ControlReply::Done { run }
}

/// Removes all that is stored of a finished instance.
fn delete(share: &mut Share, id: &InstanceId) {
    unlist(share, id);
    share.instances.remove(id);
    share.parked.remove(id);
}

/// Takes a finished instance out of its index, if its entry is near one of the ends; else the entry stays, and is void.
pub(super) fn unlist(share: &mut Share, id: &InstanceId) {
    let Some((status, entry)) = share.instances.get(id).and_then(|i| entry(i, id)) else {
        return;
    };
    let done = share.done.entry(status).or_default();
    if let Some(at) = done.iter().position(|other| *other == entry)
        && (at < NEAR || done.len() - at <= NEAR)
    {
        done.remove(at);
    }
}

fn entry(instance: &Instance, id: &InstanceId) -> Option<(Status, Finished)> {
    let entry = Finished {
        id: id.clone(),
        tail: instance.run.tail(),
        at: instance.finished_at?,
    };
    Some((instance.status, entry))
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
