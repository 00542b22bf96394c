//! On Redis: one Lua script for each transition.
//!
//! A script call is one round trip on a connection that all calls of a store share; payloads over 256 KiB go over
//! connections of their own, hints come over one more. The store tries each call once: after an ambiguous failure the
//! caller repeats it, which is safe for every call. Only what the server refuses for a moment before anything was
//! written (a slot that moves, a failover) is tried again, up to the response timeout.

mod address;
mod config;
mod connect;
mod connection;
mod decode;
mod doctor;
mod error;
mod functions;
mod inspect;
mod keys;
mod listing;
mod mailbox;
mod own_keys;
mod script;
mod scripts;
mod snapshot;
mod summaries;
#[cfg_attr(not(feature = "tls"), path = "plain.rs")]
mod tls;

use std::{
    fmt,
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::{
    config::RedisStoreBuilder,
    doctor::{Doctor, Finding, Note, Outcome, Problem, Progress, Report},
    functions::InstalledFunctions,
    own_keys::{KeyRecord, KeyRole},
};
use self::{
    config::Settings,
    connection::{Bulk, Lane, Server},
    keys::{Keys, PartitionKeys},
    mailbox::Hub,
};
use crate::{
    error::StoreError,
    ids::{
        DefinitionHash, InstanceId, ListName, MailboxId, Partition, RunId, TaskName, Ticket,
        ValueField, WorkerId, WorkflowName,
    },
    store::{
        Announcement, ClaimReply, ClaimRequest, ControlReply, ControlRequest, Counts,
        DefinitionRecord, ErrorRecord, ExtendRequest, Finished, Header, Held, Hints, Inspect,
        ListRecord, NoteReply, NoteRequest, Place, Position, Presence, ReleaseReply,
        ReleaseRequest, RetryRequest, Scan, SettleReply, SettleRequest, SignalReply, SignalRequest,
        Snapshot, StartItem, StartReply, Status, StatusEvents, Store, Summaries, TickReply,
        TickRequest, WorkerRecord, types::Bounds,
    },
    time::Timestamp,
};

/// State on Redis 6.2 or newer: a single server, one behind Sentinel, or a cluster. Cheap to clone; clones share
/// connections.
#[derive(Clone)]
pub struct RedisStore(Arc<Inner>);

struct Inner {
    settings: Settings,
    keys: Keys,
    server: Arc<Server>,
    lane: Lane,
    bulk: Bulk,
    hub: Hub,
    /// SPUBLISH where mailboxes are sharded.
    sharded: bool,
    /// The highest count of transitions seen, for each partition.
    seen: Mutex<Vec<u64>>,
    builder: RedisStoreBuilder,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("server", &self.0.settings.shown)
            .field("namespace", &self.0.settings.namespace)
            .field("partitions", &self.0.settings.partitions)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Connects with the defaults: namespace `tenure`, payloads up to 16 MiB, 3 s to answer.
    ///
    /// Addresses: `redis://[user][:password@]host[:port][/db]`, `rediss://` (feature `tls`), `redis+unix:///path`,
    /// `redis+cluster://host:port,host:port`.
    ///
    /// # Errors
    /// As [`RedisStoreBuilder::connect`].
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, StoreError> {
        Self::builder(url).connect().await
    }

    /// A builder for a store at this address.
    #[must_use]
    pub fn builder(url: impl AsRef<str>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url.as_ref())
    }

    /// Deletes everything that Tenure stored in this namespace: instances, definitions, all of it. For tests and
    /// demonstrations; no worker and no client may be using the namespace. Needs the right to `SCAN`.
    ///
    /// Other namespaces are not touched. Dropping the future, or a crash, leaves part of it deleted; call it again.
    ///
    /// # Errors
    /// The connection's.
    pub async fn remove_namespace(&self) -> Result<(), StoreError> {
        for partition in Partition::all(self.0.settings.partitions) {
            let keys = self.0.keys_of(partition)?;
            scripts::remove::call(&self.0, &keys.meta(), keys.prefix).await?;
        }
        let namespace = self.0.keys.namespace();
        let meta = keys::namespace_meta(namespace);
        scripts::remove::call(&self.0, &meta, &format!("{{{namespace}}}:")).await
    }
}

