//! The ready lists as an operator sees them: those of all partitions as one, with who reads them.

use std::{collections::BTreeMap, time::Duration};

use tenure::{
    Client, ClientError,
    ids::{DefinitionHash, ListName, Partition, WorkflowName},
    store::{ListRecord, WorkerRecord},
    time::Timestamp,
};

/// A ready list: the tasks of one definition in one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Queue {
    pub(crate) queue: String,
    pub(crate) workflow: String,
    pub(crate) definition: String,
    pub(crate) ready: usize,
    /// How long ago the instance at its head was started.
    pub(crate) oldest: Option<Duration>,
    /// Instance and task at its head.
    pub(crate) head: Option<(String, String)>,
    pub(crate) parked: usize,
    /// How many workers read it.
    pub(crate) workers: usize,
}

impl Queue {
    /// Something waits in it, and nobody will take it.
    pub(crate) fn is_alone(&self) -> bool {
        self.ready > 0 && self.workers == 0
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}:{}", self.queue, self.workflow, self.definition)
    }
}

/// The names of definitions, as far as they were met: those that are not known are asked for.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<DefinitionHash, WorkflowName>);

impl Names {
    async fn learn(&mut self, client: &Client, lists: &[ListRecord]) -> Result<(), ClientError> {
        let is_known = |list: &ListRecord| self.0.contains_key(&list.list.definition);
        if lists.iter().all(is_known) {
            return Ok(());
        }
        let published = client.definitions().await?.into_iter();
        self.0.extend(published.map(|d| (d.hash, d.workflow)));
        // No worker has published the others yet: what waits in their lists says whose they are.
        for list in lists {
            if let Some((id, _)) = &list.head
                && !self.0.contains_key(&list.list.definition)
                && let Some(header) = client.store().header(id).await?
            {
                self.0.insert(header.definition, header.workflow);
            }
        }
        Ok(())
    }

    fn of(&self, definition: &DefinitionHash) -> String {
        let name = self.0.get(definition);
        name.map_or_else(|| "unknown".to_owned(), ToString::to_string)
    }
}

/// All lists but those of bygone definitions, in which nothing waits and which nobody reads.
pub(crate) async fn read(
    client: &Client,
    names: &mut Names,
    workers: &[WorkerRecord],
    now: Timestamp,
) -> Result<Vec<Queue>, ClientError> {
    let lists = by_name(client.lists().await?);
    names.learn(client, &lists).await?;
    let queues = lists.iter().map(|list| queue(list, names, workers, now));
    Ok(queues
        .filter(|queue| queue.ready + queue.parked + queue.workers > 0)
        .collect())
}

fn queue(record: &ListRecord, names: &Names, workers: &[WorkerRecord], now: Timestamp) -> Queue {
    let ListName { queue, definition } = &record.list;
    let reads = |worker: &&WorkerRecord| {
        let has = worker.definitions.iter().any(|(_, d)| d == definition);
        has && worker.queues.contains(queue) && !worker.draining
    };
    let head = record.head.as_ref();
    Queue {
        queue: queue.to_string(),
        workflow: names.of(definition),
        definition: definition.to_string(),
        ready: record.ready,
        oldest: record.head_created_at.map(|at| now.since(at)),
        head: head.map(|(id, task)| (id.to_string(), task.to_string())),
        parked: record.parked,
        workers: workers.iter().filter(reads).count(),
    }
}

/// Those of one name as one.
fn by_name(lists: Vec<(Partition, ListRecord)>) -> Vec<ListRecord> {
    let mut named: BTreeMap<ListName, ListRecord> = BTreeMap::new();
    for (_, list) in lists {
        match named.get_mut(&list.list) {
            Some(known) => merge(known, list),
            None => drop(named.insert(list.list.clone(), list)),
        }
    }
    named.into_values().collect()
}

fn merge(known: &mut ListRecord, list: ListRecord) {
    known.ready += list.ready;
    // A worker parks in all partitions.
    known.parked = known.parked.max(list.parked);
    let is_older = match (list.head_created_at, known.head_created_at) {
        (Some(new), Some(known)) => new < known,
        (new, _) => new.is_some(),
    };
    if is_older {
        (known.head, known.head_created_at) = (list.head, list.head_created_at);
    }
}
