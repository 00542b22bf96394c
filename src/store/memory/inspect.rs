//! Reads.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    MemoryStore, listing,
    state::{Instance, Share},
};
use crate::{
    ids::{InstanceId, ListName, Partition, RunId, TaskName, Ticket, ValueField, WorkerId},
    store::{
        Counts, DefinitionRecord, ErrorRecord, Finished, Header, Inspect, ListRecord, Place,
        Position, Presence, Scan, Snapshot, Status, StoreError, Summaries, WorkerRecord,
    },
    time::Timestamp,
};

impl Instance {
    pub(super) fn header(&self) -> Header {
        Header {
            run: self.run,
            status: self.status,
            workflow: self.workflow.clone(),
            definition: self.definition,
            result: self.result.clone(),
            error: self.error.clone(),
            control: self.control.clone(),
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            header: self.header(),
            queue: self.queue.clone(),
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            open: self.open,
            max_crashes: self.max_crashes,
            retries: self.retries,
            replaced: self.replaced.clone(),
            meta: self.meta.clone(),
            tasks: self.tasks.clone(),
            joins: self.joins.clone(),
            waits: self.signals.waits().to_vec(),
            early: self.signals.early(),
            signals: self.signals.awaited().to_vec(),
            values: self
                .values
                .iter()
                .map(|(field, value)| (field.clone(), value.len()))
                .collect(),
        }
    }
}

fn counts(share: &Share) -> Counts {
    Counts {
        ready: share
            .ready
            .iter()
            .filter(|(_, entries)| !entries.is_empty())
            .map(|(list, entries)| (list.clone(), entries.len()))
            .collect(),
        delayed: share.delayed.len(),
        running: share.running.len(),
        waiting: share.waiting.len(),
        paused: share.paused.len(),
        finished: Status::ALL
            .into_iter()
            .filter(|status| status.is_terminal())
            .map(|status| (status, share.done.get(&status).map_or(0, VecDeque::len)))
            .collect(),
        aside: share.aside.len(),
    }
}

#[async_trait]
impl Inspect for MemoryStore {
    async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError> {
        self.read(id, |instance| {
            // A damaged task is no part of the header.
            if instance.is_of_other_format() {
                instance.check(id)?;
            }
            Ok(instance.header())
        })
    }

    async fn snapshot(&self, id: &InstanceId) -> Result<Option<Snapshot>, StoreError> {
        self.read(id, |instance| {
            instance.check(id)?;
            Ok(instance.snapshot())
        })
    }

    async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError> {
        let errors = self.read(id, |instance| Ok(instance.errors.iter().cloned().collect()))?;
        Ok(errors.unwrap_or_default())
    }

    async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let values = self.read(id, |instance| {
            let of_run = |field| instance.values.get(field).filter(|_| instance.run == run);
            Ok(fields.iter().map(|f| of_run(f).cloned()).collect())
        })?;
        Ok(values.unwrap_or_else(|| vec![None; fields.len()]))
    }

    async fn counts(&self, partition: Partition) -> Result<Counts, StoreError> {
        self.look(partition, |share, _| counts(share))
    }

    async fn finished(
        &self,
        partition: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError> {
        self.look(partition, |share, _| {
            let done = share.done.get(&status).into_iter().flatten();
            done.skip(offset).take(limit).cloned().collect()
        })
    }

    async fn running(&self, partition: Partition, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.look(partition, |share, _| {
            let tickets = share.running.iter().map(|(_, ticket)| ticket);
            tickets.take(limit).cloned().collect()
        })
    }

    async fn delayed(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError> {
        self.look(partition, |share, _| {
            let tickets = share.delayed.iter().map(|(due, t)| (t.clone(), due));
            tickets.take(limit).collect()
        })
    }

    async fn ready(
        &self,
        partition: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        self.look(partition, |share, _| {
            let entries = share.ready.get(list).into_iter().flatten();
            entries.take(limit).cloned().collect()
        })
    }

    async fn scan(
        &self,
        partition: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        self.look(partition, |share, _| {
            listing::scan(share, place, from, limit)
        })?
    }

    async fn summaries(
        &self,
        partition: Partition,
        ids: &[InstanceId],
    ) -> Result<Summaries, StoreError> {
        self.look(partition, |share, _| listing::summaries(share, ids))
    }

    async fn lists(&self, partition: Partition) -> Result<Vec<ListRecord>, StoreError> {
        self.look(partition, listing::lists)
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        Ok(listing::workers(&self.state(), self.clock.now()))
    }

    async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        Ok(listing::definitions(&self.state()))
    }

    async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError> {
        self.look(id.partition(self.partitions), |share, _| {
            let parked = share.parked.get(id).into_iter().flatten();
            parked.cloned().collect()
        })
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError> {
        self.look(partition, |share, now| {
            let heard = share.presence.get(worker)?;
            let (ttl, left) = (*heard.get(now)?, heard.left(now)?);
            let positive = |millis| u64::try_from(millis).unwrap_or(0);
            Some(Presence::of(positive(ttl), positive(left)))
        })
    }

    async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError> {
        self.look(id.partition(self.partitions), |share, now| {
            let claim = share.claims.get(&(id.clone(), task.clone()))?;
            let left = claim.left(now)?;
            Some((
                claim.get(now)?.worker.clone(),
                u64::try_from(left).unwrap_or(0),
            ))
        })
    }
}
