//! What is no damage and should be known: settings that lose data, clocks that differ.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::Note;
use crate::{
    store::{StoreError, redis::Inner},
    time::{Clock, Timestamp},
};

/// Clocks that differ by less are not worth a word.
const SLACK: Duration = Duration::from_secs(2);
/// How many unknown keys are named.
const NAMED: usize = 5;
/// From here on small snapshots stay compact.
const LISTPACK: u64 = 256;

/// The clocks at the beginning of an examination.
pub(super) struct ClockLook {
    at: Timestamp,
    began: Instant,
}

fn apart(a: Timestamp, b: Timestamp) -> Duration {
    a.since(b).max(b.since(a))
}

impl ClockLook {
    pub(super) async fn begin(inner: &Inner) -> Result<Self, StoreError> {
        Ok(Self {
            at: inner.now().await?,
            began: Instant::now(),
        })
    }

    /// Whether Redis's clock made a step meanwhile, and how far this machine's is from it.
    pub(super) async fn end(self, inner: &Inner, notes: &mut Vec<Note>) -> Result<(), StoreError> {
        let now = inner.now().await?;
        let step = apart(now, self.at.plus(self.began.elapsed()));
        if step > SLACK {
            notes.push(Note(format!(
                "the clock of Redis was set by about {} s while it was looked at: timers come early or late by that, claims are safe",
                step.as_secs()
            )));
        }
        let differs = apart(now, Clock::system().now());
        if differs > SLACK {
            notes.push(Note(format!(
                "the clock of this machine and that of Redis differ by about {} s: times that are shown here are those of Redis",
                differs.as_secs()
            )));
        }
        let workers = inner.workers().await?;
        let ahead = workers.iter().map(|worker| worker.seen_at.since(now)).max();
        if let Some(ahead) = ahead.filter(|ahead| *ahead > SLACK) {
            notes.push(Note(format!(
                "the clock of Redis was set back by {} s or more: a worker was seen in the future",
                ahead.as_secs()
            )));
        }
        Ok(())
    }
}

/// Keys of no known kind: perhaps of a newer version. They are never deleted.
pub(super) fn unknown(keys: &BTreeSet<String>) -> Option<Note> {
    if keys.is_empty() {
        return None;
    }
    let named: Vec<String> = keys
        .iter()
        .take(NAMED)
        .map(|key| format!("`{key}`"))
        .collect();
    let more = keys.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(Note(format!(
        "keys that this version does not know, and left alone: {}{more}",
        named.join(", ")
    )))
}

/// What the servers say of themselves, as far as the user may ask.
pub(super) async fn notes(inner: &Inner, notes: &mut Vec<Note>) {
    let mut found = BTreeSet::new();
    match inner.info("all").await {
        Err(error) => {
            found.insert(format!(
                "the settings of the server could not be looked at ({error})"
            ));
        }
        Ok(nodes) => {
            for node in &nodes {
                let said = |name: &str| node.get(name).map_or("", String::as_str);
                of_node(&said, &mut found);
            }
        }
    }
    match inner.configured("hash-max-listpack-value").await {
        Err(error) => {
            found.insert(format!(
                "the settings that CONFIG shows could not be looked at ({error})"
            ));
        }
        Ok(values) => {
            if let Some(value) = values.into_iter().filter(|value| *value < LISTPACK).min() {
                found.insert(format!(
                    "hash-max-listpack-value is {value}: set it to {LISTPACK} and small instances take about a third less memory"
                ));
            }
        }
    }
    notes.extend(found.into_iter().map(Note));
}

fn of_node<'a>(said: &impl Fn(&'a str) -> &'a str, notes: &mut BTreeSet<String>) {
    let mut note = |text: String| {
        notes.insert(text);
    };
    if said("aof_enabled") == "0" {
        note("the append-only file is off: a crash of the server loses what was acknowledged since its last snapshot; set appendonly to yes".to_owned());
    }
    if said("rdb_last_bgsave_status") == "err" || said("aof_last_write_status") == "err" {
        note(
            "the server cannot write its data to disk at present: a restart would lose it"
                .to_owned(),
        );
    }
    let policy = said("maxmemory_policy");
    if !policy.is_empty() && policy != "noeviction" {
        note(format!(
            "the eviction policy is `{policy}`: when memory runs out Redis removes workflow data; set maxmemory-policy to noeviction"
        ));
    }
    if said("role") == "master"
        && !matches!(said("connected_slaves"), "" | "0")
        && matches!(said("min_slaves_good_slaves"), "")
    {
        note("a failover can lose what was acknowledged just before it: no replica has to confirm (min-replicas-to-write is 0)".to_owned());
    }
    let version = said("redis_version");
    let major: u32 = version
        .split('.')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(7);
    if major < 7 {
        note(format!(
            "it is Redis {version}: that works, and hints of a cluster stay on one node from 7.0 on"
        ));
    }
}

impl Inner {
    /// A setting that is a number, of each node that answers.
    async fn configured(&self, name: &str) -> Result<Vec<u64>, StoreError> {
        let mut cmd = redis::cmd("CONFIG");
        cmd.arg("GET").arg(name);
        let mut values = Vec::new();
        numbers(&self.command("doctor", &cmd).await?, &mut values);
        Ok(values)
    }
}

/// Every number in an answer, however deep.
fn numbers(value: &redis::Value, found: &mut Vec<u64>) {
    match value {
        redis::Value::BulkString(bytes) => {
            found.extend(
                str::from_utf8(bytes)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok()),
            );
        }
        redis::Value::Array(items) => items.iter().for_each(|item| numbers(item, found)),
        redis::Value::Map(pairs) => pairs.iter().for_each(|(_, item)| numbers(item, found)),
        _ => {}
    }
}
