//! running → completed, delayed or failed, with all that follows.

use bytes::Bytes;

use super::{
    call::{Call, deadlines, later},
    signal::await_signal,
    start::{queue, ticket},
};
use crate::{
    engine::{FollowUp, Next},
    ids::{InstanceId, Purpose, RunId, TaskName, Ticket, ValueField, WorkerId},
    store::{
        ClaimNext, Claimed, ErrorRecord, Holding, JoinRecord, SettleReply, SettleRequest,
        Settlement, Status, TaskRecord, TaskState, Verdict,
    },
    time::millis,
};

pub(super) fn settle(call: &mut Call, request: &SettleRequest) -> Vec<SettleReply> {
    call.share.woken.remove(&request.worker);
    let by = By {
        worker: &request.worker,
        ttl: millis(request.ttl),
    };
    request
        .items
        .iter()
        .map(|item| settle_one(call, item, by))
        .collect()
}

/// Who settles, and how long its follow-up claims hold.
#[derive(Clone, Copy)]
struct By<'a> {
    worker: &'a WorkerId,
    ttl: i64,
}

fn settle_one(call: &mut Call, item: &Settlement, by: By) -> SettleReply {
    let Holding {
        ticket,
        run,
        record,
    } = &item.holding;
    let Some(instance) = call.share.instances.get(&ticket.id) else {
        return SettleReply::Gone;
    };
    if instance.run != *run || instance.is_foreign() {
        return SettleReply::Lost;
    }
    if instance.status.is_terminal() || !instance.holds(&ticket.task, record) {
        return refused(call, item, by.worker);
    }
    call.let_go(ticket);
    let next = match &item.verdict {
        Verdict::Completed { output, follow_ups } => {
            complete(call, ticket, output.clone());
            follow(call, item, (output.as_ref(), follow_ups), by)
        }
        Verdict::Wait(wait) => {
            let Ticket { list, id, task, .. } = ticket.clone();
            let overdue = Ticket::overdue(list, id, task, ticket.tail);
            let record = TaskRecord {
                deadline: None,
                ..record.clone()
            };
            await_signal(call, overdue, wait, record);
            None
        }
        Verdict::Retry { after, error } => {
            retry(call, ticket, millis(*after), error.clone());
            None
        }
        Verdict::Failed { error } => {
            fail(call, ticket, error.clone());
            None
        }
        Verdict::Paused { error } => {
            pause(call, ticket, error);
            None
        }
    };
    SettleReply::Stored {
        next: next.map(Box::new),
    }
}

fn complete(call: &mut Call, ticket: &Ticket, output: Option<Bytes>) {
    let Some(instance) = call.share.instances.get_mut(&ticket.id) else {
        return;
    };
    if let Some(record) = instance.tasks.get_mut(&ticket.task) {
        record.state = TaskState::Completed;
        record.deadline = None;
    }
    if let Some(output) = output {
        let field = ValueField::Output(ticket.task.clone());
        instance.values.insert(field, output);
    }
}

/// The result that a settlement ends an instance with, if it brings it itself and nothing else.
fn own_result<'a>(
    task: &TaskName,
    output: Option<&'a Bytes>,
    follow_ups: &[FollowUp],
) -> Option<&'a Bytes> {
    match follow_ups {
        [
            FollowUp::End {
                result: ValueField::Output(of),
            },
        ] => output.filter(|_| of == task),
        _ => None,
    }
}

