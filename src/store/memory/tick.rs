//! due → ready; expired → ready, delayed or dead; old → gone.

use std::time::Duration;

use super::{
    call::{Call, later},
    scored::{Expiring, Look},
    signal,
};
use crate::{
    ids::{InstanceId, Purpose, TaskName, Ticket, WorkerId},
    store::{
        Clocks, ErrorKind, ErrorRecord, Finished, KeeperRole, Recovered, Recovery, Retention,
        Status, TaskRecord, TaskState, TickReply, TickRequest,
    },
    time::{Timestamp, millis},
    workflow::OnExhausted,
};

/// The longest wait after a crash.
const LONGEST_CRASH_DELAY: Duration = Duration::from_secs(60);
/// A ticket scored so much further ahead than it can be was scored before the clock was set back.
const SLACK: i64 = 1_000;
/// A woken worker that has done nothing for so long is woken again.
const WOKEN_FOR: i64 = 1_000;
/// How many of those in one call.
const WOKEN_AGAIN: u32 = 8;

pub(super) fn tick(call: &mut Call, request: &TickRequest) -> TickReply {
    call.share.forget_expired(call.now);
    let mut reply = TickReply {
        now: call.now,
        role: keep(call, request),
        clocks: compare(call.now, request.expected),
        ..TickReply::default()
    };
    promote(call, request.promote, &mut reply);
    if reply.clocks == Clocks::Steady {
        reap(call, request, &mut reply);
        prune(call, request, &mut reply);
    }
    wake_again(call);
    reply.next_due = call.share.delayed.iter().next().map(|(due, _)| due);
    reply
}

/// Takes or renews the keeper's role, if it is free or the caller's.
fn keep(call: &mut Call, request: &TickRequest) -> KeeperRole {
    let Some((worker, ttl)) = &request.keeper else {
        return KeeperRole::Other;
    };
    let keeper = call.share.keeper.as_ref().and_then(|k| k.get(call.now));
    if keeper.is_some_and(|keeper| keeper != worker) {
        return KeeperRole::Other;
    }
    let until = call.now.plus(*ttl);
    call.share.keeper = Some(Expiring::new(worker.clone(), until));
    KeeperRole::Keeper
}

fn compare(now: Timestamp, expected: Option<Timestamp>) -> Clocks {
    let by = expected.map_or(0, |e| now.as_millis() - e.as_millis());
    if by.abs() > millis(TickRequest::MAX_STEP) {
        Clocks::Stepped { by }
    } else {
        Clocks::Steady
    }
}

/// Timers that are due become ready, and nodes that waited for a signal too long. What cannot be read becomes ready too: claim sets it aside.
fn promote(call: &mut Call, most: u32, reply: &mut TickReply) {
    let now = call.now;
    let due = call.share.delayed.first(most, |at| at <= now);
    reply.again |= is_full(due.len(), most);
    for (_, ticket) in due {
        call.share.delayed.remove(&ticket);
        if unreadable(call, &ticket) {
            call.append(ticket);
        } else if let Some(record) = record_in(call, TaskState::Delayed, &ticket) {
            record.state = TaskState::Ready;
            call.append(ticket);
            reply.promoted += 1;
        } else if ticket.purpose == Purpose::TimedOut
            && let Some(record) = record_in(call, TaskState::Waiting, &ticket)
        {
            record.state = TaskState::Ready;
            signal::stop_waiting(call, &ticket);
            call.append(ticket);
            reply.promoted += 1;
        }
    }
}

/// Recovers tasks whose claim expired, oldest first.
fn reap(call: &mut Call, request: &TickRequest, reply: &mut TickReply) {
    let now = call.now;
    let due = call.share.running.first(request.reap, |look| {
        look <= Look {
            at: now,
            in_doubt: false,
        }
    });
    reply.again |= is_full(due.len(), request.reap);
    for (look, ticket) in due {
        if look_at(call, &ticket, look, request) == Found::Expired {
            reply
                .recovered
                .extend(recover(call, &ticket, request.crash_delay));
        }
    }
    let horizon = later(now, millis(TickRequest::LOOK) + SLACK);
    let ahead = call
        .share
        .running
        .last(request.reap, |look| look.at > horizon);
    for ticket in ahead {
        call.share.running.insert(&ticket, Look::at(now));
    }
}

