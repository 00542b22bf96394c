//! What is looked at: a bounded number of reads.

use std::{collections::BTreeMap, time::Duration};

use tenure::{
    Client, InstanceId,
    ids::{ListName, TaskName, WorkerId},
    store::{Presence, TaskState, WorkerRecord},
};

use crate::commands::show::picture::Picture;

/// How often it looks while something seems to be lost.
pub(super) const LOOKS: usize = 3;
/// How long it waits before it looks again.
pub(super) const PAUSE: Duration = Duration::from_millis(400);
/// How far it looks into a ready list.
const ENTRIES: usize = 10_000;
/// How many of the workers that hold claims it asks for.
const HOLDERS: usize = 32;
/// How many claims are counted, of whatever instances: what workers say of themselves may be 30 s old.
const CLAIMS: usize = 256;

/// All that was seen.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) picture: Picture,
    /// Where ready tasks stand.
    pub(super) ready: BTreeMap<TaskName, Standing>,
    /// The last heartbeats of those who hold claims.
    pub(super) heard: BTreeMap<WorkerId, Option<Presence>>,
    pub(super) workers: Vec<WorkerRecord>,
    /// Tasks that a worker has met while the instance was paused.
    pub(super) parked: Vec<TaskName>,
}

/// A ready task in its list.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) list: ListName,
    /// How many entries are ahead of it; `None` if it was not met.
    pub(super) ahead: Option<usize>,
    /// Whether the whole list was looked at.
    pub(super) whole: bool,
}

pub(super) async fn evidence(client: &Client, id: &InstanceId) -> anyhow::Result<Evidence> {
    let handle = client.handle(id).await?;
    let picture = Picture::take(client, &handle, false).await?;
    let store = client.store();
    let partition = id.partition(store.partitions());
    let mut ready = BTreeMap::new();
    for task in tasks(&picture, TaskState::Ready) {
        let list = list_of(&picture, &task);
        let entries = store.ready(partition, &list, ENTRIES).await?;
        let tail = picture.snapshot.header.run.tail();
        let ahead = entries
            .iter()
            .position(|e| e.id == *id && e.task == task && e.tail == tail);
        let whole = entries.len() < ENTRIES;
        ready.insert(task, Standing { list, ahead, whole });
    }
    let mut heard = BTreeMap::new();
    for task in tasks(&picture, TaskState::Running)
        .into_iter()
        .take(HOLDERS)
    {
        if let Some(worker) = picture
            .snapshot
            .tasks
            .get(&task)
            .and_then(|t| t.worker.clone())
        {
            let presence = store.presence(partition, &worker).await?;
            heard.insert(worker, presence);
        }
    }
    let parked = store.parked(id).await?;
    let mut workers = client.workers().await?;
    if !ready.is_empty() {
        let held = held(client, id).await?;
        for worker in &mut workers {
            // Of what it holds, outcomes that are being stored have no slot any more.
            let held = held.get(&worker.id).copied().unwrap_or(0);
            worker.busy = worker.busy.max(held.min(worker.slots));
        }
    }
    Ok(Evidence {
        ready,
        heard,
        workers,
        parked: parked.into_iter().map(|ticket| ticket.task).collect(),
        picture,
    })
}

/// How many claims each worker holds just now, in the partition of the instance.
async fn held(client: &Client, id: &InstanceId) -> anyhow::Result<BTreeMap<WorkerId, usize>> {
    let store = client.store();
    let mut held = BTreeMap::new();
    let partition = id.partition(store.partitions());
    for ticket in store.running(partition, CLAIMS).await? {
        if let Some((worker, _)) = store.claim_key(&ticket.id, &ticket.task).await? {
            *held.entry(worker).or_default() += 1;
        }
    }
    Ok(held)
}

fn tasks(picture: &Picture, state: TaskState) -> Vec<TaskName> {
    let tasks = picture.snapshot.tasks.iter();
    tasks
        .filter(|(_, record)| record.state == state)
        .map(|(task, _)| task.clone())
        .collect()
}

/// The list of a task: its node may name a queue of its own.
fn list_of(picture: &Picture, task: &TaskName) -> ListName {
    let snapshot = &picture.snapshot;
    let graph = picture.graph.as_ref().ok();
    let own = graph.and_then(|graph| Some(graph.list(graph.find(task)?)));
    own.unwrap_or_else(|| ListName {
        queue: snapshot.queue.clone(),
        definition: snapshot.header.definition,
    })
}
