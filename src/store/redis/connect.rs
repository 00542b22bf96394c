//! What is checked when a store is connected: whether the server can hold the data at all, and what could lose it.

use std::{
    collections::HashMap,
    num::NonZeroU16,
    sync::{Arc, Mutex},
    time::Duration,
};

use redis::Value;

use super::{
    Inner, RedisStore, RedisStoreBuilder,
    connection::{Bulk, Lane, Server},
    keys::{Keys, namespace_meta},
    mailbox::{self, Hub},
    scripts,
};
use crate::{error::StoreError, ids::Partition};

/// The oldest version whose commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);
/// Since then a cluster has channels that stay on one node.
const SHARDED: (u32, u32) = (7, 0);
/// Calls with large payloads may take so many times the response timeout.
const LARGE_TIMES: u32 = 10;

impl RedisStore {
    pub(super) async fn open(builder: RedisStoreBuilder) -> Result<Self, StoreError> {
        let asked = builder.asked_partitions()?;
        let mut inner = Inner::new(builder, asked.unwrap_or(NonZeroU16::MIN), None)?;
        inner.check_server().await?;
        let stored = inner.agree_on_partitions(asked).await?;
        inner.set_partitions(stored)?;
        for partition in Partition::all(stored) {
            let keys = inner.keys_of(partition)?;
            let copied = inner.first_count(&keys.meta(), stored).await?;
            if copied != stored {
                return Err(inner.partitions_differ(copied.get(), stored));
            }
            foreign(&inner, scripts::probe::call(&inner, keys).await)?;
        }
        mailbox::probe(&inner).await?;
        inner.warn().await;
        Ok(Self(Arc::new(inner)))
    }
}

