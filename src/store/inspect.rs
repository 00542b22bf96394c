use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    DefinitionRecord, ErrorRecord, ListRecord, Place, Position, Scan, Status, StoreError,
    Summaries, TaskRecord, WorkerRecord,
};
use crate::{
    ids::{
        DefinitionHash, InstanceId, ListName, Partition, QueueName, RunId, SignalId, SignalName,
        TaskName, Ticket, ValueField, WorkerId, WorkflowName,
    },
    time::Timestamp,
};

/// Reads: they change nothing and are not part of the protocol.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// The header of an instance: what decides about waiting for it. `None` if there is no such instance.
    ///
    /// # Errors
    /// [`StoreError::Format`] and [`StoreError::Corrupt`] for a record that cannot be read; else the connection's.
    async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError>;

    /// All of an instance but its payloads.
    ///
    /// # Errors
    /// As [`Inspect::header`].
    async fn snapshot(&self, id: &InstanceId) -> Result<Option<Snapshot>, StoreError>;

    /// The errors of failed attempts, newest first, at most [`ErrorRecord::KEPT`].
    ///
    /// # Errors
    /// As [`Inspect::header`].
    async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError>;

    /// Payload fields of one run, `None` for a field that is not there or when the id has another run now.
    ///
    /// # Errors
    /// The connection's.
    async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError>;

    /// Counts of a partition. Cheap: lengths of lists and sets.
    ///
    /// # Errors
    /// The connection's.
    async fn counts(&self, partition: Partition) -> Result<Counts, StoreError>;

    /// Finished instances of a status, oldest first, from an offset.
    ///
    /// # Errors
    /// The connection's.
    async fn finished(
        &self,
        partition: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError>;

    /// Tickets of claimed tasks, in the order in which they are looked at next.
    ///
    /// # Errors
    /// The connection's.
    async fn running(&self, partition: Partition, limit: usize) -> Result<Vec<Ticket>, StoreError>;

    /// Delayed tickets with their due times, soonest first.
    ///
    /// # Errors
    /// The connection's.
    async fn delayed(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError>;

    /// Entries of a ready list from its head, as tickets.
    ///
    /// # Errors
    /// The connection's.
    async fn ready(
        &self,
        partition: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError>;

    /// A piece of a place, at most `limit` of what stands there. Work is bounded by `limit`, save that a set of less than
    /// 128 members is read at once.
    ///
    /// What stands in its place from the first piece to the last is in at least one of them. What comes or goes meanwhile
    /// may be missed, or seen twice.
    ///
    /// # Errors
    /// [`StoreError::Request`] for a position of another place or store; else the connection's.
    async fn scan(
        &self,
        partition: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError>;

    /// What a listing shows of instances of one partition; not of one moment.
    ///
    /// # Errors
    /// The connection's.
    async fn summaries(
        &self,
        partition: Partition,
        ids: &[InstanceId],
    ) -> Result<Summaries, StoreError>;

    /// All ready lists that anything was ever put into, by name, empty ones included.
    ///
    /// # Errors
    /// The connection's.
    async fn lists(&self, partition: Partition) -> Result<Vec<ListRecord>, StoreError>;

    /// The workers that have said something of themselves and are believed to live, by id; at most
    /// [`WorkerRecord::MOST`].
    ///
    /// # Errors
    /// The connection's.
    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError>;

    /// The definitions that were published, by name and hash.
    ///
    /// # Errors
    /// The connection's.
    async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError>;

    /// Tickets that were met while their instance was paused, in the order in which they were met.
    ///
    /// # Errors
    /// The connection's.
    async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError>;

    /// What time it is by the clock that all stored times are of.
    ///
    /// # Errors
    /// The connection's.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// When a worker last sent a heartbeat to a partition; `None` if none of its heartbeats holds any more: it stopped, or
    /// it has just begun.
    ///
    /// # Errors
    /// The connection's.
    async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError>;

    /// Who holds the claim key of a task, and for how long, in milliseconds; `None` if there is no key.
    ///
    /// # Errors
    /// The connection's.
    async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError>;
}

/// What is known of a worker by its last heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// For how long it is believed to live from then on: its claims hold as long, and it sends three in this time.
    pub ttl: Duration,
    /// How long ago it was.
    pub heard: Duration,
}

impl Presence {
    /// From milliseconds.
    pub(crate) fn of(ttl: u64, left: u64) -> Self {
        Self {
            ttl: Duration::from_millis(ttl),
            heard: Duration::from_millis(ttl.saturating_sub(left)),
        }
    }

    /// Whether a heartbeat is missing: the worker is dead, stopped or cannot reach the store.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.heard > self.ttl / 2
    }
}

/// The few fields that decide about waiting for an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The run that is stored.
    pub run: RunId,
    /// Its status.
    pub status: Status,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its definition.
    pub definition: DefinitionHash,
    /// The field that holds the result, once it is decided.
    pub result: Option<ValueField>,
    /// Why it failed, or was paused for a person.
    pub error: Option<ErrorRecord>,
    /// The last control of it, with reason and actor.
    pub control: Option<ControlRecord>,
}

/// Who steered an instance, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ControlRecord {
    /// What was done.
    pub control: super::Control,
    /// Why.
    pub reason: Option<String>,
    /// Who.
    pub actor: Option<String>,
}

