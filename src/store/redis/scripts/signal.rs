//! `signal.lua`

use crate::{
    error::StoreError,
    ids::SignalName,
    store::{
        SignalReply, SignalRequest,
        redis::{
            Inner,
            decode::tagged,
            script::{Args, Named, script},
        },
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("signal");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &SignalRequest,
) -> Result<SignalReply, StoreError> {
    inner.bounds().signal(request)?;
    let keys = inner.keys_of(request.id.partition(inner.settings.partitions))?;
    let mut args = Args::default();
    args.key(keys.seq())
        .key(keys.instance(&request.id))
        .key(keys.waiting())
        .key(keys.delayed())
        .key(keys.woken())
        .key(keys.lists())
        .key(keys.meta());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(inner.guard())
        .arg(request.id.to_string())
        .arg(request.run.map(|run| run.to_string()).unwrap_or_default())
        .arg(request.name.to_string())
        .arg(request.signal.to_string())
        .payload(request.payload.clone());
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "not-found" => Ok(SignalReply::NotFound),
        "accepted" => Ok(SignalReply::Accepted {
            run: items.parse()?,
        }),
        "replaced" => Ok(SignalReply::Replaced {
            run: items.parse()?,
        }),
        "over" => Ok(SignalReply::Over {
            run: items.parse()?,
            status: items.parse()?,
        }),
        "not-awaited" => Ok(SignalReply::NotAwaited {
            awaited: items
                .text()?
                .split_ascii_whitespace()
                .map(SignalName::new)
                .collect::<Result<_, _>>()?,
        }),
        "full" => Ok(SignalReply::Full),
        "unreadable" => Err(inner.unreadable(&request.id)),
        "format" => Err(inner.format(&request.id, items.text()?)),
        other => Err(items.unknown_tag(other)),
    }
}
