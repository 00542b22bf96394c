//! `snapshot.lua`

use std::collections::{BTreeMap, HashMap};

use crate::{
    error::StoreError,
    ids::{IdError, InstanceId, ValueField},
    store::{
        Snapshot,
        redis::{
            Inner,
            decode::tagged,
            script::{Args, Named, script},
            snapshot::{Fields, snapshot},
        },
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("snapshot");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    id: &InstanceId,
) -> Result<Option<Snapshot>, StoreError> {
    let keys = inner.keys_of(id.partition(inner.settings.partitions))?;
    let mut args = Args::default();
    args.key(keys.instance(id));
    let (tag, mut items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "not-found" => Ok(None),
        "unreadable" => Err(inner.unreadable(id)),
        "snapshot" => {
            let (mut plain, mut payloads) = (items.items()?, items.items()?);
            let mut fields = Fields::new(inner, id);
            while !plain.is_empty() {
                let name = plain.text()?;
                fields.insert(&name, plain.bytes()?);
            }
            let (mut values, mut early) = (BTreeMap::new(), HashMap::new());
            while !payloads.is_empty() {
                let name = payloads.text()?;
                if let Some(signal) = name.strip_prefix("signal:") {
                    early.insert(signal.to_owned(), payloads.parse()?);
                    continue;
                }
                let field: ValueField = name
                    .parse()
                    .map_err(|e: IdError| inner.corrupt(id, &name, e.to_string()))?;
                values.insert(field, payloads.parse()?);
            }
            snapshot(&fields, values, &early).map(Some)
        }
        other => Err(items.unknown_tag(other)),
    }
}
