//! dead → live: what the plan names begins again or goes on, what is downstream of it is taken back.

use super::{
    call::{Call, later},
    control::{Found, find, record, unlist},
    start::ticket,
    state::Instance,
};
use crate::{
    engine::{FollowUp, Next},
    ids::{RunId, TaskName, ValueField},
    store::{
        Control, ControlRecord, ControlReply, RetryRequest, Status, StoreError, TaskRecord,
        TaskState,
    },
    time::millis,
};

pub(super) fn retry(call: &mut Call, request: &RetryRequest) -> Result<ControlReply, StoreError> {
    let found = find(call, &request.id, Some(request.run), request.nonce)?;
    let (run, status) = match found {
        Found::Answer(reply) => return Ok(reply),
        Found::Instance { run, status } => (run, status),
    };
    if !status.is_terminal() {
        return Ok(ControlReply::Live { run, status });
    }
    if status != Status::Failed {
        return Ok(ControlReply::Over { run, status });
    }
    let id = &request.id;
    let instance = call.share.instances.get(id);
    if instance.and_then(|i| i.finished_at) != Some(request.died_at) {
        return Ok(ControlReply::Changed { run });
    }
    unlist(call.share, id);
    call.share.parked.remove(id);
    let control = ControlRecord {
        control: Control::Retry,
        reason: request.reason.clone(),
        actor: request.actor.clone(),
    };
    record(call, id, control, request.nonce);
    if let Some(instance) = call.share.instances.get_mut(id) {
        revive(instance, request);
    }
    for follow_up in &request.plan.again {
        begin_again(call, request, run, follow_up);
    }
    for next in &request.plan.go_on {
        go_on(call, request, run, next);
    }
    call.announce(id, Status::Failed, None);
    Ok(ControlReply::Done { run })
}

/// What changes whatever is ready afterwards.
fn revive(instance: &mut Instance, request: &RetryRequest) {
    let plan = &request.plan;
    instance.status = Status::Running;
    instance.finished_at = None;
    instance.error = None;
    instance.retries += 1;
    instance.open = i64::try_from(plan.again.len() + plan.go_on.len()).unwrap_or(i64::MAX);
    for task in &plan.clear {
        forget(instance, task);
        let progress = ValueField::Progress(task.clone());
        instance.values.remove(&progress);
        let attempt = instance.tasks.remove(task).map_or(0, |r| r.attempt);
        if attempt > 0 {
            let record = TaskRecord {
                attempt,
                ..TaskRecord::fresh(TaskState::Cleared)
            };
            instance.tasks.insert(task.clone(), record);
        }
    }
    for (join, who) in &plan.joins {
        if who.is_empty() {
            instance.joins.remove(join);
        } else if let Some(record) = instance.joins.get_mut(join) {
            record.arrived = u16::try_from(who.len()).unwrap_or(u16::MAX);
            record.who.clone_from(who);
            record.fired = false;
        }
    }
}

fn forget(instance: &mut Instance, task: &TaskName) {
    instance.due.remove(task);
    instance.values.remove(&ValueField::Output(task.clone()));
}

fn begin_again(call: &mut Call, request: &RetryRequest, run: RunId, follow_up: &FollowUp) {
    let (next, wait) = match follow_up {
        FollowUp::Ready(next) => (next, 0),
        FollowUp::After { next, delay } => (next, millis(*delay)),
        FollowUp::Arrive { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => return,
    };
    let ticket = ticket(&request.id, run, next);
    let state = if wait > 0 {
        call.delay(later(call.now, wait), &ticket);
        TaskState::Delayed
    } else {
        call.append(ticket);
        TaskState::Ready
    };
    let Some(instance) = call.share.instances.get_mut(&request.id) else {
        return;
    };
    if next.input.is_of(&ValueField::Output(next.task.clone())) {
        // The signal that it waited for is there.
        instance.due.remove(&next.task);
    } else {
        forget(instance, &next.task);
    }
    let attempt = instance.tasks.get(&next.task).map_or(0, |r| r.attempt);
    let record = TaskRecord {
        attempt,
        ..TaskRecord::fresh(state)
    };
    instance.tasks.insert(next.task.clone(), record);
}

/// A timer that still runs is left to run; everything else is ready.
fn go_on(call: &mut Call, request: &RetryRequest, run: RunId, next: &Next) {
    let ticket = ticket(&request.id, run, next);
    let state = if call.share.delayed.contains(&ticket) {
        TaskState::Delayed
    } else {
        call.append(ticket);
        TaskState::Ready
    };
    let Some(instance) = call.share.instances.get_mut(&request.id) else {
        return;
    };
    instance.due.remove(&next.task);
    instance.requeue(&next.task, state);
}
