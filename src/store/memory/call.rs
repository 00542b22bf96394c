//! What transitions share: one call has a partition, a time, and things to say at its end.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    mailbox::Outbox,
    scored::{Expiring, Look, Scored},
    signal,
    state::{ClaimKey, Damage, Instance, Share},
};
use crate::{
    engine::Limits,
    ids::{InstanceId, ListName, MailboxId, Partition, RunId, TaskName, Ticket, WorkerId},
    store::{
        ControlRecord, ErrorRecord, Finished, Hint, Holding, Status, StatusEvent, TaskRecord,
        TaskState, TickRequest,
    },
    time::{Timestamp, millis},
};

/// The most workers that one call wakes at one list.
const WAKES: usize = 8;
/// A worker that parked longer ago (three polls) is not there any more.
const PARKED_FOR: i64 = 15_000;

/// One call under way.
pub(super) struct Call<'a> {
    pub(super) share: &'a mut Share,
    /// The time, once for the whole call.
    pub(super) now: Timestamp,
    pub(super) outbox: Outbox,
    /// How many entries went into which list.
    filled: BTreeMap<ListName, usize>,
    /// The soonest timer that this call set.
    timer: Option<Timestamp>,
}

impl<'a> Call<'a> {
    pub(super) fn new(share: &'a mut Share, now: Timestamp) -> Self {
        Self {
            share,
            now,
            outbox: Outbox::default(),
            filled: BTreeMap::new(),
            timer: None,
        }
    }

    /// Hints come last: workers for the lists that were filled, the keeper for a timer that is due before all others.
    pub(super) fn finish(mut self) -> Outbox {
        for (list, count) in std::mem::take(&mut self.filled) {
            self.wake(&list, count);
        }
        let head = self.share.delayed.iter().next();
        let head = head.map(|(due, _)| due);
        let keeper = self.share.keeper.as_ref().and_then(|k| k.get(self.now));
        if let (true, Some(keeper)) = (self.timer.is_some() && self.timer == head, keeper) {
            let keeper = keeper.clone();
            self.hint(keeper, |partition| Hint::Timer { partition });
        }
        self.outbox
    }

    pub(super) fn append(&mut self, ticket: Ticket) {
        *self.filled.entry(ticket.list.clone()).or_default() += 1;
        self.share.list(&ticket.list).push_back(ticket);
    }

    pub(super) fn prepend(&mut self, ticket: Ticket) {
        *self.filled.entry(ticket.list.clone()).or_default() += 1;
        self.share.list(&ticket.list).push_front(ticket);
    }

    pub(super) fn delay(&mut self, due: Timestamp, ticket: &Ticket) {
        self.share.delayed.insert(ticket, due);
        self.timer = Some(self.timer.map_or(due, |first| first.min(due)));
    }

    /// Wakes up to `count` workers parked at a list, the newest first.
    pub(super) fn wake(&mut self, list: &ListName, count: usize) {
        for _ in 0..count.min(WAKES) {
            let Some(parked) = self.share.idle.get_mut(list).and_then(Scored::pop_last) else {
                return;
            };
            let (since, worker) = parked;
            if self.now.as_millis() - since.as_millis() <= PARKED_FOR {
                self.share.woken.insert(&worker, self.now);
                self.hint(worker, |partition| Hint::Ready { partition });
            }
        }
    }

    pub(super) fn hint_ready(&mut self, worker: WorkerId) {
        self.hint(worker, |partition| Hint::Ready { partition });
    }

    fn hint(&mut self, to: WorkerId, hint: impl FnOnce(Partition) -> Hint) {
        let hint = hint(self.share.partition);
        self.outbox.hints.push((to.into(), hint));
    }

    /// Writes down who runs a task: claim key, and when to look at it.
    pub(super) fn hold(
        &mut self,
        ticket: &Ticket,
        run: RunId,
        record: &TaskRecord,
        worker: &WorkerId,
        ttl: i64,
    ) {
        let key = ClaimKey::of(run, record, worker, ttl);
        self.share.claims.insert(
            (ticket.id.clone(), ticket.task.clone()),
            Expiring::new(key, later(self.now, ttl)),
        );
        let look = later(self.now, ttl.min(millis(TickRequest::LOOK)));
        self.share.running.insert(ticket, Look::at(look));
    }

    /// Nobody runs this task any more.
    pub(super) fn let_go(&mut self, ticket: &Ticket) {
        self.share.running.remove(ticket);
        self.share
            .claims
            .remove(&(ticket.id.clone(), ticket.task.clone()));
    }

    /// A fence that does not hold any more: its claim key goes, and its ticket too if the instance is over. Answers
    /// with the status of the instance.
    pub(super) fn drop_stale_claim(&mut self, stale: &Holding, worker: &WorkerId) -> Status {
        let Holding {
            ticket,
            run,
            record,
        } = stale;
        let key = (ticket.id.clone(), ticket.task.clone());
        let claim = self.share.claims.get(&key).and_then(|c| c.get(self.now));
        if claim.is_some_and(|claim| claim.belongs_to(worker, *run, record)) {
            self.share.claims.remove(&key);
        }
        let instance = self.share.instances.get(&ticket.id);
        let status = instance.map_or(Status::Terminated, |i| i.status);
        if status.is_terminal() {
            self.share.running.remove(ticket);
        }
        status
    }

