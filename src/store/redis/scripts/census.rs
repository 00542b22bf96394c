//! `census.lua`

use crate::{
    error::StoreError,
    store::redis::{
        Inner,
        decode::{Items, text},
        script::{Args, Named, script},
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("census");

/// Some of the keys that begin with a prefix.
pub(in crate::store::redis) struct Census {
    /// Where it goes on; `None` at the end.
    pub(in crate::store::redis) next: Option<String>,
    /// Names, and types as Redis calls them. A name that is no UTF-8 is none of ours, and shown as well as can be.
    pub(in crate::store::redis) keys: Vec<(String, String)>,
}

/// Looks at about `count` keys of the node that holds `key`.
pub(in crate::store::redis) async fn call(
    inner: &Inner,
    key: String,
    prefix: &str,
    cursor: &str,
    count: usize,
) -> Result<Census, StoreError> {
    let mut args = Args::default();
    args.key(key);
    args.arg(cursor.to_owned())
        .arg(format!("{prefix}*"))
        .count(count);
    let mut items = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let next = items.text()?;
    let mut keys = Vec::with_capacity(items.len() / 2);
    while !items.is_empty() {
        let name = String::from_utf8_lossy(&items.bytes()?).into_owned();
        keys.push((name, text(SCRIPT.name, items.value()?)?));
    }
    Ok(Census {
        next: (next != "0").then_some(next),
        keys,
    })
}
