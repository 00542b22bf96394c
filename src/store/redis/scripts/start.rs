//! `start.lua`

use std::collections::HashMap;

use crate::{
    engine::{FollowUp, Next},
    error::StoreError,
    ids::{ListName, Partition, Purpose, Ticket},
    store::{
        Begin, StartItem, StartReply, TaskRecord, TaskState,
        redis::{
            Inner,
            decode::{Items, tagged},
            script::{Args, Named, script},
        },
    },
};

use super::{Lists, delay};

pub(in crate::store::redis) static SCRIPT: Named = script!("start");

/// One first node of an instance.
struct First<'a> {
    next: &'a Next,
    delay: i64,
}

fn firsts(item: &StartItem) -> Vec<First<'_>> {
    item.first
        .iter()
        .filter_map(|follow_up| match follow_up {
            FollowUp::Ready(next) => Some(First { next, delay: 0 }),
            FollowUp::After { next, delay: after } => Some(First {
                next,
                delay: delay(*after),
            }),
            FollowUp::Arrive { .. } | FollowUp::End { .. } => None,
        })
        .collect()
}

fn fields(args: &mut Args, item: &StartItem, firsts: &[First<'_>], waits: bool) -> usize {
    let from = args.len();
    args.arg("v").arg("1").arg("status").arg("running");
    args.arg("workflow").arg(item.workflow.to_string());
    args.arg("definition").arg(item.definition.to_string());
    args.arg("run").arg(item.run.to_string());
    args.arg("queue").arg(item.queue.to_string());
    args.arg("open").count(firsts.len());
    args.arg("max_crashes").number(item.max_crashes);
    args.arg("input").payload(item.input.clone());
    if let Some(meta) = &item.meta {
        args.arg("meta").payload(meta.clone());
    }
    if let Some(waiter) = &item.waiter {
        args.arg("waiter").arg(waiter.to_string());
    }
    for first in firsts {
        let state = if waits || first.delay > 0 {
            TaskState::Delayed
        } else {
            TaskState::Ready
        };
        args.arg(format!("task:{}", first.next.task));
        args.arg(TaskRecord::fresh(state).to_string());
    }
    args.len() - from
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

fn item<'a>(
    args: &mut Args,
    numbers: &HashMap<&'a ListName, usize>,
    item: &'a StartItem,
    firsts: &[First<'a>],
) {
    let (at, after) = match item.begin {
        Begin::Now => (None, 0),
        Begin::After(duration) => (None, delay(duration)),
        Begin::At(time) => (Some(time.as_millis()), 0),
    };
    args.arg(item.run.to_string())
        .arg(item.policy.as_str())
        .arg(item.id.to_string())
        .optional(at)
        .number(after)
        .count(firsts.len());
    let count = args.len();
    args.count(0);
    let written = fields(args, item, firsts, at.is_some() || after > 0);
    args.set_count(count, written);
    for first in firsts {
        args.count(numbers.get(&first.next.list).copied().unwrap_or(0))
            .arg(entry(item, first.next))
            .number(first.delay);
    }
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
    let keys = inner.keys_of(partition)?;
    let firsts: Vec<_> = items.iter().map(firsts).collect();
    let mut lists = Lists::default();
    let numbers: HashMap<_, _> = firsts
        .iter()
        .flatten()
        .map(|first| (&first.next.list, lists.number(&first.next.list)))
        .collect();
    let mut args = Args::default();
    args.key(keys.seq())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.woken())
        .key(keys.lists());
    for key in lists.keys(keys) {
        args.key(key);
    }
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .count(lists.0.len())
        .count(items.len());
    for list in &lists.0 {
        args.arg(list.to_string());
    }
    for (one, firsts) in items.iter().zip(&firsts) {
        args.key(keys.instance(&one.id))
            .key(keys.errors(&one.id))
            .key(keys.parked(&one.id));
        item(&mut args, &numbers, one, firsts);
    }
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
