//! What a listing reads: the places where instances stand, a piece at a time, and what is shown of each.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{ErrorRecord, Finished, StartMeta, Status, StoreError, TaskRecord, TaskState};
use crate::{
    ids::{
        DefinitionHash, IdError, InstanceId, ListName, QueueName, RunId, RunTail, TaskName, Ticket,
        WorkerId, WorkflowName,
    },
    time::Timestamp,
};

/// Where instances stand: these are the indexes, there is no other. A live instance stands in at least one place for its
/// open tasks, a finished one in that of its status.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// Timers, retries and delayed starts.
    Delayed,
    /// A ready list.
    Ready(ListName),
    /// Claimed tasks.
    Running,
    /// Instances with a node that waits for a signal.
    Waiting,
    /// Paused instances.
    Paused,
    /// Finished instances of a status, the newest first.
    Done(Status),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delayed => f.write_str("delayed"),
            Self::Ready(list) => write!(f, "ready:{list}"),
            Self::Running => f.write_str("running"),
            Self::Waiting => f.write_str("waiting"),
            Self::Paused => f.write_str("paused"),
            Self::Done(status) => write!(f, "done:{status}"),
        }
    }
}

impl std::str::FromStr for Place {
    type Err = IdError;

    fn from_str(value: &str) -> Result<Self, IdError> {
        match (value, value.split_once(':')) {
            ("delayed", _) => Ok(Self::Delayed),
            ("running", _) => Ok(Self::Running),
            ("waiting", _) => Ok(Self::Waiting),
            ("paused", _) => Ok(Self::Paused),
            (_, Some(("ready", list))) => list.parse().map(Self::Ready),
            (_, Some(("done", status))) => status.parse().map(Self::Done),
            _ => Err(IdError::Stored {
                kind: "place",
                value: crate::ids::shorten(value),
            }),
        }
    }
}

/// Where in a place a look goes on: made by a store, and understood by it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(pub(crate) String);

/// A piece of a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// What stands there.
    pub found: Vec<Found>,
    /// Where it goes on; `None` at the end. A piece may be empty and not the last one.
    pub next: Option<Position>,
}

impl Scan {
    /// At most so many.
    pub(crate) fn cut(mut self, limit: usize) -> Self {
        if self.found.len() > limit {
            self.found.truncate(limit);
            self.next = self.found.last().map(|found| found.next.clone());
        }
        self
    }
}

/// What stands in a place: a trace of an instance, which may be over or replaced by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The instance.
    pub id: InstanceId,
    /// The task, where tasks stand.
    pub task: Option<TaskName>,
    /// Which run, where it is said.
    pub tail: Option<RunTail>,
    /// Where a look goes on behind it.
    pub next: Position,
}

impl Found {
    /// An instance by itself.
    pub(crate) fn instance(id: InstanceId, next: String) -> Self {
        Self {
            id,
            task: None,
            tail: None,
            next: Position(next),
        }
    }

    pub(crate) fn ticket(ticket: Ticket, next: String) -> Self {
        Self {
            id: ticket.id,
            task: Some(ticket.task),
            tail: Some(ticket.tail),
            next: Position(next),
        }
    }

    pub(crate) fn finished(finished: Finished, next: String) -> Self {
        Self {
            id: finished.id,
            task: None,
            tail: Some(finished.tail),
            next: Position(next),
        }
    }
}

/// What a listing shows of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The instance.
    pub id: InstanceId,
    /// Its run.
    pub run: RunId,
    /// Its status.
    pub status: Status,
    /// The workflow.
    pub workflow: WorkflowName,
    /// Its definition.
    pub definition: DefinitionHash,
    /// When it was started.
    pub created_at: Timestamp,
    /// When a task of it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Labels and creator; none when they cannot be read.
    pub meta: StartMeta,
    /// The tasks that something more must happen to.
    pub tasks: BTreeMap<TaskName, TaskRecord>,
    /// Why it failed.
    pub error: Option<ErrorRecord>,
}

impl Summary {
    /// The open task that stands for the instance: of several the one that is furthest from its end.
    pub(crate) fn leading(&self) -> Option<(&TaskName, TaskState)> {
        let rank = |state: TaskState| match state {
            TaskState::Delayed => 0,
            TaskState::Ready => 1,
            TaskState::Running => 2,
            TaskState::Waiting => 3,
            TaskState::Completed | TaskState::Failed | TaskState::Closed | TaskState::Cleared => 4,
        };
        let open = self.tasks.iter().map(|(task, record)| (task, record.state));
        open.min_by_key(|(_, state)| rank(*state))
    }
}

/// What is known of several instances. Those that are not there are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summaries {
    /// In the order in which they were asked for.
    pub found: Vec<Summary>,
    /// Those whose records cannot be read, in the same order.
    pub unreadable: Vec<InstanceId>,
}

/// How a ready list is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRecord {
    /// The list.
    pub list: ListName,
    /// How many entries wait in it.
    pub ready: usize,
    /// The instance and the task at its head.
    pub head: Option<(InstanceId, TaskName)>,
    /// When the instance at the head was started: the entry waits no longer than since then.
    pub head_created_at: Option<Timestamp>,
    /// How many workers are parked at it: they look again when something comes.
    pub parked: usize,
}

/// A definition that a worker has published.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionRecord {
    /// Its name.
    pub workflow: WorkflowName,
    /// Its hash.
    pub hash: DefinitionHash,
    /// Whether the name points to it: what a start by name uses.
    pub current: bool,
}

/// What a worker says of itself: sent every few seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its id.
    pub id: WorkerId,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// What it can run.
    pub definitions: Vec<(WorkflowName, DefinitionHash)>,
    /// Which queues it serves.
    pub queues: Vec<QueueName>,
    /// How many tasks may run at once.
    pub slots: usize,
    /// How many run.
    pub busy: usize,
    /// It was told to stop, and takes no new tasks.
    pub draining: bool,
    /// How long ago it was started.
    pub uptime: Duration,
    /// How long it is believed to live without saying so again, to the millisecond; zero when it leaves.
    pub ttl: Duration,
}

impl WorkerRecord {
    /// The most workers that are listed.
    pub const MOST: usize = 10_000;
}

/// A worker, as it said itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRecord {
    /// Its id.
    pub id: WorkerId,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// What it can run.
    pub definitions: Vec<(WorkflowName, DefinitionHash)>,
    /// Which queues it serves.
    pub queues: Vec<QueueName>,
    /// How many tasks may run at once.
    pub slots: usize,
    /// How many run.
    pub busy: usize,
    /// It was told to stop, and takes no new tasks.
    pub draining: bool,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it said so.
    pub seen_at: Timestamp,
}

impl Position {
    /// `<distance of the last entry seen from the tail> <that entry>`
    pub(crate) fn counted(text: &str) -> Result<(usize, &str), StoreError> {
        let counted = text.split_once(' ');
        let counted = counted.and_then(|(at, last)| Some((at.parse().ok()?, last)));
        counted.ok_or_else(|| Self::refused(text))
    }

    /// What a store says to a position that it did not make.
    pub(crate) fn refused(text: &str) -> StoreError {
        StoreError::Request {
            what: "the position in a place",
            allowed: "one that this store gave for this place".into(),
            given: crate::ids::shorten(text),
        }
    }
}