fn section_of(said: Value) -> HashMap<String, String> {
    let text = match said {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    };
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// A key of a type that no version of Tenure writes there.
fn foreign<T>(inner: &Inner, result: Result<T, StoreError>) -> Result<T, StoreError> {
    match result {
        Err(StoreError::Server { source, .. }) if source.to_string().contains("WRONGTYPE") => {
            Err(StoreError::Unsuitable {
                server: inner.settings.shown.clone(),
                reason: format!(
                    "something else keeps its data under `{{{}`; choose another namespace",
                    inner.settings.namespace
                ),
            })
        }
        other => other,
    }
}

impl Inner {
    fn new(
        builder: RedisStoreBuilder,
        partitions: NonZeroU16,
        server: Option<Arc<Server>>,
    ) -> Result<Self, StoreError> {
        let settings = builder.settings(partitions)?;
        let server = match server {
            Some(server) => server,
            None => Arc::new(builder.server()?),
        };
        let timeout = settings.response_timeout;
        let bulk = Bulk::new(&server, timeout * LARGE_TIMES).map_err(|e| StoreError::Address {
            url: settings.shown.clone(),
            reason: e.to_string(),
        })?;
        Ok(Self {
            keys: Keys::new(settings.namespace.clone(), partitions),
            lane: Lane::new(timeout),
            hub: Hub::new(),
            sharded: false,
            seen: Mutex::new(vec![0; partitions.get().into()]),
            server,
            bulk,
            settings,
            builder,
        })
    }

    fn set_partitions(&mut self, partitions: NonZeroU16) -> Result<(), StoreError> {
        self.settings = self.builder.settings(partitions)?;
        self.keys = Keys::new(self.settings.namespace.clone(), partitions);
        self.seen = Mutex::new(vec![0; partitions.get().into()]);
        Ok(())
    }

    /// The same store on connections of its own, made when they are needed, on the runtime that needs them.
    pub(super) fn separate(&self) -> Result<Self, StoreError> {
        let server = match &*self.server {
            // A sentinel client is behind a lock, and a lock is not for two runtimes.
            Server::Sentinel(_) => None,
            Server::One(_) | Server::Cluster { .. } => Some(self.server.clone()),
        };
        let mut separate = Self::new(self.builder.clone(), self.settings.partitions, server)?;
        separate.sharded = self.sharded;
        Ok(separate)
    }

    fn unsuitable(&self, reason: String) -> StoreError {
        StoreError::Unsuitable {
            server: self.settings.shown.clone(),
            reason,
        }
    }

    fn partitions_differ(&self, stored: u16, asked: NonZeroU16) -> StoreError {
        StoreError::Partitions {
            namespace: self.settings.namespace.to_string(),
            stored,
            asked: asked.get(),
        }
    }

    /// Version and mode, from `HELLO` or else `INFO`; a user who may run neither is trusted to know.
    async fn check_server(&mut self) -> Result<(), StoreError> {
        let mut speaks_resp3 = false;
        let about = match self.hello().await {
            Ok(about) => {
                speaks_resp3 = true;
                about
            }
            Err(error @ (StoreError::Right { .. } | StoreError::Server { .. })) => {
                tracing::debug!(%error, "the server does not say what it is by HELLO");
                let nodes = self.info("server").await.unwrap_or_default();
                nodes.into_iter().next().unwrap_or_default()
            }
            Err(error) => return Err(error),
        };
        let version = about.get("version").or_else(|| about.get("redis_version"));
        if let Some(version) = version {
            let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
            let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            if found < OLDEST {
                return Err(self.unsuitable(format!(
                    "it is version {version}, the oldest that works is {}.{}",
                    OLDEST.0, OLDEST.1
                )));
            }
            self.sharded = self.settings.cluster && speaks_resp3 && found >= SHARDED;
        }
        let clustered = about
            .get("mode")
            .or_else(|| about.get("redis_mode"))
            .is_some_and(|mode| mode == "cluster");
        if clustered && !self.settings.cluster {
            return Err(self.unsuitable(
                "it is a node of a cluster; give its address as redis+cluster://".to_owned(),
            ));
        }
        Ok(())
    }

    async fn hello(&self) -> Result<HashMap<String, String>, StoreError> {
        let value: Value = self.command("connect", &redis::cmd("HELLO")).await?;
        let pairs = match value {
            Value::Array(items) => items,
            // A cluster client asks every node; any one will do.
            Value::Map(nodes) => match nodes.into_iter().next() {
                Some((_, Value::Array(items))) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let words: Vec<String> = pairs
            .into_iter()
            .map(|value| super::decode::text("connect", value).unwrap_or_default())
            .collect();
        Ok(words
            .chunks_exact(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect())
    }

    /// A section of what the server says of itself; of a cluster each master's.
    pub(super) async fn info(
        &self,
        section: &str,
    ) -> Result<Vec<HashMap<String, String>>, StoreError> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg(section);
        let value: Value = self.command("connect", &cmd).await?;
        Ok(match value {
            Value::Map(nodes) => nodes
                .into_iter()
                .map(|(_, said)| section_of(said))
                .collect(),
            said => vec![section_of(said)],
        })
    }

    /// What the server says of its version, for an error.
    pub(super) async fn version_shown(&self) -> String {
        let nodes = self.info("server").await.unwrap_or_default();
        let version = nodes.iter().find_map(|node| node.get("redis_version"));
        version.map_or_else(
            || "of an older version".to_owned(),
            |version| format!("version {version}"),
        )
    }

    /// The number of partitions that is stored at a key, or else this one, which is stored then. It is read first:
    /// when memory is used up a worker must still be able to join.
    async fn first_count(&self, key: &str, count: NonZeroU16) -> Result<NonZeroU16, StoreError> {
        let mut read = redis::cmd("HGET");
        read.arg(key).arg("partitions");
        let mut stored: Option<String> = foreign(self, self.command("connect", &read).await)?;
        if stored.is_none() {
            let mut write = redis::cmd("HSETNX");
            write.arg(key).arg("partitions").arg(count.get());
            self.command::<()>("connect", &write).await?;
            stored = self.command("connect", &read).await?;
        }
        stored
            .as_deref()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| self.unsuitable(format!("`{key}` does not hold a number of partitions")))
    }

    /// The number of partitions is written by whoever comes first.
    async fn agree_on_partitions(
        &self,
        asked: Option<NonZeroU16>,
    ) -> Result<NonZeroU16, StoreError> {
        let key = namespace_meta(self.keys.namespace());
        let stored = self
            .first_count(&key, asked.unwrap_or(NonZeroU16::MIN))
            .await?;
        match asked {
            Some(asked) if asked != stored => Err(self.partitions_differ(stored.get(), asked)),
            _ => Ok(stored),
        }
    }

    /// What can lose data, in one sentence each. Never a reason to refuse, and nothing if the user may not ask.
    async fn warn(&self) {
        let memory = self.info("memory").await.unwrap_or_default();
        let mut policies = memory
            .iter()
            .filter_map(|node| node.get("maxmemory_policy"));
        if let Some(policy) = policies.find(|policy| *policy != "noeviction") {
            tracing::warn!(
                server = %self.settings.shown,
                "the eviction policy is `{policy}`: when memory runs out Redis removes workflow data; set maxmemory-policy to noeviction"
            );
        }
        let persistence = self.info("persistence").await.unwrap_or_default();
        let says = |name: &str, what: &str| {
            let mut nodes = persistence.iter();
            nodes.any(|node| node.get(name).is_some_and(|said| said == what))
        };
        if says("aof_enabled", "0") {
            tracing::warn!(
                server = %self.settings.shown,
                "the append-only file is off: a crash of the server loses what was acknowledged since its last snapshot; set appendonly to yes"
            );
        }
        if says("rdb_last_bgsave_status", "err") || says("aof_last_write_status", "err") {
            tracing::warn!(
                server = %self.settings.shown,
                "the server cannot write its data to disk at present, a restart would lose it"
            );
        }
    }

    /// How long a hub waits for an answer to a ping before it takes the connection for dead.
    pub(super) fn patience(&self) -> Duration {
        self.settings.response_timeout.min(Duration::from_secs(3))
    }
}
