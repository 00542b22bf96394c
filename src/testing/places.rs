use std::{collections::BTreeSet, sync::Arc};

use super::{Rule, Violation, check::Found};
use crate::{
    ids::{InstanceId, ListName, Partition, RunTail, TaskName, Ticket},
    store::{Place, Snapshot, Status, Store, StoreError, TaskState},
    workflow::Graph,
};

/// How many members of a set or list are read.
const MOST: usize = 100_000;

type Key = (InstanceId, TaskName, RunTail);

/// Where tickets stand.
pub(super) struct Places {
    ready: BTreeSet<Key>,
    parked: BTreeSet<Key>,
    delayed: BTreeSet<Key>,
    running: BTreeSet<Key>,
    waiting: BTreeSet<InstanceId>,
    aside: usize,
}

fn key(ticket: Ticket) -> Key {
    (ticket.id, ticket.task, ticket.tail)
}

/// The instances with a node that waits for a signal.
async fn waiting(
    store: &dyn Store,
    partition: Partition,
) -> Result<BTreeSet<InstanceId>, StoreError> {
    let (mut found, mut from) = (BTreeSet::new(), None);
    loop {
        let scan = store
            .scan(partition, &Place::Waiting, from.as_ref(), MOST)
            .await?;
        found.extend(scan.found.into_iter().map(|found| found.id));
        from = scan.next;
        if from.is_none() {
            return Ok(found);
        }
    }
}

impl Places {
    /// All tickets of all partitions, in the lists that have entries and in those of the graphs, and those of these
    /// instances that are parked.
    pub(super) async fn read<'a>(
        store: &dyn Store,
        ids: impl Iterator<Item = &InstanceId>,
        graphs: impl Iterator<Item = &'a Arc<Graph>>,
    ) -> Result<Self, StoreError> {
        let known: BTreeSet<ListName> = graphs.flat_map(|graph| graph.lists()).collect();
        let mut places = Self {
            ready: BTreeSet::new(),
            parked: BTreeSet::new(),
            delayed: BTreeSet::new(),
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            aside: 0,
        };
        for partition in Partition::all(store.partitions()) {
            let counts = store.counts(partition).await?;
            places.aside += counts.aside;
            for list in counts.ready.keys().chain(&known).collect::<BTreeSet<_>>() {
                let entries = store.ready(partition, list, MOST).await?;
                places.ready.extend(entries.into_iter().map(key));
            }
            let delayed = store.delayed(partition, MOST).await?;
            places
                .delayed
                .extend(delayed.into_iter().map(|(ticket, _)| key(ticket)));
            let running = store.running(partition, MOST).await?;
            places.running.extend(running.into_iter().map(key));
            places.waiting.extend(waiting(store, partition).await?);
        }
        for id in ids {
            let parked = store.parked(id).await?;
            places.parked.extend(parked.into_iter().map(key));
        }
        Ok(places)
    }

    /// An open task that nothing will ever look at again is stuck.
    pub(super) fn causes(&self, id: &InstanceId, snapshot: &Snapshot, found: &mut Found) {
        if snapshot.header.status.is_terminal() {
            return;
        }
        for (task, record) in &snapshot.tasks {
            let key = (id.clone(), task.clone(), snapshot.header.run.tail());
            let parked = snapshot.header.status == Status::Paused && self.parked.contains(&key);
            let stands = match record.state {
                TaskState::Ready => parked || self.ready.contains(&key),
                TaskState::Delayed => self.delayed.contains(&key),
                TaskState::Running => self.running.contains(&key),
                TaskState::Waiting => {
                    self.waits(id, snapshot, task, found);
                    continue;
                }
                _ => continue,
            };
            if !stands {
                found.push(Violation {
                    rule: Rule::HasCause,
                    id: Some(id.clone()),
                    what: format!("{task} is {record}, and stands nowhere"),
                });
            }
        }
    }

    /// A node that waits for a signal is one of those that its instance knows of, which is among those that wait.
    fn waits(&self, id: &InstanceId, snapshot: &Snapshot, task: &TaskName, found: &mut Found) {
        if !snapshot.awaits(task) || !self.waiting.contains(id) {
            found.push(Violation {
                rule: Rule::HasCause,
                id: Some(id.clone()),
                what: format!("{task} waits for a signal, and no signal finds it"),
            });
        }
    }

    /// What stands somewhere when nothing should.
    pub(super) fn left(&self, found: &mut Found) {
        let places = [
            ("a ready list", &self.ready),
            ("the delayed set", &self.delayed),
            ("the running set", &self.running),
        ];
        for (name, keys) in places {
            found.extend(keys.iter().map(|(id, task, tail)| Violation {
                rule: Rule::NothingLeft,
                id: Some(id.clone()),
                what: format!("{task} of run {tail} still stands in {name}"),
            }));
        }
        found.extend(self.waiting.iter().map(|id| Violation {
            rule: Rule::NothingLeft,
            id: Some(id.clone()),
            what: "it still stands among those that wait".into(),
        }));
        if self.aside > 0 {
            found.push(Violation {
                rule: Rule::NothingLeft,
                id: None,
                what: format!("{} entries were set aside", self.aside),
            });
        }
    }
}