/// What a look at a claimed task finds.
#[derive(PartialEq, Eq)]
enum Found {
    /// It is alive, in doubt, or nothing that can be recovered; it is looked at again if there is a reason to.
    Settled,
    /// Its claim is gone, and it is still running.
    Expired,
}

fn look_at(call: &mut Call, ticket: &Ticket, look: Look, request: &TickRequest) -> Found {
    let key = (ticket.id.clone(), ticket.task.clone());
    let left = call.share.claims.get(&key).and_then(|c| c.left(call.now));
    if let Some(left) = left {
        let left = cut(call, &key, left, millis(request.ttl));
        look_again(call, ticket, left.saturating_add(1));
        return Found::Settled;
    }
    call.share.claims.remove(&key);
    if unreadable(call, ticket) {
        look_again(call, ticket, i64::MAX);
        return Found::Settled;
    }
    let now = call.now;
    let Some(record) = record_in(call, TaskState::Running, ticket) else {
        call.share.running.remove(ticket);
        return Found::Settled;
    };
    let timed_out = record.deadline.is_some_and(|deadline| deadline <= now);
    let worker = record.worker.clone();
    match present(call, worker.as_ref()) {
        Some(asked) if !timed_out && !look.in_doubt => {
            let wait = millis(TickRequest::LOOK).min(asked / 2);
            let look = Look {
                at: later(now, wait),
                in_doubt: true,
            };
            call.share.running.insert(ticket, look);
            Found::Settled
        }
        _ => Found::Expired,
    }
}

/// Shortens a claim that lives longer than its owner asked for, which a clock that was set back does.
fn cut(call: &mut Call, key: &(InstanceId, TaskName), left: i64, expected: i64) -> i64 {
    let now = call.now;
    let Some(claim) = call.share.claims.get_mut(key) else {
        return left;
    };
    match claim.get(now).map(|c| c.ttl) {
        Some(asked) if left > expected && left > asked => {
            claim.hold_until(later(now, asked));
            asked
        }
        _ => left,
    }
}

fn look_again(call: &mut Call, ticket: &Ticket, after: i64) {
    let at = later(call.now, after.min(millis(TickRequest::LOOK)));
    call.share.running.insert(ticket, Look::at(at));
}

/// What a living worker asked for as its presence, in milliseconds.
fn present(call: &Call, worker: Option<&WorkerId>) -> Option<i64> {
    let presence = call.share.presence.get(worker?)?;
    presence.get(call.now).copied()
}

/// Takes a running task from its worker.
fn recover(call: &mut Call, ticket: &Ticket, crash_delay: Duration) -> Option<Recovered> {
    let now = call.now;
    let record = record_in(call, TaskState::Running, ticket)?.clone();
    let worker = record.worker.clone()?;
    call.share.running.remove(ticket);
    let recovery = if record.deadline.is_some_and(|deadline| deadline <= now) {
        let ticket = Ticket {
            purpose: Purpose::TimedOut,
            ..ticket.clone()
        };
        requeue(call, &ticket);
        Recovery::TimedOut
    } else if present(call, Some(&worker)).is_some() {
        requeue(call, ticket);
        Recovery::Lost
    } else {
        crash(call, ticket, &record, crash_delay)
    };
    Some(Recovered {
        id: ticket.id.clone(),
        task: ticket.task.clone(),
        worker,
        recovery,
    })
}

fn requeue(call: &mut Call, ticket: &Ticket) {
    if let Some(instance) = call.share.live(ticket) {
        instance.requeue(&ticket.task, TaskState::Ready);
    }
    call.prepend(ticket.clone());
}

