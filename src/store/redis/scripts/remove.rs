//! `remove.lua`

use crate::{
    error::StoreError,
    store::redis::{
        Inner,
        decode::text,
        script::{Args, Named, script},
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("remove");

/// How many keys one call looks at: it holds up nobody for long.
const COUNT: i64 = 1000;

/// Deletes every key that begins with `prefix`, on the node that holds `key`.
pub(in crate::store::redis) async fn call(
    inner: &Inner,
    key: &str,
    prefix: &str,
) -> Result<(), StoreError> {
    let mut cursor = "0".to_owned();
    loop {
        let mut args = Args::default();
        args.key(key.to_owned());
        args.arg(cursor).arg(format!("{prefix}*")).number(COUNT);
        cursor = text(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
        if cursor == "0" {
            return Ok(());
        }
    }
}