    /// Ends an instance: open tasks are closed, their owners, the waiters and the subscribers are told.
    pub(super) fn end(&mut self, id: &InstanceId, status: Status) {
        self.end_with(id, status, None);
    }

    /// As [`Call::end`], and the waiters hear the result, if it is small.
    pub(super) fn end_with(&mut self, id: &InstanceId, status: Status, result: Option<Bytes>) {
        let now = self.now;
        let Some(instance) = self.share.instances.get_mut(id) else {
            return;
        };
        let from = std::mem::replace(&mut instance.status, status);
        instance.finished_at = Some(now);
        let tail = instance.run.tail();
        close_tasks(instance, id, &mut self.outbox);
        let result = result.filter(|result| result.len() <= Hint::TOLD);
        announce_end(
            instance,
            id,
            (from, status),
            now,
            result.as_ref(),
            &mut self.outbox,
        );
        let waits = instance.signals.give_up();
        signal::forget_waits(self, id, tail, waits);
        self.share.paused.remove(id);
        self.share
            .done
            .entry(status)
            .or_default()
            .push_back(Finished {
                id: id.clone(),
                tail,
                at: now,
            });
    }
}

impl Call<'_> {
    /// Says that a live instance is in another status now.
    pub(super) fn announce(&mut self, id: &InstanceId, from: Status, message: Option<&str>) {
        if let Some(instance) = self.share.instances.get(id) {
            let (to, at) = (instance.status, self.now);
            let event = event(instance, id, (from, to), at, message);
            self.outbox.events.push(event);
        }
    }

    /// Pauses a live instance because of an error, unless it is paused already.
    pub(super) fn pause_for(&mut self, id: &InstanceId, error: &ErrorRecord) {
        let Some(instance) = self.share.instances.get_mut(id) else {
            return;
        };
        instance.error = Some(error.clone());
        instance.due.remove(&error.task);
        let from = std::mem::replace(&mut instance.status, Status::Paused);
        if from != Status::Paused {
            instance.control = Some(ControlRecord::because_of(error));
            self.share.paused.insert(id.clone());
            self.announce(id, from, Some(&error.message));
        }
    }
}

/// A time so many milliseconds later.
pub(super) fn later(time: Timestamp, millis: i64) -> Timestamp {
    Timestamp::from_millis(time.as_millis().saturating_add(millis))
}

/// The deadline of an attempt that begins now, and that of all attempts; `due` if it was written down before.
pub(super) fn deadlines(
    now: Timestamp,
    limits: Limits,
    due: Option<Timestamp>,
) -> (Option<Timestamp>, Option<Timestamp>) {
    let overall = due.or_else(|| limits.deadline.map(|d| now.plus(d)));
    let attempt = limits.timeout.map(|t| now.plus(t));
    (attempt.into_iter().chain(overall).min(), overall)
}

/// Closes the open tasks of an instance that ends, and tells the owners of those that run.
pub(super) fn close_tasks(instance: &mut Instance, id: &InstanceId, outbox: &mut Outbox) {
    let tail = instance.run.tail();
    let damaged = match &instance.damage {
        Some(Damage::Task(task, _)) => Some(task),
        _ => None,
    };
    let open = |(task, record): &(&TaskName, &mut TaskRecord)| {
        record.state.is_open() && Some(*task) != damaged
    };
    for (_, record) in instance.tasks.iter_mut().filter(open) {
        if let (TaskState::Running, Some(worker)) = (record.state, record.worker.clone()) {
            let id = id.clone();
            outbox
                .hints
                .push((worker.into(), Hint::Cancelled { id, tail }));
        }
        record.state = TaskState::Closed;
    }
}

fn event(
    instance: &Instance,
    id: &InstanceId,
    (from, to): (Status, Status),
    at: Timestamp,
    message: Option<&str>,
) -> StatusEvent {
    StatusEvent {
        id: id.clone(),
        run: instance.run,
        from: Some(from),
        to,
        at,
        error: message.map(|text| text.replace(char::is_control, " ")),
    }
}

/// Tells subscribers and waiters that this run is over.
pub(super) fn announce_end(
    instance: &Instance,
    id: &InstanceId,
    (from, to): (Status, Status),
    at: Timestamp,
    result: Option<&Bytes>,
    outbox: &mut Outbox,
) {
    let failure = instance.error.as_ref().filter(|_| to == Status::Failed);
    let message = failure.map(|e| e.message.as_str());
    outbox
        .events
        .push(event(instance, id, (from, to), at, message));
    let tail = instance.run.tail();
    let done = |mailbox: &MailboxId| {
        (
            mailbox.clone(),
            Hint::Done {
                id: id.clone(),
                tail,
                result: result.cloned(),
            },
        )
    };
    outbox.hints.extend(instance.waiters.iter().map(done));
}
