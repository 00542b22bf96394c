//! One item of `settle.lua`: what is sent of a settlement, in as few words as its kind allows.

use bytes::Bytes;

use super::{Lists, claim_start, delay, record_field};
use crate::{
    codec,
    engine::{FollowUp, Limits, Next, Wait},
    error::StoreError,
    ids::{Nonce, Purpose, TaskName, Ticket, ValueField, WorkerId},
    store::{
        ClaimNext, ControlRecord, ErrorRecord, Holding, SettleRequest, Settlement, TaskRecord,
        TaskState, Verdict,
        redis::{keys::PartitionKeys, script::Args},
    },
    time::millis,
};

/// How a follow-up comes to be ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ready,
    After,
    Arrive,
    Await,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::After => "after",
            Self::Arrive => "arrive",
            Self::Await => "await",
        }
    }
}

/// A follow-up that takes a token: where it goes, and how.
struct Queued<'a> {
    kind: Kind,
    next: &'a Next,
    /// Delay in milliseconds, or how many arrivals are needed.
    number: i64,
    total: u16,
    wait: Option<&'a Wait>,
    /// Among all follow-ups.
    place: usize,
}

fn queued((place, follow_up): (usize, &FollowUp)) -> Option<Queued<'_>> {
    let ready = |next| Queued {
        kind: Kind::Ready,
        next,
        number: 0,
        total: 0,
        wait: None,
        place,
    };
    match follow_up {
        FollowUp::Ready(next) => Some(ready(next)),
        FollowUp::After { next, delay: after } => Some(match delay(*after) {
            0 => ready(next),
            number => Queued {
                kind: Kind::After,
                number,
                ..ready(next)
            },
        }),
        FollowUp::Arrive { next, need, total } => Some(Queued {
            kind: Kind::Arrive,
            number: i64::from(*need),
            total: *total,
            ..ready(next)
        }),
        FollowUp::Wait { next, wait } => Some(Queued {
            kind: Kind::Await,
            wait: Some(wait),
            ..ready(next)
        }),
        FollowUp::End { .. } => None,
    }
}

fn settled(held: &TaskRecord, state: TaskState, failures: u32) -> String {
    TaskRecord {
        state,
        failures: held.failures + failures,
        deadline: None,
        ..held.clone()
    }
    .to_string()
}

fn follow_up_ticket(holding: &Holding, next: &Next) -> Ticket {
    Ticket {
        list: next.list.clone(),
        id: holding.ticket.id.clone(),
        task: next.task.clone(),
        tail: holding.ticket.tail,
        purpose: Purpose::Run,
        input: next.input.clone(),
    }
}

/// The entry of a node up to its ref, which the script adds.
fn start(ticket: &Ticket, task: &TaskName) -> String {
    format!("{}\0{task}\0{}", ticket.id, ticket.tail)
}

fn limits(args: &mut Args, limits: Limits) {
    args.optional(limits.timeout.map(delay))
        .optional(limits.deadline.map(delay));
}

/// How a completed node is sent: most either end their branch or hand on to one task, and need few words for it.
enum Shape<'a> {
    /// Nothing that takes a token follows.
    Ends,
    /// One task without bounds follows, and the caller goes on with it: all that is stored is known before.
    Handed { next: &'a Next, nonce: Nonce },
    /// Everything else.
    Follow(Vec<Queued<'a>>),
}

fn shape<'a>(item: &Settlement, follow_ups: &'a [FollowUp]) -> Shape<'a> {
    let queued: Vec<_> = follow_ups.iter().enumerate().filter_map(queued).collect();
    match (queued.as_slice(), item.claim_next) {
        ([], _) => Shape::Ends,
        ([only], Some(claim))
            if only.kind == Kind::Ready
                && !claim.only_if_empty
                && only.next.limits.is_none()
                && follow_ups.len() == 1 =>
        {
            Shape::Handed {
                next: only.next,
                nonce: claim.nonce,
            }
        }
        _ => Shape::Follow(queued),
    }
}

/// The claim of a follow-up that goes with the settlement: nothing of it is left to the script.
fn handed(holding: &Holding, next: &Next, worker: &WorkerId, nonce: Nonce) -> Holding {
    Holding {
        ticket: follow_up_ticket(holding, next),
        run: holding.run,
        record: TaskRecord::first(worker, nonce),
    }
}