/// The worker stopped without a word: within the budget the task is ready again, at once after its first crash.
fn crash(call: &mut Call, ticket: &Ticket, record: &TaskRecord, delay: Duration) -> Recovery {
    let crashes = record.crashes + 1;
    let error = ErrorRecord {
        kind: ErrorKind::Crash,
        task: ticket.task.clone(),
        attempt: record.attempt,
        message: ErrorRecord::LEASE_EXPIRED.to_owned(),
        worker: record.worker.clone(),
        at: call.now.as_millis(),
    };
    let wait = crash_wait(delay, crashes);
    let Some(instance) = call.share.live(ticket) else {
        return Recovery::Lost;
    };
    instance.keep_error(error.clone());
    let dead = crashes > instance.max_crashes;
    let pauses = dead && instance.on_exhausted == OnExhausted::Pause;
    let state = match (dead, wait) {
        _ if pauses => TaskState::Ready,
        (true, _) => TaskState::Failed,
        (false, 0) => TaskState::Ready,
        (false, _) => TaskState::Delayed,
    };
    if let Some(record) = instance.requeue(&ticket.task, state) {
        record.crashes = crashes;
        if pauses {
            (record.failures, record.crashes) = (0, 0);
        }
    }
    if pauses {
        call.pause_for(&ticket.id, &error);
        call.prepend(ticket.clone());
        return Recovery::Paused;
    }
    if dead {
        instance.error = Some(error);
        call.end(&ticket.id, Status::Failed);
        return Recovery::Failed;
    }
    if wait == 0 {
        call.prepend(ticket.clone());
    } else {
        call.delay(later(call.now, wait), ticket);
    }
    Recovery::Requeued { crashes }
}

/// Milliseconds to wait after so many crashes of a task.
fn crash_wait(delay: Duration, crashes: u32) -> i64 {
    let Some(doublings) = crashes.checked_sub(2) else {
        return 0;
    };
    let factor = 1_i64.checked_shl(doublings).filter(|f| *f > 0);
    let wait = millis(delay).saturating_mul(factor.unwrap_or(i64::MAX));
    wait.min(millis(LONGEST_CRASH_DELAY))
}

/// Removes instances that ended long enough ago.
fn prune(call: &mut Call, request: &TickRequest, reply: &mut TickReply) {
    let mut left = request.prune;
    for status in Status::ALL.into_iter().filter(|s| s.is_terminal()) {
        let keep = millis(kept(request.retention, status).max(Retention::LEAST));
        while left > 0 {
            let now = call.now.as_millis();
            let done = call.share.done.entry(status).or_default();
            let is_old = |f: &&Finished| f.at.as_millis() <= now.saturating_sub(keep);
            let Some(old) = done.front().filter(is_old).cloned() else {
                break;
            };
            done.pop_front();
            left -= 1;
            let instance = call.share.instances.get(&old.id);
            let over = instance.is_some_and(|i| {
                let same = i.run.tail() == old.tail && i.finished_at == Some(old.at);
                same && i.status.is_terminal() && !i.is_of_other_format()
            });
            if over {
                call.share.instances.remove(&old.id);
                call.share.parked.remove(&old.id);
                reply.pruned += 1;
            }
        }
    }
    reply.again |= request.prune > 0 && left == 0;
}

fn kept(retention: Retention, status: Status) -> Duration {
    match status {
        Status::Completed => retention.completed,
        Status::Failed => retention.failed,
        Status::Running | Status::Paused | Status::Cancelled | Status::Terminated => {
            retention.cancelled
        }
    }
}

/// Workers that were woken and did nothing since are woken once more.
fn wake_again(call: &mut Call) {
    let asleep_since = later(call.now, -WOKEN_FOR);
    let asleep = call.share.woken.first(WOKEN_AGAIN, |at| at <= asleep_since);
    for (_, worker) in asleep {
        call.share.woken.remove(&worker);
        call.hint_ready(worker);
    }
}

fn record_in<'c>(
    call: &'c mut Call,
    state: TaskState,
    ticket: &Ticket,
) -> Option<&'c mut TaskRecord> {
    call.share.live(ticket)?.task_in(state, &ticket.task)
}

/// Whether there is something behind a ticket that this version cannot read.
fn unreadable(call: &Call, ticket: &Ticket) -> bool {
    let instance = call.share.instances.get(&ticket.id);
    instance.is_some_and(|i| i.unreadable(ticket).is_some())
}

fn is_full(found: usize, most: u32) -> bool {
    most > 0 && found == most as usize
}