/// Does what follows a completed task, and completes the instance when nothing does any more.
fn follow(
    call: &mut Call,
    item: &Settlement,
    (output, follow_ups): (Option<&Bytes>, &[FollowUp]),
    by: By,
) -> Option<Claimed> {
    let Ticket { id, task, .. } = &item.holding.ticket;
    let run = item.holding.run;
    let (mut opened, mut claimed) = (0, None);
    for (i, follow_up) in follow_ups.iter().enumerate() {
        let (next, delay) = match follow_up {
            FollowUp::Ready(next) => (next, 0),
            FollowUp::After { next, delay } => (next, millis(*delay)),
            FollowUp::Arrive { next, need, total } => {
                if !arrive(call, id, &next.task, task, (*need, *total)) {
                    continue;
                }
                (next, 0)
            }
            FollowUp::Wait { next, wait } => {
                let (list, task) = (next.list.clone(), next.task.clone());
                let overdue = Ticket::overdue(list, id.clone(), task, run.tail());
                let record = TaskRecord {
                    attempt: claimed_before_retry(call, id, &next.task),
                    ..TaskRecord::fresh(TaskState::Waiting)
                };
                await_signal(call, overdue, wait, record);
                opened += 1;
                continue;
            }
            FollowUp::End { result } => {
                if let Some(instance) = call.share.instances.get_mut(id) {
                    instance.result = Some(result.clone());
                }
                continue;
            }
        };
        opened += 1;
        let wanted = item.claim_next.filter(|c| c.follow_up == i);
        if let Some(wanted) = wanted.filter(|w| may_claim(call, id, next, *w)) {
            claimed = Some(claim_next(call, (id, run), next, wanted, by));
        } else {
            let state = queue(call, id, run, next, delay);
            let record = TaskRecord {
                attempt: claimed_before_retry(call, id, &next.task),
                ..TaskRecord::fresh(state)
            };
            set_task(call, id, &next.task, record);
        }
    }
    if let Some(instance) = call.share.instances.get_mut(id) {
        instance.open += opened - 1;
        if instance.open == 0 {
            let result = own_result(task, output, follow_ups).cloned();
            call.end_with(id, Status::Completed, result);
        }
    }
    claimed
}

/// A branch arrives at a join; whether that makes it fire, which happens once.
fn arrive(
    call: &mut Call,
    id: &InstanceId,
    join: &TaskName,
    who: &TaskName,
    (need, total): (u16, u16),
) -> bool {
    let Some(instance) = call.share.instances.get_mut(id) else {
        return false;
    };
    let record = instance
        .joins
        .entry(join.clone())
        .or_insert_with(|| JoinRecord {
            arrived: 0,
            failed: 0,
            need,
            total,
            fired: false,
            who: Vec::new(),
        });
    record.arrived += 1;
    record.who.push(who.clone());
    let fires = !record.fired && record.arrived >= record.need;
    record.fired |= fires;
    fires
}

/// How often a task was claimed before a retry of its instance took its result back.
fn claimed_before_retry(call: &Call, id: &InstanceId, task: &TaskName) -> u32 {
    let instance = call.share.instances.get(id).filter(|i| i.retries > 0);
    let record = instance.and_then(|i| i.tasks.get(task));
    record.map_or(0, |record| record.attempt)
}

fn may_claim(call: &mut Call, id: &InstanceId, next: &Next, wanted: ClaimNext) -> bool {
    if call.share.paused.contains(id) {
        return false;
    }
    !wanted.only_if_empty || call.share.list(&next.list).is_empty()
}

fn claim_next(
    call: &mut Call,
    (id, run): (&InstanceId, RunId),
    next: &Next,
    wanted: ClaimNext,
    by: By,
) -> Claimed {
    let ticket = ticket(id, run, next);
    let (deadline, overall) = deadlines(call.now, next.limits, None);
    let record = TaskRecord {
        state: TaskState::Running,
        attempt: claimed_before_retry(call, id, &next.task) + 1,
        nonce: Some(wanted.nonce),
        worker: Some(by.worker.clone()),
        deadline,
        ..TaskRecord::fresh(TaskState::Running)
    };
    set_task(call, id, &next.task, record.clone());
    if let (Some(overall), Some(instance)) = (overall, call.share.instances.get_mut(id)) {
        instance.due.insert(next.task.clone(), overall);
    }
    call.hold(&ticket, run, &record, by.worker, by.ttl);
    Claimed {
        ticket,
        run,
        record,
        input: None,
        overall,
        now: call.now,
    }
}

fn set_task(call: &mut Call, id: &InstanceId, task: &TaskName, record: TaskRecord) {
    if let Some(instance) = call.share.instances.get_mut(id) {
        instance.tasks.insert(task.clone(), record);
    }
}