/// What is stored of the completed node itself.
fn own_fields(args: &mut Args, holding: &Holding, output: Option<&Bytes>) {
    args.arg(record_field(&holding.ticket))
        .arg(settled(&holding.record, TaskState::Completed, 0));
    if let Some(output) = output {
        args.arg(ValueField::Output(holding.ticket.task.clone()).to_string())
            .payload(output.clone());
    }
}

/// The field that holds the result of the instance, if this settlement says so.
fn result(follow_ups: &[FollowUp]) -> Option<&ValueField> {
    follow_ups.iter().find_map(|follow_up| match follow_up {
        FollowUp::End { result } => Some(result),
        _ => None,
    })
}

/// The follow-up to claim, with its number among those that are sent, from 1.
type Wanted<'a> = (&'a Next, usize, ClaimNext);

fn wanted<'a>(item: &Settlement, queued: &[Queued<'a>]) -> Option<Wanted<'a>> {
    let claim = item.claim_next?;
    let place = queued.iter().position(|q| q.place == claim.follow_up)?;
    let follow_up = &queued[place];
    let can = matches!(follow_up.kind, Kind::Ready | Kind::Arrive);
    can.then_some((follow_up.next, place + 1, claim))
}

/// The general case.
fn follow<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    holding: &Holding,
    queued: &[Queued<'a>],
    wanted: Option<Wanted<'a>>,
) {
    args.arg(holding.ticket.id.to_string());
    match wanted {
        Some((next, number, claim)) => {
            let when = if claim.only_if_empty {
                "if-empty"
            } else {
                "always"
            };
            args.count(number).arg(claim.nonce.to_string()).arg(when);
            limits(args, next.limits);
        }
        None => {
            args.count(0).arg("").arg("always");
            limits(args, Limits::NONE);
        }
    }
    args.count(queued.len());
    for follow_up in queued {
        let next = follow_up.next;
        args.arg(follow_up.kind.as_str())
            .count(lists.number(&next.list));
        match follow_up.wait {
            Some(wait) => args
                .arg(start(&holding.ticket, &next.task))
                .arg(next.task.to_string())
                .optional(wait.timeout.map(delay))
                .arg(wait.signal.to_string()),
            None => args
                .arg(follow_up_ticket(holding, next).entry())
                .arg(next.task.to_string())
                .number(follow_up.number)
                .number(follow_up.total),
        };
    }
}

fn follow_fields(args: &mut Args, queued: &[Queued<'_>]) {
    for follow_up in queued {
        let state = match follow_up.kind {
            Kind::Ready => TaskState::Ready,
            Kind::After => TaskState::Delayed,
            Kind::Arrive | Kind::Await => continue,
        };
        args.arg(format!("task:{}", follow_up.next.task))
            .arg(TaskRecord::fresh(state).to_string());
    }
}

fn encoded(record: &impl serde::Serialize) -> Result<Bytes, StoreError> {
    codec::encode(record).map_err(|e| StoreError::Request {
        what: "an error record",
        allowed: "text".to_owned(),
        given: e.to_string(),
    })
}

/// Writes one item; the errors are those of the encoding.
pub(super) fn write<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    keys: PartitionKeys<'_>,
    request: &SettleRequest,
    item: &'a Settlement,
) -> Result<(), StoreError> {
    let (ticket, run) = (&item.holding.ticket, item.holding.run);
    let tag = args.len();
    args.key(keys.instance(&ticket.id))
        .key(keys.claim(&ticket.id, &ticket.task))
        .arg("")
        .arg(run.to_string())
        .arg(item.holding.record.to_string())
        .arg(ticket.to_string());
    let count = args.len();
    args.count(0);
    let verdict = match &item.verdict {
        Verdict::Completed { output, follow_ups } => {
            let shape = shape(item, follow_ups);
            let result = result(follow_ups).map(ToString::to_string);
            let payloads = (output.as_ref(), result);
            completed(args, lists, keys, (request, item), payloads, shape)
        }
        Verdict::Wait(wait) => self::wait(args, lists, &item.holding, wait),
        Verdict::Retry { after, error } => {
            args.key(keys.errors(&ticket.id));
            retry(args, lists, &item.holding, delay(*after), error)?
        }
        Verdict::Paused { error } => {
            args.key(keys.errors(&ticket.id));
            paused(args, lists, &item.holding, error)?
        }
        Verdict::Failed { error } => {
            args.key(keys.errors(&ticket.id));
            failed(args, &item.holding, error)?
        }
    };
    let written = args.len() - count - 1;
    args.set_count(count, written).set(tag, verdict);
    Ok(())
}

