//! `settle.lua`

use crate::{
    codec,
    engine::{FollowUp, Next},
    error::StoreError,
    ids::{Purpose, TaskName, Ticket, ValueField},
    store::{
        ClaimNext, Claimed, ErrorRecord, Holding, SettleReply, SettleRequest, Settlement,
        TaskRecord, TaskState, Verdict,
        redis::{
            Inner,
            decode::{Items, tagged},
            keys::PartitionKeys,
            script::{Args, Named, script},
        },
    },
    time::{Timestamp, millis},
};

use super::{Lists, delay, record_field};

pub(in crate::store::redis) static SCRIPT: Named = script!("settle", "settle_follow");

/// How a follow-up comes to be ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ready,
    After,
    Arrive,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::After => "after",
            Self::Arrive => "arrive",
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
}

fn queued(follow_up: &FollowUp) -> Option<Queued<'_>> {
    let ready = |next| Queued {
        kind: Kind::Ready,
        next,
        number: 0,
        total: 0,
    };
    match follow_up {
        FollowUp::Ready(next) => Some(ready(next)),
        FollowUp::After { next, delay: after } => Some(match delay(*after) {
            0 => ready(next),
            number => Queued {
                kind: Kind::After,
                next,
                number,
                total: 0,
            },
        }),
        FollowUp::Arrive { next, need, total } => Some(Queued {
            kind: Kind::Arrive,
            next,
            number: i64::from(*need),
            total: *total,
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

fn entry(holding: &Holding, next: &Next) -> String {
    follow_up_ticket(holding, next).entry()
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

/// The follow-up to claim, with its place among those that are sent.
fn wanted(item: &Settlement, follow_ups: &[FollowUp]) -> Option<(usize, ClaimNext)> {
    let claim_next = item.claim_next?;
    let sent = follow_ups.get(..=claim_next.follow_up)?;
    let place = sent.iter().filter_map(queued).count();
    let last = queued(sent.last()?)?;
    (last.kind != Kind::After).then_some((place, claim_next))
}

fn limits(args: &mut Args, next: Option<&Next>) {
    let limits = next.map(|next| next.limits).unwrap_or_default();
    args.optional(limits.timeout.map(delay))
        .optional(limits.deadline.map(delay));
}

fn completed<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    item: &'a Settlement,
    output: Option<&bytes::Bytes>,
    follow_ups: &'a [FollowUp],
) {
    let holding = &item.holding;
    let wanted = wanted(item, follow_ups);
    let queued: Vec<_> = follow_ups.iter().filter_map(queued).collect();
    args.count(wanted.map_or(0, |(place, _)| place));
    match wanted {
        Some((place, claim)) => {
            args.arg(claim.nonce.to_string());
            args.arg(if claim.only_if_empty {
                "if-empty"
            } else {
                "always"
            });
            limits(args, Some(queued[place - 1].next));
        }
        None => {
            args.arg("").arg("always");
            limits(args, None);
        }
    }
    args.count(queued.len());
    for follow_up in &queued {
        args.arg(follow_up.kind.as_str())
            .count(lists.number(&follow_up.next.list))
            .arg(entry(holding, follow_up.next))
            .arg(follow_up.next.task.to_string())
            .number(follow_up.number)
            .number(follow_up.total);
    }
    args.arg(record_field(&holding.ticket))
        .arg(settled(&holding.record, TaskState::Completed, 0));
    if let Some(output) = output {
        args.arg(ValueField::Output(holding.ticket.task.clone()).to_string())
            .payload(output.clone());
    }
    for follow_up in &queued {
        let state = match follow_up.kind {
            Kind::Ready => TaskState::Ready,
            Kind::After => TaskState::Delayed,
            Kind::Arrive => continue,
        };
        args.arg(format!("task:{}", follow_up.next.task))
            .arg(TaskRecord::fresh(state).to_string());
    }
    for follow_up in follow_ups {
        if let FollowUp::End { result } = follow_up {
            args.arg("result").arg(result.to_string());
        }
    }
}

fn error_bytes(error: &ErrorRecord) -> Result<bytes::Bytes, StoreError> {
    codec::encode(error).map_err(|e| StoreError::Request {
        what: "an error record",
        allowed: "text".to_owned(),
        given: e.to_string(),
    })
}

fn verdict<'a>(
    args: &mut Args,
    lists: &mut Lists<'a>,
    item: &'a Settlement,
) -> Result<(), StoreError> {
    let held = &item.holding.record;
    match &item.verdict {
        Verdict::Completed { output, follow_ups } => {
            completed(args, lists, item, output.as_ref(), follow_ups);
        }
        Verdict::Retry { after, error } => {
            let after = delay(*after);
            let state = if after == 0 {
                TaskState::Ready
            } else {
                TaskState::Delayed
            };
            let again = Ticket {
                purpose: Purpose::Run,
                ..item.holding.ticket.clone()
            };
            args.arg(settled(held, state, 1))
                .count(lists.number(&item.holding.ticket.list))
                .arg(again.entry())
                .number(after)
                .payload(error_bytes(error)?);
        }
        Verdict::Failed { error } => {
            args.arg(settled(held, TaskState::Failed, 1))
                .payload(error_bytes(error)?)
                .arg(error.message.clone());
        }
    }
    Ok(())
}

fn third_key(item: &Settlement, keys: PartitionKeys<'_>) -> String {
    let id = &item.holding.ticket.id;
    let own = &item.holding.ticket.task;
    match &item.verdict {
        Verdict::Completed { follow_ups, .. } => {
            let next = item.claim_next.and_then(|c| follow_ups.get(c.follow_up));
            let task: &TaskName = next.and_then(queued).map_or(own, |q| &q.next.task);
            keys.claim(id, task)
        }
        Verdict::Retry { .. } | Verdict::Failed { .. } => keys.errors(id),
    }
}

fn arguments(
    inner: &Inner,
    request: &SettleRequest,
    keys: PartitionKeys<'_>,
) -> Result<Args, StoreError> {
    let ttl = millis(request.ttl);
    let mut lists = Lists::default();
    let mut items = Args::default();
    for item in &request.items {
        let ticket = &item.holding.ticket;
        items
            .key(keys.instance(&ticket.id))
            .key(keys.claim(&ticket.id, &ticket.task))
            .key(third_key(item, keys));
        items
            .arg(match &item.verdict {
                Verdict::Completed { .. } => "completed",
                Verdict::Retry { .. } => "retry",
                Verdict::Failed { .. } => "failed",
            })
            .arg(ticket.id.to_string())
            .arg(record_field(ticket))
            .arg(item.holding.run.to_string())
            .arg(item.holding.record.to_string())
            .arg(ticket.to_string());
        let count = items.len();
        items.count(0);
        verdict(&mut items, &mut lists, item)?;
        let written = items.len() - count - 1;
        items.set_count(count, written);
    }
    let mut args = Args::default();
    args.key(keys.woken())
        .key(keys.seq())
        .key(keys.running())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.done("completed"))
        .key(keys.done("failed"))
        .key(keys.lists());
    for key in lists.keys(keys) {
        args.key(key);
    }
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(request.worker.to_string())
        .number(ttl)
        .count(lists.0.len())
        .count(request.items.len());
    for list in &lists.0 {
        args.arg(list.to_string());
    }
    args.append(items);
    Ok(args)
}

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &SettleRequest,
) -> Result<Vec<SettleReply>, StoreError> {
    inner.bounds().settle(request)?;
    if request.items.is_empty() {
        return Ok(Vec::new());
    }
    let keys = inner.keys_of(request.partition)?;
    let args = arguments(inner, request, keys)?;
    let mut reply = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let now = reply.time()?;
    let mut replies = reply.items()?;
    request
        .items
        .iter()
        .map(|_| answer(replies.value()?, now))
        .collect()
}

fn answer(value: redis::Value, now: Timestamp) -> Result<SettleReply, StoreError> {
    let (tag, mut items) = tagged(SCRIPT.name, value)?;
    match tag.as_str() {
        "stored" => Ok(SettleReply::Stored { next: None }),
        "lost" => Ok(SettleReply::Lost),
        "cancelled" => Ok(SettleReply::Cancelled),
        "gone" => Ok(SettleReply::Gone),
        "claimed" => {
            let (list, entry) = (items.text()?, items.text()?);
            let ticket = super::claim::ticket(&list, &entry)?;
            Ok(SettleReply::Stored {
                next: Some(Box::new(Claimed {
                    ticket,
                    run: items.parse()?,
                    record: items.parse()?,
                    input: None,
                    overall: items.optional()?.map(Timestamp::from_millis),
                    now,
                })),
            })
        }
        other => Err(items.unknown_tag(other)),
    }
}
