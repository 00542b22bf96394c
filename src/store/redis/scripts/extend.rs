//! `extend.lua`

use crate::{
    error::StoreError,
    store::{
        ExtendRequest, Held,
        redis::{
            Inner,
            decode::Items,
            script::{Args, Named, script},
        },
    },
};

use super::{at_most, claim_start, lifetime, record_field};

pub(in crate::store::redis) static SCRIPT: Named = script!("extend");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ExtendRequest,
) -> Result<Vec<Held>, StoreError> {
    at_most(
        "the claims of one extend",
        request.items.len(),
        ExtendRequest::MAX_ITEMS,
    )?;
    let ttl = lifetime("the TTL of a claim", request.ttl)?;
    let keys = inner.keys_of(request.partition)?;
    let mut args = Args::default();
    args.key(keys.woken()).key(keys.worker(&request.worker));
    args.arg(request.worker.to_string()).number(ttl);
    for holding in &request.items {
        let ticket = &holding.ticket;
        args.key(keys.instance(&ticket.id))
            .key(keys.claim(&ticket.id, &ticket.task));
        let until = holding.record.deadline;
        args.arg(record_field(ticket))
            .arg(holding.run.to_string())
            .arg(holding.record.to_string())
            .optional(until.map(|d| d.plus(ExtendRequest::GRACE).as_millis()))
            .arg(format!("{}{ttl}", claim_start(holding, &request.worker)));
    }
    let mut replies = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let mut answers = Vec::with_capacity(request.items.len());
    for _ in &request.items {
        answers.push(match replies.text()?.as_str() {
            "ok" => Held::Ok,
            "lost" => Held::Lost,
            "cancelled" => Held::Cancelled,
            other => return Err(replies.unknown_tag(other)),
        });
    }
    Ok(answers)
}
