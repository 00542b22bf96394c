//! What is stored: the same places as in Redis, as Rust collections.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque, hash_map::Entry},
    num::NonZeroU16,
};

use bytes::Bytes;

use super::{
    scored::{Expiring, Look, Scored},
    signal::Signals,
};
use crate::{
    ids::{
        DefinitionHash, InstanceId, ListName, MailboxId, Nonce, Partition, QueueName, RunId,
        TaskName, Ticket, ValueField, WorkerId, WorkflowName,
    },
    store::{
        ControlRecord, ErrorRecord, Finished, JoinRecord, Status, StoreError, TaskRecord,
        TaskState, WorkerRecord,
    },
    time::Timestamp,
    workflow::OnExhausted,
};

/// The format of the snapshots of this version.
pub(super) const FORMAT: u32 = 1;

/// All of a store: its partitions, and what is known of definitions.
#[derive(Debug)]
pub(super) struct State {
    pub(super) shares: Vec<Share>,
    pub(super) definitions: HashMap<DefinitionHash, Bytes>,
    pub(super) workflows: HashMap<WorkflowName, DefinitionHash>,
    pub(super) published: BTreeSet<(WorkflowName, DefinitionHash)>,
    /// What workers say of themselves.
    pub(super) workers: BTreeMap<WorkerId, Expiring<WorkerRecord>>,
}

impl State {
    pub(super) fn new(partitions: NonZeroU16) -> Self {
        let share = |partition| Share {
            partition,
            ..Share::default()
        };
        Self {
            shares: Partition::all(partitions).map(share).collect(),
            definitions: HashMap::new(),
            workflows: HashMap::new(),
            published: BTreeSet::new(),
            workers: BTreeMap::new(),
        }
    }

    /// One partition; every caller has checked that it exists.
    pub(super) fn share(&mut self, partition: Partition) -> &mut Share {
        &mut self.shares[usize::from(partition.number())]
    }

    /// The first publication of a hash moves the name to it.
    pub(super) fn publish(&mut self, workflow: &WorkflowName, hash: DefinitionHash, text: Bytes) {
        self.published.insert((workflow.clone(), hash));
        if let Entry::Vacant(new) = self.definitions.entry(hash) {
            new.insert(text);
            self.workflows.insert(workflow.clone(), hash);
        } else {
            self.workflows.entry(workflow.clone()).or_insert(hash);
        }
    }

    pub(super) fn definition(&self, workflow: &WorkflowName) -> Option<(DefinitionHash, Bytes)> {
        let hash = self.workflows.get(workflow)?;
        Some((*hash, self.definitions.get(hash)?.clone()))
    }
}

/// One partition.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) partition: Partition,
    pub(super) instances: HashMap<InstanceId, Instance>,
    pub(super) ready: BTreeMap<ListName, VecDeque<Ticket>>,
    /// By due time.
    pub(super) delayed: Scored<Timestamp, Ticket>,
    /// By when to look at the claim next.
    pub(super) running: Scored<Look, Ticket>,
    /// Instances with a node that waits for a signal.
    pub(super) waiting: BTreeSet<InstanceId>,
    /// Paused instances.
    pub(super) paused: BTreeSet<InstanceId>,
    pub(super) claims: HashMap<(InstanceId, TaskName), Expiring<ClaimKey>>,
    /// With the time that each asked for, in milliseconds.
    pub(super) presence: HashMap<WorkerId, Expiring<i64>>,
    pub(super) last: HashMap<WorkerId, Expiring<LastClaim>>,
    /// Workers parked because a list was empty.
    pub(super) idle: HashMap<ListName, Scored<Timestamp, WorkerId>>,
    pub(super) woken: Scored<Timestamp, WorkerId>,
    pub(super) keeper: Option<Expiring<WorkerId>>,
    /// Finished instances, oldest first.
    pub(super) done: BTreeMap<Status, VecDeque<Finished>>,
    /// Tickets met while their instance was paused.
    pub(super) parked: HashMap<InstanceId, VecDeque<Ticket>>,
    /// Tickets that cannot be run, with the reason.
    pub(super) aside: BTreeMap<String, String>,
}

impl Share {
    pub(super) fn list(&mut self, name: &ListName) -> &mut VecDeque<Ticket> {
        self.ready.entry(name.clone()).or_default()
    }

    /// Drops what has expired and is met by nobody any more: of workers that are gone.
    pub(super) fn forget_expired(&mut self, now: Timestamp) {
        self.claims.retain(|_, claim| claim.get(now).is_some());
        self.presence.retain(|_, worker| worker.get(now).is_some());
        self.last.retain(|_, claim| claim.get(now).is_some());
        self.keeper = self.keeper.take().filter(|k| k.get(now).is_some());
    }

    /// The live instance that a ticket means; none if it is over or has another run.
    pub(super) fn live(&mut self, ticket: &Ticket) -> Option<&mut Instance> {
        self.instances
            .get_mut(&ticket.id)
            .filter(|i| i.run.tail() == ticket.tail && !i.status.is_terminal())
    }
}

