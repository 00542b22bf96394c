//! `start.lua`

use std::collections::{HashMap, HashSet};

use super::{Lists, delay};
use crate::{
    engine::{FollowUp, Next},
    error::StoreError,
    ids::{Partition, Purpose, SignalName, Ticket},
    store::{
        Begin, StartItem, StartReply,
        redis::{
            Inner,
            decode::{Items, tagged},
            keys::PartitionKeys,
            script::{Args, Named, script},
        },
    },
    workflow::OnExhausted,
};

pub(in crate::store::redis) static SCRIPT: Named = script!("start", "start_item");

/// One first node of an instance.
struct First<'a> {
    next: &'a Next,
    delay: i64,
}

fn firsts(item: &StartItem) -> impl Iterator<Item = First<'_>> {
    item.first.iter().filter_map(|follow_up| match follow_up {
        FollowUp::Ready(next) => Some(First { next, delay: 0 }),
        FollowUp::After { next, delay: after } => Some(First {
            next,
            delay: delay(*after),
        }),
        FollowUp::Arrive { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => None,
    })
}

/// Whether two items differ in no more than their ids, runs and payloads: they are of one kind then, and what they have
/// in common is sent once.
fn alike(a: &StartItem, b: &StartItem) -> bool {
    let common = |item: &StartItem| {
        let budget = (item.max_crashes, item.on_exhausted);
        (item.policy, item.begin, item.definition, budget)
    };
    common(a) == common(b)
        && a.workflow == b.workflow
        && a.queue == b.queue
        && a.waiter == b.waiter
        && a.signals == b.signals
        && firsts(a).count() == firsts(b).count()
        && firsts(a).zip(firsts(b)).all(|(a, b)| {
            a.delay == b.delay && a.next.task == b.next.task && a.next.list == b.next.list
        })
}

fn kind<'a>(args: &mut Args, lists: &mut Lists<'a>, item: &'a StartItem) {
    let (at, after) = match item.begin {
        Begin::Now => (None, 0),
        Begin::After(duration) => (None, delay(duration)),
        Begin::At(time) => (Some(time.as_millis()), 0),
    };
    args.arg(item.policy.as_str())
        .optional(at)
        .number(after)
        .count(firsts(item).count());
    for first in firsts(item) {
        args.arg(first.next.task.to_string())
            .count(lists.number(&first.next.list))
            .number(first.delay);
    }
    let count = args.len();
    args.count(0);
    args.arg("about").arg(format!(
        "{} {} {} {}",
        item.workflow, item.definition, item.queue, item.max_crashes
    ));
    args.arg("v").arg("1").arg("status").arg("running");
    // One token is what a snapshot without this field has.
    let tokens = firsts(item).count();
    if tokens > 1 {
        args.arg("open").count(tokens);
    }
    if !item.signals.is_empty() {
        args.arg("awaits").arg(words(&item.signals));
    }
    if item.on_exhausted == OnExhausted::Pause {
        args.arg("on_exhausted").arg("pause");
    }
    if let Some(waiter) = &item.waiter {
        args.arg("waiter").arg(waiter.to_string());
    }
    let written = args.len() - count - 1;
    args.set_count(count, written);
}

/// ` <name>` for each, as scripts look for it.
fn words(names: &[SignalName]) -> String {
    names.iter().map(|name| format!(" {name}")).collect()
}

fn entry(item: &StartItem, next: &Next) -> String {
    Ticket {
        list: next.list.clone(),
        id: item.id.clone(),
        task: next.task.clone(),
        tail: item.run.tail(),
        purpose: Purpose::Run,
        input: next.input.clone(),
    }
    .entry()
}

fn item(args: &mut Args, kind: usize, item: &StartItem) {
    args.count(kind)
        .arg(item.run.to_string())
        .arg(item.id.to_string())
        .payload(item.input.clone())
        .payload(item.meta.clone().unwrap_or_default());
    for first in firsts(item) {
        args.arg(entry(item, first.next));
    }
}

fn arguments(inner: &Inner, items: &[StartItem], keys: PartitionKeys<'_>) -> Args {
    let (mut kinds, mut rest, mut lists) = (Args::default(), Args::default(), Lists::default());
    let mut known: Vec<&StartItem> = Vec::new();
    for one in items {
        // The kind of the item before, nearly always.
        let place = known.iter().rposition(|other| alike(other, one));
        let place = place.unwrap_or_else(|| {
            kind(&mut kinds, &mut lists, one);
            known.push(one);
            known.len() - 1
        });
        rest.key(keys.instance(&one.id));
        item(&mut rest, place + 1, one);
    }
    let mut ids = HashSet::with_capacity(items.len());
    let twice = !items.iter().all(|item| ids.insert(&item.id));
    let mut args = Args::default();
    args.key(keys.seq())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.woken())
        .key(keys.lists())
        .key(keys.meta());
    for key in lists.keys(keys) {
        args.key(key);
    }
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .count(lists.0.len())
        .count(items.len())
        .arg(inner.guard())
        .arg(if twice { "1" } else { "0" });
    for list in &lists.0 {
        args.arg(list.to_string());
    }
    args.count(known.len());
    args.append(kinds);
    args.append(rest);
    args
}

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    partition: Partition,
    items: &[StartItem],
) -> Result<Vec<StartReply>, StoreError> {
    inner.bounds().start(partition, items)?;
    if items.is_empty() {
        return Ok(Vec::new());
    }
    let args = arguments(inner, items, inner.keys_of(partition)?);
    let mut replies = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let mut answers = Vec::with_capacity(items.len());
    for one in items {
        answers.push(reply(inner, one, replies.value()?)?);
    }
    superseded(items, &mut answers);
    Ok(answers)
}

fn reply(inner: &Inner, item: &StartItem, value: redis::Value) -> Result<StartReply, StoreError> {
    let (tag, mut items) = tagged(SCRIPT.name, value)?;
    match tag.as_str() {
        "started" => Ok(StartReply::Started),
        "superseded" => Ok(StartReply::Superseded),
        "exists" => Ok(StartReply::Exists {
            run: items.parse()?,
            status: items.parse()?,
        }),
        "existing" => Ok(StartReply::Existing {
            run: items.parse()?,
            status: items.parse()?,
        }),
        "unreadable" => Err(inner.unreadable(&item.id)),
        "format" => Err(inner.format(&item.id, items.text()?)),
        other => Err(items.unknown_tag(other)),
    }
}

/// Of two items with one id, the one that a later one replaced in the same call was started, but it is gone.
fn superseded(items: &[StartItem], answers: &mut [StartReply]) {
    let mut last = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if answers[at] != StartReply::Started {
            continue;
        }
        if let Some(before) = last.insert(&item.id, at)
            && items[before].run != item.run
        {
            answers[before] = StartReply::Superseded;
        }
    }
}
