use std::{collections::BTreeSet, sync::Arc};

use super::{Rule, Violation, check::Found};
use crate::{
    ids::{InstanceId, ListName, Partition, RunTail, TaskName, Ticket},
    store::{Snapshot, Status, Store, StoreError, TaskState},
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
    aside: usize,
}

fn key(ticket: Ticket) -> Key {
    (ticket.id, ticket.task, ticket.tail)
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
        if self.aside > 0 {
            found.push(Violation {
                rule: Rule::NothingLeft,
                id: None,
                what: format!("{} entries were set aside", self.aside),
            });
        }
    }
}
