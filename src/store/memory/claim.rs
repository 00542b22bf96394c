//! ready → running.

use super::{
    call::{Call, deadlines, later},
    scored::Expiring,
    state::LastClaim,
};
use crate::{
    engine::Limits,
    ids::{InputRef, ListName, Purpose, Ticket},
    store::{AsideEntry, ClaimReply, ClaimRequest, Claimed, Parking, TaskRecord, TaskState},
    time::millis,
};

/// How many entries a call looks at beyond what it wants.
const DROPS: usize = 64;
/// How long a call can be repeated, in milliseconds.
const AGAIN: i64 = 60_000;

pub(super) fn claim(call: &mut Call, request: &ClaimRequest) -> ClaimReply {
    call.share.woken.remove(&request.worker);
    let mut claim = Claim::new(request);
    if let Some(tickets) = same_call(call, request) {
        for ticket in tickets {
            claim.meet(call, ticket, Taking::Again);
        }
        return claim.reply;
    }
    claim.scan(call);
    let got = claim.reply.claims.len();
    claim.reply.again = claim.left == 0 && got < claim.want();
    if got > 0 {
        remember(call, request, &claim.reply);
    }
    let short = claim.is_short();
    claim.reply.parked = !claim.reply.again && park(call, request, short);
    if !short || claim.reply.again {
        // Also for lists that were not looked into: the hint that led here may have been for one of those.
        for list in &request.lists {
            wake_one_more(call, list);
        }
    }
    claim.reply
}

/// One claim under way.
struct Claim<'a> {
    request: &'a ClaimRequest,
    reply: ClaimReply,
    /// How many entries may still be looked at.
    left: usize,
    /// How many bytes of input still fit the reply.
    budget: usize,
}

/// Whether an entry may be taken, or only what was taken before is told again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taking {
    Fresh,
    Again,
}

impl<'a> Claim<'a> {
    fn new(request: &'a ClaimRequest) -> Self {
        Self {
            request,
            reply: ClaimReply::default(),
            left: usize::from(request.want) + DROPS,
            budget: ClaimRequest::MAX_INPUT,
        }
    }

    fn want(&self) -> usize {
        usize::from(self.request.want)
    }

    fn is_short(&self) -> bool {
        self.reply.claims.len() < self.want()
    }

    /// Takes from the heads of the lists until there is enough.
    fn scan(&mut self, call: &mut Call) {
        for list in &self.request.lists {
            while self.is_short() && self.left > 0 {
                let Some(ticket) = call.share.list(list).pop_front() else {
                    break;
                };
                self.left -= 1;
                self.meet(call, ticket, Taking::Fresh);
            }
        }
    }

    /// Takes the task that an entry names, sets the entry aside or drops it: it is only a hint, the snapshot decides.
    fn meet(&mut self, call: &mut Call, ticket: Ticket, taking: Taking) {
        let Some(instance) = call.share.instances.get_mut(&ticket.id) else {
            return;
        };
        if let Some(reason) = instance.unreadable(&ticket) {
            let ticket = ticket.to_string();
            call.share.aside.insert(ticket.clone(), reason.clone());
            self.reply.aside.push(AsideEntry { ticket, reason });
            return;
        }
        let paused = call.share.paused.contains(&ticket.id);
        let Some(record) = call
            .share
            .live(&ticket)
            .and_then(|i| i.tasks.get(&ticket.task))
        else {
            return;
        };
        let own = (Some(self.request.nonce), Some(&self.request.worker));
        match record.state {
            TaskState::Running if (record.nonce, record.worker.as_ref()) == own => {
                let record = record.clone();
                self.answer(call, ticket, record);
            }
            TaskState::Ready if taking == Taking::Fresh && paused => park_ticket(call, ticket),
            TaskState::Ready if taking == Taking::Fresh => self.take(call, ticket),
            _ => {}
        }
    }

