//! `announce.lua`

use crate::{
    error::StoreError,
    store::{
        Announcement,
        redis::{
            Inner,
            decode::{text, unknown_tag},
            script::{Args, Named, script},
        },
    },
};

use super::delay;

pub(in crate::store::redis) static SCRIPT: Named = script!("announce");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    said: &Announcement,
) -> Result<(), StoreError> {
    let mut args = Args::default();
    args.key(inner.keys.worker(&said.id))
        .key(inner.keys.workers());
    args.arg(said.id.to_string())
        .number(delay(said.ttl))
        .number(delay(said.uptime));
    let definitions: Vec<String> = said
        .definitions
        .iter()
        .map(|(workflow, hash)| format!("{workflow}:{hash}"))
        .collect();
    let queues: Vec<String> = said.queues.iter().map(ToString::to_string).collect();
    args.arg("host").arg(said.host.clone());
    args.arg("pid").number(said.pid);
    args.arg("definitions").arg(definitions.join(" "));
    args.arg("queues").arg(queues.join(" "));
    args.arg("slots").count(said.slots);
    args.arg("busy").count(said.busy);
    args.arg("draining").number(said.draining);
    match text(SCRIPT.name, inner.call(&SCRIPT, args).await?)?.as_str() {
        "announced" | "left" => Ok(()),
        other => Err(unknown_tag(SCRIPT.name, other)),
    }
}