/// The attempt failed, another one follows: as an ordinary one, whatever this one was for.
fn retry(call: &mut Call, ticket: &Ticket, after: i64, error: ErrorRecord) {
    let state = if after > 0 {
        TaskState::Delayed
    } else {
        TaskState::Ready
    };
    fail_attempt(call, ticket, state, error);
    let ticket = Ticket {
        purpose: Purpose::Run,
        ..ticket.clone()
    };
    if after > 0 {
        call.delay(later(call.now, after), &ticket);
    } else {
        call.append(ticket);
    }
}

/// The task failed for good, but its instance waits for a person: its ticket is parked as soon as it is met.
fn pause(call: &mut Call, ticket: &Ticket, error: &ErrorRecord) {
    fail_attempt(call, ticket, TaskState::Ready, error.clone());
    if let Some(instance) = call.share.instances.get_mut(&ticket.id)
        && let Some(record) = instance.tasks.get_mut(&ticket.task)
    {
        (record.failures, record.crashes) = (0, 0);
    }
    call.pause_for(&ticket.id, error);
    call.append(Ticket {
        purpose: Purpose::Run,
        ..ticket.clone()
    });
}

fn fail(call: &mut Call, ticket: &Ticket, error: ErrorRecord) {
    if let Some(instance) = call.share.instances.get_mut(&ticket.id) {
        instance.error = Some(error.clone());
    }
    fail_attempt(call, ticket, TaskState::Failed, error);
    call.end(&ticket.id, Status::Failed);
}

fn fail_attempt(call: &mut Call, ticket: &Ticket, state: TaskState, error: ErrorRecord) {
    let Some(instance) = call.share.instances.get_mut(&ticket.id) else {
        return;
    };
    instance.keep_error(error);
    if let Some(record) = instance.tasks.get_mut(&ticket.task) {
        record.state = state;
        record.failures += 1;
        record.deadline = None;
    }
}

/// The fence does not hold: the repeat of a settlement that is stored, or somebody else's task by now.
fn refused(call: &mut Call, item: &Settlement, worker: &WorkerId) -> SettleReply {
    if let Some(next) = stored_before(call, item, worker) {
        return SettleReply::Stored {
            next: next.map(Box::new),
        };
    }
    if call.drop_stale_claim(&item.holding, worker).is_terminal() {
        SettleReply::Cancelled
    } else {
        SettleReply::Lost
    }
}

/// Whether this settlement is stored already, with the follow-up claim that its first call made.
fn stored_before(call: &Call, item: &Settlement, worker: &WorkerId) -> Option<Option<Claimed>> {
    let Holding { ticket, record, .. } = &item.holding;
    let instance = call.share.instances.get(&ticket.id)?;
    let stored = instance.task(&ticket.task)?;
    let same_attempt = (stored.attempt, stored.nonce) == (record.attempt, record.nonce);
    let settled = !matches!(stored.state, TaskState::Running | TaskState::Closed);
    (same_attempt && settled).then(|| claimed_before(call, item, worker))
}

fn claimed_before(call: &Call, item: &Settlement, worker: &WorkerId) -> Option<Claimed> {
    let wanted = item.claim_next?;
    let Verdict::Completed { follow_ups, .. } = &item.verdict else {
        return None;
    };
    let next = match follow_ups.get(wanted.follow_up)? {
        FollowUp::Ready(next) | FollowUp::Arrive { next, .. } => next,
        FollowUp::After { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => return None,
    };
    let id = &item.holding.ticket.id;
    let instance = call.share.instances.get(id)?;
    let record = instance.task(&next.task)?;
    let own = (TaskState::Running, Some(wanted.nonce), Some(worker));
    if (record.state, record.nonce, record.worker.as_ref()) != own {
        return None;
    }
    Some(Claimed {
        ticket: ticket(id, instance.run, next),
        run: instance.run,
        record: record.clone(),
        input: None,
        overall: instance.due.get(&next.task).copied(),
        now: call.now,
    })
}