impl Inner {
    fn keys_of(&self, partition: Partition) -> Result<PartitionKeys<'_>, StoreError> {
        self.keys.of(partition).ok_or_else(|| StoreError::Request {
            what: "the partition",
            allowed: format!("below {}", self.settings.partitions),
            given: partition.to_string(),
        })
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            partitions: self.settings.partitions,
            max_payload: self.settings.max_payload,
        }
    }

    fn publish_command(&self) -> &'static str {
        if self.sharded { "SPUBLISH" } else { "PUBLISH" }
    }

    /// `1` where slots can move, so that scripts look at their keys first.
    fn guard(&self) -> &'static str {
        if self.settings.cluster { "1" } else { "0" }
    }

    fn check_size(&self, what: impl FnOnce() -> String, size: usize) -> Result<(), StoreError> {
        let limit = self.settings.max_payload;
        if size <= limit {
            return Ok(());
        }
        Err(StoreError::TooLarge {
            what: what(),
            size,
            limit,
        })
    }

    fn corrupt(&self, id: &InstanceId, what: &str, reason: String) -> StoreError {
        let partition = id.partition(self.settings.partitions);
        StoreError::Corrupt {
            key: self
                .keys
                .of(partition)
                .map_or_else(|| id.to_string(), |keys| keys.instance(id)),
            what: what.to_owned(),
            reason,
        }
    }

    fn unreadable(&self, id: &InstanceId) -> StoreError {
        self.corrupt(id, "the snapshot", "it is not one".to_owned())
    }

    fn format(&self, id: &InstanceId, found: String) -> StoreError {
        StoreError::Format {
            id: id.clone(),
            found,
            supported: 1,
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the count of transitions fell since a call was sent: the server lost history. Calls overtake each
    /// other, so each compares with what was seen before it; of those that notice the same fall, the first tells.
    fn fell(&self, partition: Partition, before: u64, seq: u64) -> bool {
        let mut seen = self.seen();
        let Some(highest) = seen.get_mut(usize::from(partition.number())) else {
            return false;
        };
        let fell = seq < before && *highest >= before;
        *highest = if fell { seq } else { seq.max(*highest) };
        fell
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<ClaimReply, StoreError> {
        let at = usize::from(request.partition.number());
        let before = self.seen().get(at).copied().unwrap_or(0);
        let answer = scripts::claim::call(self, request).await?;
        let mut reply = answer.reply;
        if self.fell(request.partition, before, answer.seq) {
            let key = self.keys_of(request.partition)?.meta();
            let mut cmd = redis::cmd("HINCRBY");
            cmd.arg(key).arg("epoch").arg(1);
            reply.epoch = self.command("claim", &cmd).await?;
            tracing::warn!(
                partition = %request.partition,
                epoch = reply.epoch,
                "the store went back to an older history: transitions that were acknowledged may be lost"
            );
        }
        Ok(reply)
    }
}

#[async_trait]
impl Store for RedisStore {
    fn partitions(&self) -> NonZeroU16 {
        self.0.settings.partitions
    }

    fn max_payload(&self) -> usize {
        self.0.settings.max_payload
    }

    async fn start(
        &self,
        partition: Partition,
        items: Vec<StartItem>,
    ) -> Result<Vec<StartReply>, StoreError> {
        scripts::start::call(&self.0, partition, &items).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimReply, StoreError> {
        self.0.claim(&request).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Held>, StoreError> {
        scripts::extend::call(&self.0, &request).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<Vec<SettleReply>, StoreError> {
        scripts::settle::call(&self.0, &request).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, StoreError> {
        scripts::release::call(&self.0, &request).await
    }

    async fn note(&self, request: NoteRequest) -> Result<NoteReply, StoreError> {
        scripts::note::call(&self.0, &request).await
    }

    async fn tick(&self, request: TickRequest) -> Result<TickReply, StoreError> {
        scripts::tick::call(&self.0, &request).await
    }

    async fn signal(&self, request: SignalRequest) -> Result<SignalReply, StoreError> {
        scripts::signal::call(&self.0, &request).await
    }

    async fn control(&self, request: ControlRequest) -> Result<ControlReply, StoreError> {
        scripts::control::call(&self.0, &request).await
    }

    async fn retry(&self, request: RetryRequest) -> Result<ControlReply, StoreError> {
        scripts::control::retry(&self.0, &request).await
    }

    async fn watch(
        &self,
        id: &InstanceId,
        run: RunId,
        mailbox: &MailboxId,
    ) -> Result<Option<Header>, StoreError> {
        scripts::watch::call(&self.0, id, run, mailbox).await
    }

    async fn publish(
        &self,
        workflow: &WorkflowName,
        hash: DefinitionHash,
        definition: Bytes,
    ) -> Result<(), StoreError> {
        scripts::publish::call(&self.0, workflow, hash, definition).await
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        scripts::announce::call(&self.0, &announcement).await
    }

    async fn definition(
        &self,
        workflow: &WorkflowName,
    ) -> Result<Option<(DefinitionHash, Bytes)>, StoreError> {
        self.0.definition(workflow).await
    }

    async fn published(&self, hash: DefinitionHash) -> Result<Option<Bytes>, StoreError> {
        self.0.published(hash).await
    }

    async fn mailbox(&self, mailbox: MailboxId) -> Result<Hints, StoreError> {
        mailbox::hints(&self.0, &mailbox).await
    }

    async fn events(&self) -> Result<StatusEvents, StoreError> {
        mailbox::events(&self.0).await
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(Self(Arc::new(self.0.separate()?))))
    }
}

#[async_trait]
impl Inspect for RedisStore {
    async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError> {
        self.0.header(id).await
    }

    async fn snapshot(&self, id: &InstanceId) -> Result<Option<Snapshot>, StoreError> {
        scripts::snapshot::call(&self.0, id).await
    }

    async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError> {
        self.0.errors(id).await
    }

    async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.0.values(id, run, fields).await
    }

    async fn counts(&self, partition: Partition) -> Result<Counts, StoreError> {
        self.0.counts(partition).await
    }

    async fn finished(
        &self,
        partition: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError> {
        self.0.finished(partition, status, offset, limit).await
    }

    async fn running(&self, partition: Partition, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.0.running(partition, limit).await
    }

    async fn delayed(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError> {
        self.0.delayed(partition, limit).await
    }

    async fn ready(
        &self,
        partition: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        self.0.ready(partition, list, limit).await
    }

    async fn scan(
        &self,
        partition: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        self.0.scan(partition, place, from, limit).await
    }

    async fn summaries(
        &self,
        partition: Partition,
        ids: &[InstanceId],
    ) -> Result<Summaries, StoreError> {
        self.0.summaries(partition, ids).await
    }

    async fn lists(&self, partition: Partition) -> Result<Vec<ListRecord>, StoreError> {
        self.0.lists(partition).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.0.workers().await
    }

    async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        self.0.definitions().await
    }

    async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError> {
        self.0.parked(id).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.0.now().await
    }

    async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError> {
        self.0.presence(partition, worker).await
    }

    async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError> {
        self.0.claim_key(id, task).await
    }
}
