//! `watch.lua`

use crate::{
    error::StoreError,
    ids::{InstanceId, MailboxId, RunId},
    store::{
        Header,
        redis::{
            Inner,
            decode::tagged,
            script::{Args, Named, script},
            snapshot::{Fields, header},
        },
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("watch");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    id: &InstanceId,
    run: RunId,
    mailbox: &MailboxId,
) -> Result<Option<Header>, StoreError> {
    let keys = inner.keys_of(id.partition(inner.settings.partitions))?;
    let mut args = Args::default();
    args.key(keys.instance(id));
    args.arg(run.to_string()).arg(mailbox.to_string());
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "not-found" => Ok(None),
        "unreadable" => Err(inner.unreadable(id)),
        "header" => {
            let mut fields = Fields::new(inner, id);
            for name in Header::FIELDS {
                let value = items.bytes()?;
                if !value.is_empty() {
                    fields.insert(name, value);
                }
            }
            header(&fields).map(Some)
        }
        other => Err(items.unknown_tag(other)),
    }
}