fn completed<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    keys: PartitionKeys<'_>,
    (request, item): (&SettleRequest, &'a Settlement),
    (output, result): (Option<&Bytes>, Option<String>),
    shape: Shape<'a>,
) -> &'static str {
    let holding = &item.holding;
    let id = &holding.ticket.id;
    match shape {
        Shape::Ends => {
            args.arg(id.to_string()).arg(result.unwrap_or_default());
            own_fields(args, holding, output);
            "ends"
        }
        Shape::Handed { next, nonce } => {
            let claim = handed(holding, next, &request.worker, nonce);
            let start = claim_start(&claim, &request.worker);
            args.key(keys.claim(id, &next.task))
                .arg(claim.ticket.to_string())
                .arg(format!("{start}{}", millis(request.ttl)));
            own_fields(args, holding, output);
            args.arg(record_field(&claim.ticket))
                .arg(claim.record.to_string());
            "handed"
        }
        Shape::Follow(queued) => {
            let wanted = wanted(item, &queued);
            let task = wanted.map_or(&holding.ticket.task, |(next, ..)| &next.task);
            args.key(keys.claim(id, task));
            follow(args, lists, holding, &queued, wanted);
            own_fields(args, holding, output);
            follow_fields(args, &queued);
            if let Some(result) = result {
                args.arg("result").arg(result);
            }
            "follow"
        }
    }
}

fn wait<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    holding: &'a Holding,
    wait: &Wait,
) -> &'static str {
    let ticket = &holding.ticket;
    args.arg(record_field(ticket))
        .arg(settled(&holding.record, TaskState::Waiting, 0))
        .arg(ticket.id.to_string())
        .count(lists.number(&ticket.list))
        .arg(start(ticket, &ticket.task))
        .optional(wait.timeout.map(delay))
        .arg(wait.signal.to_string());
    "wait"
}

/// Whether what becomes of a task changes who waits for signals.
pub(super) fn touches_waiting(item: &Settlement) -> bool {
    match &item.verdict {
        Verdict::Completed { follow_ups, .. } => {
            let waits = |follow_up: &FollowUp| matches!(follow_up, FollowUp::Wait { .. });
            follow_ups.iter().any(waits)
        }
        Verdict::Wait(_) | Verdict::Failed { .. } => true,
        Verdict::Retry { .. } | Verdict::Paused { .. } => false,
    }
}

fn retry<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    holding: &'a Holding,
    after: i64,
    error: &ErrorRecord,
) -> Result<&'static str, StoreError> {
    let state = if after == 0 {
        TaskState::Ready
    } else {
        TaskState::Delayed
    };
    args.arg(record_field(&holding.ticket))
        .arg(settled(&holding.record, state, 1))
        .count(lists.number(&holding.ticket.list))
        .arg(again(holding).entry())
        .number(after)
        .payload(encoded(error)?);
    Ok("retry")
}

/// The ticket of the next attempt: an ordinary one, whatever this one was for.
fn again(holding: &Holding) -> Ticket {
    Ticket {
        purpose: Purpose::Run,
        ..holding.ticket.clone()
    }
}

fn paused<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    holding: &'a Holding,
    error: &ErrorRecord,
) -> Result<&'static str, StoreError> {
    let record = TaskRecord {
        failures: 0,
        crashes: 0,
        ..holding.record.clone()
    };
    args.arg(record_field(&holding.ticket))
        .arg(settled(&record, TaskState::Ready, 0))
        .arg(holding.ticket.id.to_string())
        .count(lists.number(&holding.ticket.list))
        .arg(again(holding).entry())
        .payload(encoded(error)?)
        .payload(encoded(&ControlRecord::because_of(error))?)
        .arg(error.message.clone());
    Ok("paused")
}

fn failed(
    args: &mut Args,
    holding: &Holding,
    error: &ErrorRecord,
) -> Result<&'static str, StoreError> {
    args.arg(record_field(&holding.ticket))
        .arg(settled(&holding.record, TaskState::Failed, 1))
        .arg(holding.ticket.id.to_string())
        .payload(encoded(error)?)
        .arg(error.message.clone());
    Ok("failed")
}

/// The claim that goes with an item of the kind `handed`.
pub(super) fn handed_claim(request: &SettleRequest, item: &Settlement) -> Option<Holding> {
    let Verdict::Completed { follow_ups, .. } = &item.verdict else {
        return None;
    };
    match shape(item, follow_ups) {
        Shape::Handed { next, nonce } => Some(handed(&item.holding, next, &request.worker, nonce)),
        Shape::Ends | Shape::Follow(_) => None,
    }
}
