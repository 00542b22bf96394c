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
    time::millis,
};

use super::{claim_start, record_field};

pub(in crate::store::redis) static SCRIPT: Named = script!("extend");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ExtendRequest,
) -> Result<Vec<Held>, StoreError> {
    inner.bounds().extend(request)?;
    let ttl = millis(request.ttl);
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
