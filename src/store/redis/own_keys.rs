//! Which keys hold something of an instance: for a person with redis-cli.

use std::{fmt, time::Duration};

use redis::{Pipeline, Value};

use super::{Inner, RedisStore, keys::PartitionKeys};
use crate::{
    error::StoreError,
    ids::{InstanceId, ListName, TaskName},
    store::{Snapshot, Status, TaskState},
};

/// A key that holds something of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyRecord {
    /// Its name.
    pub key: String,
    /// What it is for.
    pub role: KeyRole,
    /// The type of it, as Redis calls it: `hash`, `list`, `set`, `zset`, `string`.
    pub kind: String,
    /// How many fields or entries it has; of a string, its bytes.
    pub size: u64,
    /// When Redis removes it by itself; `None`: never.
    pub ttl: Option<Duration>,
}

/// What a key is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyRole {
    /// The record of the instance: its state, its tasks, its payloads.
    Instance,
    /// The errors of its attempts.
    Errors,
    /// Entries that a pause took out of their lists.
    Parked,
    /// Who holds the claim of a task.
    Claim(TaskName),
    /// The ready list of its workflow's queue, with entries of other instances too; a task may have another queue.
    Ready(ListName),
    /// The tasks that are claimed, of all instances.
    Running,
    /// The timers of all instances, by the time at which they are due.
    Delayed,
    /// All instances that ended as this one did, by the time.
    Done(Status),
}

impl KeyRole {
    /// Whether the key belongs to this instance alone.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(
            self,
            Self::Instance | Self::Errors | Self::Parked | Self::Claim(_)
        )
    }
}

impl fmt::Display for KeyRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance => f.write_str("the instance: state, tasks, payloads"),
            Self::Errors => f.write_str("errors of its attempts"),
            Self::Parked => f.write_str("what waits until it is resumed"),
            Self::Claim(task) => write!(f, "claim of task {task}"),
            Self::Ready(list) => write!(f, "ready list of queue {}, shared", list.queue),
            Self::Running => f.write_str("claimed tasks, shared"),
            Self::Delayed => f.write_str("timers and retries, shared"),
            Self::Done(status) => write!(f, "instances that are {status}, shared"),
        }
    }
}

impl RedisStore {
    /// The keys that hold something of an instance, its own first; only those that are there. Nothing if there is no
    /// such instance.
    ///
    /// It is read key by key: while tasks run, one key may be of a moment later than another. Needs no more rights than
    /// a worker has.
    ///
    /// # Errors
    /// The connection's. A record that cannot be read is no error: its claims and shared keys are left out.
    pub async fn keys_of(&self, id: &InstanceId) -> Result<Vec<KeyRecord>, StoreError> {
        let snapshot = match super::scripts::snapshot::call(&self.0, id).await {
            Ok(snapshot) => snapshot,
            Err(StoreError::Corrupt { .. } | StoreError::Format { .. }) => None,
            Err(error) => return Err(error),
        };
        let partition = id.partition(self.0.settings.partitions);
        let keys = self.0.keys_of(partition)?;
        let mut named = own(keys, id);
        if let Some(snapshot) = &snapshot {
            named.extend(claims(keys, id, snapshot));
            named.extend(shared(keys, snapshot));
        }
        self.0.look_at(named).await
    }
}

type Named = (KeyRole, String);

fn own(keys: PartitionKeys<'_>, id: &InstanceId) -> Vec<Named> {
    vec![
        (KeyRole::Instance, keys.instance(id)),
        (KeyRole::Errors, keys.errors(id)),
        (KeyRole::Parked, keys.parked(id)),
    ]
}

fn claims(keys: PartitionKeys<'_>, id: &InstanceId, snapshot: &Snapshot) -> Vec<Named> {
    let tasks = snapshot.tasks.keys();
    tasks
        .map(|task| (KeyRole::Claim(task.clone()), keys.claim(id, task)))
        .collect()
}

/// Where its record says that it has entries.
fn shared(keys: PartitionKeys<'_>, snapshot: &Snapshot) -> Vec<Named> {
    let has = |state| snapshot.tasks.values().any(|task| task.state == state);
    let mut named = Vec::new();
    let status = snapshot.header.status;
    if status.is_terminal() {
        named.push((KeyRole::Done(status), keys.done(status.as_str())));
        return named;
    }
    if has(TaskState::Ready) {
        let list = ListName {
            queue: snapshot.queue.clone(),
            definition: snapshot.header.definition,
        };
        let key = keys.ready(&list);
        named.push((KeyRole::Ready(list), key));
    }
    if has(TaskState::Running) {
        named.push((KeyRole::Running, keys.running()));
    }
    if has(TaskState::Delayed) {
        named.push((KeyRole::Delayed, keys.delayed()));
    }
    named
}

impl Inner {
    async fn look_at(&self, named: Vec<Named>) -> Result<Vec<KeyRecord>, StoreError> {
        let mut pipe = redis::pipe();
        for (_, key) in &named {
            pipe.cmd("TYPE").arg(key);
            pipe.cmd("PTTL").arg(key);
        }
        let said: Vec<Value> = self.pipeline("keys", &pipe).await?;
        let mut records = Vec::new();
        let mut sizes = redis::pipe();
        for ((role, key), said) in named.into_iter().zip(said.chunks_exact(2)) {
            let kind: String = read(&said[0])?;
            let ttl: i64 = read(&said[1])?;
            if size_of(&mut sizes, &kind, &key) {
                records.push(KeyRecord {
                    key,
                    role,
                    kind,
                    size: 0,
                    ttl: u64::try_from(ttl).ok().map(Duration::from_millis),
                });
            }
        }
        if records.is_empty() {
            return Ok(records);
        }
        let said: Vec<Value> = self.pipeline("keys", &sizes).await?;
        for (record, size) in records.iter_mut().zip(&said) {
            // A key that was replaced by one of another type meanwhile says an error.
            record.size = read(size).unwrap_or_default();
        }
        Ok(records)
    }
}

/// Asks for the size of a key; not of one that is not there.
fn size_of(pipe: &mut Pipeline, kind: &str, key: &str) -> bool {
    let command = match kind {
        "hash" => "HLEN",
        "list" => "LLEN",
        "set" => "SCARD",
        "zset" => "ZCARD",
        "string" => "STRLEN",
        "stream" => "XLEN",
        _ => return false,
    };
    pipe.cmd(command).arg(key);
    true
}

fn read<T: redis::FromRedisValue>(value: &Value) -> Result<T, StoreError> {
    redis::from_redis_value_ref(value).map_err(|e| StoreError::Protocol {
        call: "keys",
        reason: e.to_string(),
    })
}
