//! `publish.lua`

use bytes::Bytes;

use crate::{
    error::StoreError,
    ids::{DefinitionHash, WorkflowName},
    store::redis::{
        Inner,
        decode::{text, unknown_tag},
        script::{Args, Named, script},
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("publish");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    workflow: &WorkflowName,
    hash: DefinitionHash,
    definition: Bytes,
) -> Result<(), StoreError> {
    inner.check_size(
        || format!("the definition of `{workflow}`"),
        definition.len(),
    )?;
    let mut args = Args::default();
    args.key(inner.keys.definition(hash))
        .key(inner.keys.workflow(workflow))
        .key(inner.keys.definitions());
    args.arg(hash.to_string())
        .payload(definition)
        .arg(format!("{workflow}:{hash}"));
    match text(SCRIPT.name, inner.call(&SCRIPT, args).await?)?.as_str() {
        "published" | "known" => Ok(()),
        other => Err(unknown_tag(SCRIPT.name, other)),
    }
}