/// The snapshot of one instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) run: RunId,
    pub(super) status: Status,
    pub(super) workflow: WorkflowName,
    pub(super) definition: DefinitionHash,
    pub(super) queue: QueueName,
    pub(super) created_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) finished_at: Option<Timestamp>,
    /// Live tokens.
    pub(super) open: i64,
    pub(super) max_crashes: u32,
    pub(super) on_exhausted: OnExhausted,
    /// How often it was brought back to life.
    pub(super) retries: u32,
    /// Newest first.
    pub(super) replaced: Vec<RunId>,
    /// Who waits for the end, newest last.
    pub(super) waiters: Vec<MailboxId>,
    pub(super) tasks: BTreeMap<TaskName, TaskRecord>,
    pub(super) joins: BTreeMap<TaskName, JoinRecord>,
    pub(super) signals: Signals,
    /// Overall deadlines, written at the first claim.
    pub(super) due: BTreeMap<TaskName, Timestamp>,
    pub(super) values: BTreeMap<ValueField, Bytes>,
    /// Attempt and number of the last note of each task.
    pub(super) noted: BTreeMap<TaskName, (u32, u64)>,
    pub(super) meta: Option<Bytes>,
    pub(super) result: Option<ValueField>,
    pub(super) error: Option<ErrorRecord>,
    pub(super) control: Option<ControlRecord>,
    /// The nonce of the last control, so that a repeated call is known.
    pub(super) controlled: Option<Nonce>,
    /// Of failed attempts, newest first.
    pub(super) errors: VecDeque<ErrorRecord>,
    /// What a test did to the record.
    pub(super) damage: Option<Damage>,
}

/// How a stored record can be unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// Its format is one that this version does not know.
    Format(String),
    /// The record of one task is this text.
    Task(TaskName, String),
    /// The key holds something that is no snapshot at all.
    Foreign,
}

impl Instance {
    /// Whether the key holds a snapshot at all.
    pub(super) fn is_foreign(&self) -> bool {
        self.damage == Some(Damage::Foreign)
    }

    /// Whether the snapshot was written by a version that this one cannot read.
    pub(super) fn is_of_other_format(&self) -> bool {
        matches!(self.damage, Some(Damage::Foreign | Damage::Format(_)))
    }

    /// Why the record that a ticket means cannot be read; `None` also when it means nothing that is live.
    pub(super) fn unreadable(&self, ticket: &Ticket) -> Option<String> {
        match self.damage.as_ref()? {
            Damage::Foreign => Some("the key does not hold a snapshot".into()),
            Damage::Format(found) => Some(format!("unknown format {found}")),
            Damage::Task(task, _) => {
                let meant = self.run.tail() == ticket.tail && !self.status.is_terminal();
                (meant && *task == ticket.task).then(|| "the task record cannot be read".into())
            }
        }
    }

    /// The record of a task, if there is one that can be read.
    pub(super) fn task(&self, task: &TaskName) -> Option<&TaskRecord> {
        match &self.damage {
            Some(Damage::Task(damaged, _)) if damaged == task => None,
            _ => self.tasks.get(task),
        }
    }

    /// Whether a task runs under exactly this record.
    pub(super) fn holds(&self, task: &TaskName, record: &TaskRecord) -> bool {
        self.task(task) == Some(record)
    }

    /// Takes a task from its worker: whatever comes next, nobody has a fence for it any more.
    pub(super) fn requeue(&mut self, task: &TaskName, state: TaskState) -> Option<&mut TaskRecord> {
        let record = self.tasks.get_mut(task)?;
        record.state = state;
        record.nonce = None;
        record.worker = None;
        record.deadline = None;
        Some(record)
    }

    /// Refuses what a snapshot of another version or no snapshot at all would be read as.
    pub(super) fn check(&self, id: &InstanceId) -> Result<(), StoreError> {
        let corrupt = |what: &str, reason: String| StoreError::Corrupt {
            key: format!("instance:{id}"),
            what: what.to_owned(),
            reason,
        };
        match &self.damage {
            None => Ok(()),
            Some(Damage::Format(found)) => Err(StoreError::Format {
                id: id.clone(),
                found: found.clone(),
                supported: FORMAT,
            }),
            Some(Damage::Task(task, text)) => Err(corrupt(
                &format!("task:{task}"),
                format!("`{text}` is not a task record"),
            )),
            Some(Damage::Foreign) => Err(corrupt(
                "snapshot",
                "the key does not hold a snapshot".into(),
            )),
        }
    }

    /// The record of a task, if it is in this state.
    pub(super) fn task_in(&mut self, state: TaskState, task: &TaskName) -> Option<&mut TaskRecord> {
        self.task(task).filter(|record| record.state == state)?;
        self.tasks.get_mut(task)
    }

    pub(super) fn keep_error(&mut self, error: ErrorRecord) {
        self.errors.push_front(error);
        self.errors.truncate(ErrorRecord::KEPT);
    }
}

/// What a person and the reaper see of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimKey {
    pub(super) worker: WorkerId,
    pub(super) run: RunId,
    pub(super) attempt: u32,
    pub(super) nonce: Option<Nonce>,
    /// What its owner asked for, in milliseconds.
    pub(super) ttl: i64,
}

impl ClaimKey {
    pub(super) fn of(run: RunId, record: &TaskRecord, worker: &WorkerId, ttl: i64) -> Self {
        Self {
            worker: worker.clone(),
            run,
            attempt: record.attempt,
            nonce: record.nonce,
            ttl,
        }
    }

    /// Whether this is the key of that fence.
    pub(super) fn belongs_to(&self, worker: &WorkerId, run: RunId, record: &TaskRecord) -> bool {
        let own = (&self.worker, self.run, self.attempt, self.nonce);
        own == (worker, run, record.attempt, record.nonce)
    }
}

/// The tickets of a worker's last claim, so that a repeated call gets them again.
#[derive(Debug, Clone)]
pub(super) struct LastClaim {
    pub(super) nonce: Nonce,
    pub(super) tickets: Vec<Ticket>,
}
