//! `settle.lua`

use super::{Lists, settle_item};
use crate::{
    error::StoreError,
    store::{
        Claimed, SettleReply, SettleRequest, Settlement, Verdict,
        redis::{
            Inner,
            decode::{Items, tagged},
            keys::PartitionKeys,
            script::{Args, Named, script},
        },
    },
    time::{Timestamp, millis},
};

pub(in crate::store::redis) static SCRIPT: Named =
    script!("settle", "settle_await", "settle_follow", "settle_hand");

fn arguments(
    inner: &Inner,
    request: &SettleRequest,
    keys: PartitionKeys<'_>,
) -> Result<Args, StoreError> {
    let mut lists = Lists::default();
    let mut items = Args::default();
    for item in &request.items {
        settle_item::write(&mut items, &mut lists, keys, request, item)?;
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
        .number(millis(request.ttl))
        .count(lists.0.len())
        .count(request.items.len());
    for list in &lists.0 {
        args.arg(list.to_string());
    }
    args.append(items);
    if request.items.iter().any(settle_item::touches_waiting) {
        args.key(keys.waiting());
    }
    let pauses = |item: &Settlement| matches!(item.verdict, Verdict::Paused { .. });
    if request.items.iter().any(pauses) {
        args.key(keys.paused());
    }
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
        .map(|item| answer(request, item, replies.value()?, now))
        .collect()
}

fn answer(
    request: &SettleRequest,
    item: &Settlement,
    value: redis::Value,
    now: Timestamp,
) -> Result<SettleReply, StoreError> {
    let (tag, mut items) = tagged(SCRIPT.name, value)?;
    match tag.as_str() {
        "stored" => Ok(SettleReply::Stored { next: None }),
        "lost" => Ok(SettleReply::Lost),
        "cancelled" => Ok(SettleReply::Cancelled),
        "gone" => Ok(SettleReply::Gone),
        "claimed" if items.is_empty() => {
            let claim = settle_item::handed_claim(request, item)
                .ok_or_else(|| items.unknown_tag("claimed"))?;
            Ok(SettleReply::Stored {
                next: Some(Box::new(Claimed {
                    ticket: claim.ticket,
                    run: claim.run,
                    record: claim.record,
                    input: None,
                    overall: None,
                    now,
                })),
            })
        }
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