impl ControlRecord {
    /// That of a pause which an error led to.
    pub(super) fn because_of(error: &ErrorRecord) -> Self {
        Self {
            control: super::Control::Pause,
            reason: Some(format!("`{}` failed: {}", error.task, error.message)),
            actor: None,
        }
    }
}

/// All of an instance but its payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// What decides about waiting for it.
    pub header: Header,
    /// The workflow's queue.
    pub queue: QueueName,
    /// When it was started.
    pub created_at: Timestamp,
    /// When a task of it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Live tokens: 0 when it is completed.
    pub open: i64,
    /// The crash budget of each task.
    pub max_crashes: u32,
    /// How often it was brought back to life.
    pub retries: u32,
    /// Runs of this id that were replaced, newest first, at most 8.
    pub replaced: Vec<RunId>,
    /// Labels, creator and trace parent, as stored.
    pub meta: Option<Bytes>,
    /// The tasks that have been reached.
    pub tasks: BTreeMap<TaskName, TaskRecord>,
    /// The joins that a branch has arrived at.
    pub joins: BTreeMap<TaskName, JoinRecord>,
    /// Nodes that wait for a signal, in the order in which they began to.
    pub waits: Vec<WaitRecord>,
    /// Signals that came before a node waited for them, in their order.
    pub early: Vec<EarlySignal>,
    /// The signals that nodes of the definition wait for.
    pub signals: Vec<SignalName>,
    /// Which payload fields there are, with their lengths in bytes.
    pub values: BTreeMap<ValueField, usize>,
}

impl Snapshot {
    /// Labels and creator, from `meta`; none when there are none or they cannot be read.
    #[must_use]
    pub fn start_meta(&self) -> super::StartMeta {
        super::StartMeta::lenient(self.meta.as_deref())
    }

    /// How many of its tasks are open.
    pub(crate) fn open_tasks(&self) -> usize {
        let tasks = self.tasks.values();
        tasks.filter(|record| record.state.is_open()).count()
    }

    /// Whether its live tokens are its open tasks. One that failed, or was ended, counts no more.
    pub(crate) fn tokens_are_counted(&self) -> bool {
        let open = self.open_tasks();
        let counted = i64::try_from(open).is_ok_and(|open| self.open == open);
        match self.header.status {
            Status::Running | Status::Paused => counted && open > 0,
            Status::Completed => counted && open == 0,
            Status::Failed | Status::Cancelled | Status::Terminated => open == 0,
        }
    }

    /// Whether a signal finds this node.
    pub(crate) fn awaits(&self, task: &TaskName) -> bool {
        self.waits.iter().any(|wait| wait.task == *task)
    }
}

/// `<arrived> <failed> <need> <total> <fired> <who>`: what is stored of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinRecord {
    /// How many branches arrived.
    pub arrived: u16,
    /// How many failed for good.
    pub failed: u16,
    /// How many make it fire.
    pub need: u16,
    /// How many there are.
    pub total: u16,
    /// Whether it has fired.
    pub fired: bool,
    /// The nodes that arrived, in order, separated by commas in the record.
    pub who: Vec<TaskName>,
}

/// A node that waits for a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRecord {
    /// What it waits for.
    pub signal: SignalName,
    /// The node.
    pub task: TaskName,
    /// Where it will be ready.
    pub list: ListName,
}

/// A signal that no node has waited for yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlySignal {
    /// Its name.
    pub name: SignalName,
    /// Its id.
    pub id: SignalId,
    /// The length of its payload in bytes.
    pub len: usize,
}

/// A finished instance, as it stands in its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The instance.
    pub id: InstanceId,
    /// The tail of the run that finished.
    pub tail: crate::ids::RunTail,
    /// When.
    pub at: Timestamp,
}

impl Finished {
    /// As it is stored: `<ms>\0<id>\0<run tail>`.
    pub(crate) fn parse(entry: &str) -> Option<Self> {
        let mut parts = entry.splitn(3, '\0');
        Some(Self {
            at: Timestamp::from_millis(parts.next()?.parse().ok()?),
            id: InstanceId::stored(parts.next()?).ok()?,
            tail: parts.next()?.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\0{}\0{}", self.at, self.id, self.tail)
    }
}

/// How much there is of what, in one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries of each ready list that is not empty.
    pub ready: BTreeMap<ListName, usize>,
    /// Delayed tickets.
    pub delayed: usize,
    /// Claimed tasks.
    pub running: usize,
    /// Instances with a node that waits for a signal.
    pub waiting: usize,
    /// Paused instances.
    pub paused: usize,
    /// Finished instances of each status, as far as they are kept.
    pub finished: BTreeMap<Status, usize>,
    /// Entries that were set aside.
    pub aside: usize,
}

impl Counts {
    /// Adds those of another partition.
    pub fn add(&mut self, other: Self) {
        for (list, count) in other.ready {
            *self.ready.entry(list).or_default() += count;
        }
        for (status, count) in other.finished {
            *self.finished.entry(status).or_default() += count;
        }
        self.delayed += other.delayed;
        self.running += other.running;
        self.waiting += other.waiting;
        self.paused += other.paused;
        self.aside += other.aside;
    }
}
