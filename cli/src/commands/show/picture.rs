//! What is read of an instance, as it is at about one moment.

use std::collections::BTreeMap;

use serde_json::Value;
use tenure::{
    Client, ClientError, Handle,
    ids::{TaskName, ValueField, WorkerId},
    store::{ErrorRecord, Snapshot, StartMeta, TaskState},
    time::Timestamp,
    workflow::{Graph, NodeId},
};

use crate::payload;

/// The largest payload that is read without being asked for.
const LARGE: usize = 64 * 1024;
/// How many timers are looked through for those of the instance.
const TIMERS: usize = 1_000;
/// How many claims are looked at.
const CLAIMS: usize = 32;

/// An instance, as it is.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) id: String,
    pub(crate) now: Timestamp,
    pub(crate) snapshot: Snapshot,
    pub(crate) meta: StartMeta,
    /// Oldest first.
    pub(crate) errors: Vec<ErrorRecord>,
    /// Why there is no graph, if there is none.
    pub(crate) graph: Result<Graph, String>,
    pub(crate) values: BTreeMap<ValueField, Payload>,
    /// When delayed tasks are due, as far as that is known.
    pub(crate) due: BTreeMap<TaskName, Timestamp>,
    /// Whether all timers were looked through.
    pub(crate) all_timers: bool,
    /// Who holds the claims of running tasks, and until when; `None` for one that has expired.
    pub(crate) claims: BTreeMap<TaskName, Option<(WorkerId, Timestamp)>>,
}

/// A stored payload.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) bytes: usize,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Value(Value),
    /// It is no MessagePack, and why.
    Unreadable(String),
    /// It was not asked for.
    NotRead,
}

impl Picture {
    pub(crate) async fn take(client: &Client, handle: &Handle, full: bool) -> anyhow::Result<Self> {
        let snapshot = handle.snapshot().await?;
        let now = client.now().await?;
        let graph = match handle.graph(&snapshot.header).await {
            Ok(graph) => Ok(graph),
            Err(error @ (ClientError::Unpublished { .. } | ClientError::Definition { .. })) => {
                Err(error.to_string())
            }
            Err(error) => return Err(error.into()),
        };
        let mut errors = client.store().errors(handle.id()).await?;
        errors.reverse();
        let (due, all_timers) = due(client, handle, &snapshot).await?;
        Ok(Self {
            id: handle.id().to_string(),
            now,
            meta: snapshot.start_meta(),
            errors,
            graph,
            values: values(client, handle, &snapshot, full).await?,
            due,
            all_timers,
            claims: claims(client, handle, &snapshot, now).await?,
            snapshot,
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.snapshot.header.status.is_terminal()
    }

    pub(crate) fn input(&self) -> Option<&Payload> {
        self.values.get(&ValueField::Input)
    }

    pub(crate) fn result(&self) -> Option<&Payload> {
        self.values.get(self.snapshot.header.result.as_ref()?)
    }

    /// The tasks that have been reached: as the definition orders them, or else by name.
    pub(crate) fn tasks(&self) -> Vec<&TaskName> {
        let mut tasks: Vec<&TaskName> = self.snapshot.tasks.keys().collect();
        if let Ok(graph) = &self.graph {
            tasks.sort_by_key(|task| graph.find(task).map_or(usize::MAX, NodeId::index));
        }
        tasks
    }
}

async fn values(
    client: &Client,
    handle: &Handle,
    snapshot: &Snapshot,
    full: bool,
) -> anyhow::Result<BTreeMap<ValueField, Payload>> {
    let is_wanted = |field: &ValueField, bytes: usize| match field {
        _ if full => true,
        ValueField::Output(_) if snapshot.header.result.as_ref() != Some(field) => false,
        _ => bytes <= LARGE,
    };
    let all = snapshot.values.iter();
    let wanted: Vec<ValueField> = all
        .filter(|(field, bytes)| is_wanted(field, **bytes))
        .map(|(field, _)| field.clone())
        .collect();
    let store = client.store();
    let read = store.values(handle.id(), handle.run(), &wanted).await?;
    let mut read: BTreeMap<_, _> = wanted.into_iter().zip(read).collect();
    let all = snapshot.values.iter();
    let payloads = all.map(|(field, &bytes)| {
        let content = match read.remove(field).flatten() {
            None => Content::NotRead,
            Some(stored) => match payload::to_json(&stored) {
                Ok(value) => Content::Value(value),
                Err(error) => Content::Unreadable(error.to_string()),
            },
        };
        (field.clone(), Payload { bytes, content })
    });
    Ok(payloads.collect())
}

fn in_state(snapshot: &Snapshot, state: TaskState) -> impl Iterator<Item = &TaskName> {
    let tasks = snapshot.tasks.iter();
    tasks
        .filter(move |(_, record)| record.state == state)
        .map(|(task, _)| task)
}

async fn due(
    client: &Client,
    handle: &Handle,
    snapshot: &Snapshot,
) -> anyhow::Result<(BTreeMap<TaskName, Timestamp>, bool)> {
    let waits = snapshot.waits.iter().map(|wait| &wait.task);
    if in_state(snapshot, TaskState::Delayed)
        .chain(waits)
        .next()
        .is_none()
    {
        return Ok((BTreeMap::new(), true));
    }
    let store = client.store();
    let partition = handle.id().partition(store.partitions());
    let timers = store.delayed(partition, TIMERS).await?;
    let all = timers.len() < TIMERS;
    let own = timers
        .into_iter()
        .filter(|(ticket, _)| ticket.id == *handle.id() && ticket.tail == handle.run().tail())
        .map(|(ticket, due)| (ticket.task, due))
        .collect();
    Ok((own, all))
}

async fn claims(
    client: &Client,
    handle: &Handle,
    snapshot: &Snapshot,
    now: Timestamp,
) -> anyhow::Result<BTreeMap<TaskName, Option<(WorkerId, Timestamp)>>> {
    let mut claims = BTreeMap::new();
    for task in in_state(snapshot, TaskState::Running).take(CLAIMS) {
        let claim = client.store().claim_key(handle.id(), task).await?;
        let claim = claim.map(|(worker, left)| {
            let left = std::time::Duration::from_millis(left);
            (worker, now.plus(left))
        });
        claims.insert(task.clone(), claim);
    }
    Ok(claims)
}