    fn take(&mut self, call: &mut Call, ticket: Ticket) {
        let now = call.now;
        let limits = self.limits(&ticket);
        let Some(instance) = call.share.instances.get_mut(&ticket.id) else {
            return;
        };
        let Some(record) = instance.tasks.get_mut(&ticket.task) else {
            return;
        };
        let mut deadline = None;
        if let Some(limits) = limits {
            let due = instance.due.get(&ticket.task).copied();
            let (attempt, overall) = deadlines(now, limits, due);
            deadline = attempt;
            if let Some(overall) = overall {
                instance.due.insert(ticket.task.clone(), overall);
            }
        }
        *record = TaskRecord {
            state: TaskState::Running,
            attempt: record.attempt + 1,
            nonce: Some(self.request.nonce),
            failures: record.failures,
            crashes: record.crashes,
            worker: Some(self.request.worker.clone()),
            deadline,
        };
        instance.started_at.get_or_insert(now);
        let (run, record) = (instance.run, record.clone());
        let ttl = millis(self.request.ttl);
        call.hold(&ticket, run, &record, &self.request.worker, ttl);
        self.answer(call, ticket, record);
    }

    /// Nothing for an entry that stands twice: the task was answered with its first.
    fn answer(&mut self, call: &Call, ticket: Ticket, record: TaskRecord) {
        let same = |c: &Claimed| (&c.ticket.id, &c.ticket.task) == (&ticket.id, &ticket.task);
        if self.reply.claims.iter().any(same) {
            return;
        }
        let Some(instance) = call.share.instances.get(&ticket.id) else {
            return;
        };
        let input = match &ticket.input {
            InputRef::Field { field, len } if *len <= self.budget => {
                let value = instance.values.get(field).cloned();
                match (*len, ticket.purpose) {
                    // Where nothing is expected, none and an empty one are the same.
                    (0, Purpose::Run) => Some(value.unwrap_or_default()),
                    // A node that waited too long has no value of its own, unless it was entered again and had its signal.
                    _ => value.filter(|value| !value.is_empty()),
                }
            }
            InputRef::Field { .. } | InputRef::Join => None,
        };
        self.budget = self
            .budget
            .saturating_sub(input.as_ref().map_or(0, bytes::Bytes::len));
        let due = instance.due.get(&ticket.task).copied();
        let overall = due.filter(|_| self.limits(&ticket).is_some());
        self.reply.claims.push(Claimed {
            ticket,
            run: instance.run,
            record,
            input,
            overall,
            now: call.now,
        });
    }

    fn limits(&self, ticket: &Ticket) -> Option<Limits> {
        self.request
            .limits
            .get(&ticket.list)?
            .get(&ticket.task)
            .copied()
            .filter(|l| !l.is_none())
    }
}

/// Keeps the ticket of a paused instance until it is resumed.
fn park_ticket(call: &mut Call, ticket: Ticket) {
    let parked = call.share.parked.entry(ticket.id.clone());
    parked.or_default().push_back(ticket);
}

/// What was taken by an earlier call with this nonce.
fn same_call(call: &Call, request: &ClaimRequest) -> Option<Vec<Ticket>> {
    call.share
        .last
        .get(&request.worker)
        .and_then(|last| last.get(call.now))
        .filter(|last| last.nonce == request.nonce)
        .map(|last| last.tickets.clone())
}

fn remember(call: &mut Call, request: &ClaimRequest, reply: &ClaimReply) {
    let last = LastClaim {
        nonce: request.nonce,
        tickets: reply.claims.iter().map(|c| c.ticket.clone()).collect(),
    };
    call.share.last.insert(
        request.worker.clone(),
        Expiring::new(last, later(call.now, AGAIN)),
    );
}

/// Parks a worker that found too little, unparks one that is full; answers whether it is parked.
fn park(call: &mut Call, request: &ClaimRequest, short: bool) -> bool {
    let parks = short && request.parking != Parking::Never;
    for list in &request.lists {
        if parks {
            let idle = call.share.idle.entry(list.clone()).or_default();
            idle.insert(&request.worker, call.now);
        } else if !short
            && request.parking == Parking::Parked
            && let Some(idle) = call.share.idle.get_mut(list)
        {
            idle.remove(&request.worker);
        }
    }
    parks
}

/// What this worker leaves in a list is for another one.
fn wake_one_more(call: &mut Call, list: &ListName) {
    if !call.share.list(list).is_empty() {
        call.wake(list, 1);
    }
}
