//! `probe.lua`

use crate::{
    error::StoreError,
    store::redis::{
        Inner,
        decode::tagged,
        keys::PartitionKeys,
        script::{Args, Named, script},
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("probe");

/// No user may choose this as a name, and no entry can hold it.
pub(in crate::store::redis) const PROBE: &str = "!probe";

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    keys: PartitionKeys<'_>,
) -> Result<(), StoreError> {
    let mut args = Args::default();
    args.key(keys.woken())
        .key(keys.meta())
        .key(keys.seq())
        .key(keys.running())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.aside())
        .key(keys.lists())
        .key(keys.paused());
    for kind in [
        "last:",
        "worker:",
        "instance:",
        "claim:",
        "errors:",
        "parked:",
        "ready:",
        "idle:",
        "done:",
    ] {
        args.key([keys.prefix, kind, PROBE].concat());
    }
    args.key(keys.waiting());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command());
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "ok" => Ok(()),
        "missing" => {
            let (command, place, said) = (items.text()?, items.text()?, items.text()?);
            let kind = place.trim_end_matches(PROBE);
            let missing = if said.contains("channel") {
                format!("use the channels `{kind}` (publish and subscribe)")
            } else if said.contains("key") {
                format!("touch the keys `{kind}`")
            } else {
                format!("run `{}`", command.to_lowercase())
            };
            Err(StoreError::Right {
                missing,
                namespace: inner.settings.namespace.to_string(),
            })
        }
        other => Err(items.unknown_tag(other)),
    }
}
