//! absent → live.

use std::collections::BTreeMap;

use super::{
    call::{Call, announce_end, close_tasks, later},
    signal::{self, Signals},
    state::{Damage, Instance},
};
use crate::{
    engine::{FollowUp, Next},
    ids::{InstanceId, Purpose, RunId, Ticket, ValueField},
    store::{Begin, IdPolicy, StartItem, StartReply, Status, StoreError, TaskRecord, TaskState},
    time::{Timestamp, millis},
};

/// How many runs of an id are remembered after they were replaced.
const REPLACED: usize = 8;

pub(super) fn start(call: &mut Call, items: &[StartItem]) -> Result<Vec<StartReply>, StoreError> {
    let replies: Vec<_> = items.iter().map(|item| start_one(call, item)).collect();
    replies
        .into_iter()
        .zip(items)
        .map(|(reply, item)| Ok(later_replaced(call, item, reply?)))
        .collect()
}

/// The first of two items with one id was started, and replaced by the second in the same call.
fn later_replaced(call: &Call, item: &StartItem, reply: StartReply) -> StartReply {
    let stored = call.share.instances.get(&item.id).map(|i| i.run);
    if reply == StartReply::Started && stored != Some(item.run) {
        return StartReply::Superseded;
    }
    reply
}

fn start_one(call: &mut Call, item: &StartItem) -> Result<StartReply, StoreError> {
    let mut replaced = Vec::new();
    if let Some(old) = call.share.instances.get(&item.id) {
        if let Some(reply) = taken(old, item)? {
            return Ok(reply);
        }
        replaced = replace(call, &item.id);
    }
    let base = match item.begin {
        Begin::Now => 0,
        Begin::After(delay) => millis(delay),
        Begin::At(time) => (time.as_millis() - call.now.as_millis()).max(0),
    };
    let mut instance = fresh(item, call.now, replaced);
    for follow_up in &item.first {
        let (next, delay) = match follow_up {
            FollowUp::Ready(next) => (next, 0),
            FollowUp::After { next, delay } => (next, millis(*delay)),
            FollowUp::Arrive { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => continue,
        };
        let state = queue(call, &item.id, item.run, next, base.saturating_add(delay));
        instance
            .tasks
            .insert(next.task.clone(), TaskRecord::fresh(state));
    }
    call.share.instances.insert(item.id.clone(), instance);
    Ok(StartReply::Started)
}

/// What the policy says about the instance that is there; `None` means: replace it.
fn taken(old: &Instance, item: &StartItem) -> Result<Option<StartReply>, StoreError> {
    if old.is_foreign() {
        old.check(&item.id)?;
    }
    if old.run == item.run {
        return Ok(Some(StartReply::Started));
    }
    if old.replaced.contains(&item.run) {
        return Ok(Some(StartReply::Superseded));
    }
    let (run, status) = (old.run, old.status);
    match item.policy {
        IdPolicy::UseExisting => return Ok(Some(StartReply::Existing { run, status })),
        IdPolicy::Fail => return Ok(Some(StartReply::Exists { run, status })),
        IdPolicy::ReplaceFinished if !status.is_terminal() => {
            return Ok(Some(StartReply::Exists { run, status }));
        }
        IdPolicy::ReplaceFinished | IdPolicy::TerminateAndReplace => {}
    }
    match old.damage {
        Some(Damage::Format(_)) => old.check(&item.id).map(|()| None),
        _ => Ok(None),
    }
}

/// Removes an instance, ended as terminated if it was not over; answers with the runs that are remembered. Its entries,
/// timers and claim keys stay, and fall when they are met.
fn replace(call: &mut Call, id: &InstanceId) -> Vec<RunId> {
    let Some(mut old) = call.share.instances.remove(id) else {
        return Vec::new();
    };
    call.share.parked.remove(id);
    call.share.paused.remove(id);
    if !old.status.is_terminal() {
        close_tasks(&mut old, id, &mut call.outbox);
        signal::forget_waits(call, id, old.run.tail(), old.signals.give_up());
        let change = (old.status, Status::Terminated);
        announce_end(&old, id, change, call.now, None, &mut call.outbox);
    }
    let mut replaced = vec![old.run];
    replaced.append(&mut old.replaced);
    replaced.truncate(REPLACED);
    replaced
}

fn fresh(item: &StartItem, now: Timestamp, replaced: Vec<RunId>) -> Instance {
    Instance {
        run: item.run,
        status: Status::Running,
        workflow: item.workflow.clone(),
        definition: item.definition,
        queue: item.queue.clone(),
        created_at: now,
        started_at: None,
        finished_at: None,
        open: i64::try_from(item.first.len()).unwrap_or(i64::MAX),
        max_crashes: item.max_crashes,
        on_exhausted: item.on_exhausted,
        retries: 0,
        replaced,
        waiters: item.waiter.iter().cloned().collect(),
        tasks: BTreeMap::new(),
        joins: BTreeMap::new(),
        signals: Signals::of(&item.signals),
        due: BTreeMap::new(),
        noted: BTreeMap::new(),
        values: BTreeMap::from([(ValueField::Input, item.input.clone())]),
        meta: item.meta.clone(),
        result: None,
        error: None,
        control: None,
        controlled: None,
        errors: Default::default(),
        damage: None,
    }
}

/// Puts a node into its ready list, or among the delayed if there is something to wait for.
pub(super) fn queue(
    call: &mut Call,
    id: &InstanceId,
    run: RunId,
    next: &Next,
    delay: i64,
) -> TaskState {
    let ticket = ticket(id, run, next);
    if delay > 0 {
        call.delay(later(call.now, delay), &ticket);
        TaskState::Delayed
    } else {
        call.append(ticket);
        TaskState::Ready
    }
}

/// The ticket of a node that is reached.
pub(super) fn ticket(id: &InstanceId, run: RunId, next: &Next) -> Ticket {
    Ticket {
        list: next.list.clone(),
        id: id.clone(),
        task: next.task.clone(),
        tail: run.tail(),
        purpose: Purpose::Run,
        input: next.input.clone(),
    }
}
