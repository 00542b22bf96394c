//! `mend.lua`

use crate::{
    error::StoreError,
    ids::{InstanceId, ListName, TaskName, WorkerId},
    store::redis::{
        Inner,
        decode::tagged,
        keys::PartitionKeys,
        script::{Args, Named, script},
    },
};

pub(in crate::store::redis) static SCRIPT: Named = script!("mend", "mend_index");

/// One thing to look at, and to put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::redis) struct Mending {
    /// The word of the script.
    pub(in crate::store::redis) action: &'static str,
    /// The instance that it is about, or nobody's.
    pub(in crate::store::redis) id: Option<InstanceId>,
    /// The key in question.
    pub(in crate::store::redis) key: String,
    /// The ready list, where it is about one.
    pub(in crate::store::redis) list: Option<ListName>,
    /// The task and its owner, where it is about a claim key.
    pub(in crate::store::redis) owner: Option<(TaskName, WorkerId)>,
    /// What the action takes.
    pub(in crate::store::redis) args: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::redis) enum Mode {
    /// Changes nothing.
    Look,
    Mend,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::redis) enum Answer {
    /// Nothing is wrong.
    Well,
    /// It is wrong, and was only looked at.
    Ill,
    /// It was wrong, and is put right.
    Mended,
    /// It is not what was seen any more.
    Changed,
    /// It is wrong, and cannot be put right so.
    Left,
}

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    keys: PartitionKeys<'_>,
    mending: &Mending,
    mode: Mode,
) -> Result<Answer, StoreError> {
    let mut args = Args::default();
    // No id is empty: this is the key of nobody.
    let nobody = || [keys.prefix, "instance:"].concat();
    let of_list = |kind: &str| {
        let name = mending.list.as_ref().map(ToString::to_string);
        [keys.prefix, kind, &name.unwrap_or_default()].concat()
    };
    args.key(keys.woken())
        .key(keys.seq())
        .key(
            mending
                .id
                .as_ref()
                .map_or_else(nobody, |id| keys.instance(id)),
        )
        .key(mending.key.clone())
        .key(keys.lists())
        .key(of_list("idle:"))
        .key(of_list("ready:"));
    match (&mending.id, &mending.owner) {
        (Some(id), Some((task, worker))) => {
            args.key(keys.claim(id, task)).key(keys.worker(worker));
        }
        _ => {
            args.key([keys.prefix, "claim:"].concat())
                .key([keys.prefix, "worker:"].concat());
        }
    }
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(match mode {
            Mode::Look => "look",
            Mode::Mend => "mend",
        })
        .arg(mending.action)
        .arg(
            mending
                .list
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
        );
    for arg in &mending.args {
        args.arg(arg.clone());
    }
    let (tag, items) = tagged(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    match tag.as_str() {
        "well" => Ok(Answer::Well),
        "ill" => Ok(Answer::Ill),
        "mended" => Ok(Answer::Mended),
        "changed" => Ok(Answer::Changed),
        "left" => Ok(Answer::Left),
        other => Err(items.unknown_tag(other)),
    }
}
