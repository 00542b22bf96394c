//! `control.lua`

use crate::{
    codec,
    error::StoreError,
    store::{
        ControlRecord, ControlReply, ControlRequest,
        redis::{
            Inner,
            decode::tagged,
            script::{Args, Named, script},
        },
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("control");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &ControlRequest,
) -> Result<ControlReply, StoreError> {
    let keys = inner.keys_of(request.id.partition(inner.settings.partitions))?;
    let record = codec::encode(&ControlRecord {
        control: request.control,
        reason: request.reason.clone(),
        actor: request.actor.clone(),
    })
    .map_err(|e| StoreError::Request {
        what: "reason and actor",
        allowed: "text".to_owned(),
        given: e.to_string(),
    })?;
    inner.check_size(
        || format!("reason and actor for `{}`", request.id),
        record.len(),
    )?;
    let status = request.control.status().as_str();
    let mut args = Args::default();
    args.key(keys.seq())
        .key(keys.instance(&request.id))
        .key(keys.done(status))
        .key(keys.delayed())
        .key(keys.waiting());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(request.id.to_string())
        .arg(request.run.map(|run| run.to_string()).unwrap_or_default())
        .arg(status)
        .payload(record);
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "not-found" => Ok(ControlReply::NotFound),
        "replaced" => Ok(ControlReply::Replaced {
            run: items.parse()?,
        }),
        "done" => Ok(ControlReply::Done {
            run: items.parse()?,
        }),
        "over" => Ok(ControlReply::Over {
            run: items.parse()?,
            status: items.parse()?,
        }),
        "unreadable" => Err(inner.unreadable(&request.id)),
        "format" => Err(inner.format(&request.id, items.text()?)),
        other => Err(items.unknown_tag(other)),
    }
}
