//! `control.lua`

use bytes::Bytes;

use crate::{
    codec,
    engine::{FollowUp, Next, RetryPlan},
    error::StoreError,
    ids::{InstanceId, Nonce, Purpose, RunId, Ticket},
    store::{
        Control, ControlRecord, ControlReply, ControlRequest, RetryRequest,
        redis::{
            Inner,
            decode::tagged,
            script::{Args, Named, script},
        },
    },
};

use super::delay;

pub(in crate::store::redis) static SCRIPT: Named = script!("control", "control_retry");

/// What all controls have in common.
struct Call<'a> {
    id: &'a InstanceId,
    run: Option<RunId>,
    control: Control,
    nonce: Nonce,
    record: Bytes,
}

fn record(
    control: Control,
    reason: Option<&String>,
    actor: Option<&String>,
) -> Result<Bytes, StoreError> {
    codec::encode(&ControlRecord {
        control,
        reason: reason.cloned(),
        actor: actor.cloned(),
    })
    .map_err(|e| StoreError::Request {
        what: "reason and actor",
        allowed: "text".to_owned(),
        given: e.to_string(),
    })
}

fn common(inner: &Inner, call: Call<'_>) -> Result<Args, StoreError> {
    let keys = inner.keys_of(call.id.partition(inner.settings.partitions))?;
    let status = call.control.status();
    let mut args = Args::default();
    args.key(keys.meta())
        .key(keys.woken())
        .key(keys.seq())
        .key(keys.instance(call.id))
        .key(keys.errors(call.id))
        .key(keys.parked(call.id))
        .key(keys.paused())
        .key(keys.lists())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.waiting());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(inner.guard())
        .arg(call.control.as_str())
        .arg(call.id.to_string())
        .arg(call.run.map(|run| run.to_string()).unwrap_or_default())
        .arg(call.nonce.to_string())
        .payload(call.record)
        .arg(status.map_or("", crate::store::Status::as_str))
        .count(ControlRequest::MAX_RESUMED);
    Ok(args)
}

/// All but a retry.
pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ControlRequest,
) -> Result<ControlReply, StoreError> {
    inner.bounds().control(request)?;
    let call = Call {
        id: &request.id,
        run: request.run,
        control: request.control,
        nonce: request.nonce,
        record: record(
            request.control,
            request.reason.as_ref(),
            request.actor.as_ref(),
        )?,
    };
    let args = common(inner, call)?;
    answer(inner, &request.id, args).await
}

/// A retry, with its plan.
pub(in crate::store::redis) async fn retry(
    inner: &Inner,
    request: &RetryRequest,
) -> Result<ControlReply, StoreError> {
    inner.bounds().retry(request)?;
    let call = Call {
        id: &request.id,
        run: Some(request.run),
        control: Control::Retry,
        nonce: request.nonce,
        record: record(
            Control::Retry,
            request.reason.as_ref(),
            request.actor.as_ref(),
        )?,
    };
    let mut args = common(inner, call)?;
    args.number(request.died_at.as_millis());
    plan(&mut args, request, &request.plan);
    answer(inner, &request.id, args).await
}

fn begins(follow_up: &FollowUp) -> Option<(&Next, i64)> {
    match follow_up {
        FollowUp::Ready(next) => Some((next, 0)),
        FollowUp::After { next, delay: after } => Some((next, delay(*after))),
        FollowUp::Arrive { .. } | FollowUp::Wait { .. } | FollowUp::End { .. } => None,
    }
}

fn plan(args: &mut Args, request: &RetryRequest, plan: &RetryPlan) {
    let again: Vec<_> = plan.again.iter().filter_map(begins).collect();
    args.count(again.len())
        .count(plan.go_on.len())
        .count(plan.clear.len())
        .count(plan.joins.len());
    for (next, wait) in again {
        node(args, request, next);
        args.number(wait);
    }
    for next in &plan.go_on {
        node(args, request, next);
    }
    for task in &plan.clear {
        args.arg(task.to_string());
    }
    for (join, who) in &plan.joins {
        let names: Vec<_> = who.iter().map(crate::ids::TaskName::as_str).collect();
        args.arg(join.to_string())
            .count(who.len())
            .arg(names.join(","));
    }
}

fn node(args: &mut Args, request: &RetryRequest, next: &Next) {
    let ticket = Ticket {
        list: next.list.clone(),
        id: request.id.clone(),
        task: next.task.clone(),
        tail: request.run.tail(),
        purpose: Purpose::Run,
        input: next.input.clone(),
    };
    args.arg(next.task.to_string())
        .arg(next.list.to_string())
        .arg(ticket.entry());
}

async fn answer(inner: &Inner, id: &InstanceId, args: Args) -> Result<ControlReply, StoreError> {
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "not-found" => return Ok(ControlReply::NotFound),
        "unreadable" => return Err(inner.unreadable(id)),
        "format" => return Err(inner.format(id, items.text()?)),
        _ => {}
    }
    let run = items.parse()?;
    match tag.as_str() {
        "replaced" => Ok(ControlReply::Replaced { run }),
        "done" => Ok(ControlReply::Done { run }),
        "again" => Ok(ControlReply::Again { run }),
        "already-paused" => Ok(ControlReply::AlreadyPaused { run }),
        "changed" => Ok(ControlReply::Changed { run }),
        "over" => Ok(ControlReply::Over {
            run,
            status: items.parse()?,
        }),
        "live" => Ok(ControlReply::Live {
            run,
            status: items.parse()?,
        }),
        other => Err(items.unknown_tag(other)),
    }
}
