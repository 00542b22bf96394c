//! `release.lua`

use crate::{
    error::StoreError,
    store::{
        ReleaseReply, ReleaseRequest, TaskRecord, TaskState,
        redis::{
            Inner,
            decode::Items,
            script::{Args, Named, script},
        },
    },
};

use super::{Lists, claim_start, record_field};

pub(in crate::store::redis) static SCRIPT: Named = script!("release");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ReleaseRequest,
) -> Result<Vec<ReleaseReply>, StoreError> {
    inner.bounds().release(request)?;
    let keys = inner.keys_of(request.partition)?;
    let mut lists = Lists::default();
    let numbers: Vec<usize> = request
        .items
        .iter()
        .map(|holding| lists.number(&holding.ticket.list))
        .collect();
    let mut args = Args::default();
    args.key(keys.woken())
        .key(keys.seq())
        .key(keys.running())
        .key(keys.worker(&request.worker))
        .key(keys.keeper())
        .key(keys.lists());
    for key in lists.keys(keys) {
        args.key(key);
    }
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(request.worker.to_string())
        .arg(if request.leave { "1" } else { "0" })
        .count(lists.0.len())
        .count(request.items.len());
    for (holding, number) in request.items.iter().zip(numbers) {
        let (ticket, held) = (&holding.ticket, &holding.record);
        args.key(keys.instance(&ticket.id))
            .key(keys.claim(&ticket.id, &ticket.task));
        let released = TaskRecord {
            state: TaskState::Ready,
            nonce: None,
            worker: None,
            deadline: None,
            ..held.clone()
        };
        args.arg(record_field(ticket))
            .arg(holding.run.to_string())
            .arg(held.to_string())
            .arg(released.to_string())
            .count(number)
            .arg(ticket.entry())
            .arg(ticket.to_string())
            .arg(claim_start(holding, &request.worker));
    }
    let mut replies = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let mut answers = Vec::with_capacity(request.items.len());
    for _ in &request.items {
        answers.push(match replies.text()?.as_str() {
            "released" => ReleaseReply::Released,
            "lost" => ReleaseReply::Lost,
            "cancelled" => ReleaseReply::Cancelled,
            other => return Err(replies.unknown_tag(other)),
        });
    }
    Ok(answers)
}
