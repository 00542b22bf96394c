//! Reads: plain commands; only a whole snapshot is read by a script, so that it is of one moment.

use bytes::Bytes;
use redis::Cmd;

use super::{
    Inner,
    keys::PartitionKeys,
    snapshot::{Fields, header},
};
use crate::{
    codec,
    error::StoreError,
    ids::{InstanceId, ListName, Partition, RunId, TaskName, Ticket, ValueField, WorkerId},
    store::{Counts, ErrorRecord, Finished, Header, Presence, Status},
    time::Timestamp,
};

/// A ticket as stored, or a typed error that names the key.
fn ticket(key: &str, text: &str) -> Result<Ticket, StoreError> {
    text.parse()
        .map_err(|e: crate::ids::IdError| StoreError::Corrupt {
            key: key.to_owned(),
            what: "a ticket".to_owned(),
            reason: e.to_string(),
        })
}

fn limited(limit: usize) -> isize {
    isize::try_from(limit).unwrap_or(isize::MAX)
}

impl Inner {
    fn home(&self, id: &InstanceId) -> Result<PartitionKeys<'_>, StoreError> {
        self.keys_of(id.partition(self.settings.partitions))
    }

    /// Reads some fields of a snapshot; a key of another type is a record that cannot be read.
    async fn read<'a>(
        &'a self,
        id: &'a InstanceId,
        names: &[&str],
    ) -> Result<Option<Fields<'a>>, StoreError> {
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(self.home(id)?.instance(id)).arg(names);
        let values: Vec<Option<Vec<u8>>> = self.typed(id, self.command("read", &cmd).await)?;
        let mut fields = Fields::new(self, id);
        for (name, value) in names.iter().zip(values) {
            if let Some(value) = value {
                fields.insert(name, value.into());
            }
        }
        Ok((!fields.is_empty()).then_some(fields))
    }

    fn typed<T>(&self, id: &InstanceId, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match result {
            Err(StoreError::Server { source, .. }) if source.to_string().contains("WRONGTYPE") => {
                Err(self.unreadable(id))
            }
            other => other,
        }
    }

    pub(super) async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError> {
        self.read(id, &Header::FIELDS)
            .await?
            .map(|fields| header(&fields))
            .transpose()
    }

    pub(super) async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError> {
        let mut cmd = redis::cmd("LRANGE");
        cmd.arg(self.home(id)?.errors(id)).arg(0).arg(-1);
        let records: Vec<Vec<u8>> = self.typed(id, self.command("errors", &cmd).await)?;
        records
            .iter()
            .map(|bytes| {
                codec::decode(bytes).map_err(|e| self.corrupt(id, "an error record", e.to_string()))
            })
            .collect()
    }

    /// Lengths first: what is large goes over a connection of its own.
    pub(super) async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let key = self.home(id)?.instance(id);
        let names: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let mut lengths = redis::pipe();
        for name in &names {
            lengths.cmd("HSTRLEN").arg(&key).arg(name);
        }
        let lengths: Vec<usize> = self.typed(id, self.pipeline("values", &lengths).await)?;
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(&key).arg("run").arg(&names);
        let values: Vec<Option<Vec<u8>>> = if lengths.iter().sum::<usize>() > Self::LARGE {
            self.large_command("values", &cmd).await?
        } else {
            self.command("values", &cmd).await?
        };
        let mut values = values.into_iter();
        if values.next().flatten().as_deref() != Some(run.to_string().as_bytes()) {
            return Ok(vec![None; fields.len()]);
        }
        Ok(values.map(|value| value.map(Bytes::from)).collect())
    }

    pub(super) async fn counts(&self, partition: Partition) -> Result<Counts, StoreError> {
        let keys = self.keys_of(partition)?;
        let mut cmd = redis::cmd("SMEMBERS");
        cmd.arg(keys.lists());
        let names: Vec<String> = self.command("counts", &cmd).await?;
        let lists: Vec<ListName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        let ended: Vec<Status> = Status::ALL
            .into_iter()
            .filter(|status| status.is_terminal())
            .collect();
        let mut pipe = redis::pipe();
        pipe.cmd("ZCARD").arg(keys.delayed());
        pipe.cmd("ZCARD").arg(keys.running());
        pipe.cmd("HLEN").arg(keys.aside());
        pipe.cmd("SCARD").arg(keys.waiting());
        pipe.cmd("SCARD").arg(keys.paused());
        for status in &ended {
            pipe.cmd("LLEN").arg(keys.done(status.as_str()));
        }
        for list in &lists {
            pipe.cmd("LLEN").arg(keys.ready(list));
        }
        let lengths: Vec<usize> = self.pipeline("counts", &pipe).await?;
        let (fixed, ready) = lengths.split_at(5 + ended.len());
        Ok(Counts {
            delayed: fixed[0],
            running: fixed[1],
            aside: fixed[2],
            waiting: fixed[3],
            paused: fixed[4],
            finished: ended.into_iter().zip(fixed[5..].iter().copied()).collect(),
            ready: lists
                .into_iter()
                .zip(ready.iter().copied())
                .filter(|(_, length)| *length > 0)
                .collect(),
        })
    }

    pub(super) async fn finished(
        &self,
        partition: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let key = self.keys_of(partition)?.done(status.as_str());
        let mut cmd = redis::cmd("LRANGE");
        cmd.arg(&key)
            .arg(offset)
            .arg(limited(offset.saturating_add(limit - 1)));
        let entries: Vec<String> = self.command("finished", &cmd).await?;
        entries
            .iter()
            .map(|entry| {
                Finished::parse(entry).ok_or_else(|| StoreError::Corrupt {
                    key: key.clone(),
                    what: "an entry".to_owned(),
                    reason: format!("`{}`", crate::ids::shorten(entry)),
                })
            })
            .collect()
    }

    pub(super) async fn running(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        let key = self.keys_of(partition)?.running();
        self.tickets(redis::cmd("ZRANGE"), &key, limit, "").await
    }

    pub(super) async fn ready(
        &self,
        partition: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        let key = self.keys_of(partition)?.ready(list);
        let list = format!("{list}\0");
        self.tickets(redis::cmd("LRANGE"), &key, limit, &list).await
    }

    async fn tickets(
        &self,
        mut cmd: Cmd,
        key: &str,
        limit: usize,
        list: &str,
    ) -> Result<Vec<Ticket>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        cmd.arg(key).arg(0).arg(limited(limit - 1));
        let members: Vec<String> = self.command("tickets", &cmd).await?;
        members
            .iter()
            .map(|member| ticket(key, &[list, member].concat()))
            .collect()
    }

    pub(super) async fn delayed(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let key = self.keys_of(partition)?.delayed();
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(&key)
            .arg(0)
            .arg(limited(limit - 1))
            .arg("WITHSCORES");
        let members: Vec<(String, i64)> = self.command("delayed", &cmd).await?;
        members
            .iter()
            .map(|(member, due)| Ok((ticket(&key, member)?, Timestamp::from_millis(*due))))
            .collect()
    }

    pub(super) async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError> {
        let key = self.home(id)?.parked(id);
        let mut cmd = redis::cmd("LRANGE");
        cmd.arg(&key).arg(0).arg(-1);
        let members: Vec<String> = self.command("parked", &cmd).await?;
        members.iter().map(|member| ticket(&key, member)).collect()
    }

    pub(super) async fn now(&self) -> Result<Timestamp, StoreError> {
        let (seconds, micros): (i64, i64) = self.command("now", &redis::cmd("TIME")).await?;
        Ok(Timestamp::from_millis(seconds * 1000 + micros / 1000))
    }

    pub(super) async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError> {
        let key = self.keys_of(partition)?.worker(worker);
        let mut pipe = redis::pipe();
        pipe.cmd("GET").arg(&key).cmd("PTTL").arg(&key);
        let (ttl, left): (Option<String>, i64) = self.pipeline("presence", &pipe).await?;
        let ttl = ttl.and_then(|ttl| ttl.parse().ok());
        Ok(ttl
            .zip(u64::try_from(left).ok())
            .map(|(ttl, left)| Presence::of(ttl, left)))
    }

    pub(super) async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError> {
        let key = self.home(id)?.claim(id, task);
        let mut pipe = redis::pipe();
        pipe.cmd("GET").arg(&key).cmd("PTTL").arg(&key);
        let (value, left): (Option<String>, i64) = self.pipeline("claim_key", &pipe).await?;
        let (Some(value), Ok(left)) = (value, u64::try_from(left)) else {
            return Ok(None);
        };
        let worker = value.split(' ').next().unwrap_or_default();
        let worker = worker
            .parse()
            .map_err(|e: crate::ids::IdError| self.corrupt(id, "a claim key", e.to_string()))?;
        Ok(Some((worker, left)))
    }

    /// The current definition of a name.
    pub(super) async fn definition(
        &self,
        workflow: &crate::ids::WorkflowName,
    ) -> Result<Option<(crate::ids::DefinitionHash, Bytes)>, StoreError> {
        let key = self.keys.workflow(workflow);
        let mut cmd = redis::cmd("GET");
        cmd.arg(&key);
        let Some(hash) = self.command::<Option<String>>("definition", &cmd).await? else {
            return Ok(None);
        };
        let hash = hash
            .parse()
            .map_err(|e: crate::ids::IdError| StoreError::Corrupt {
                key,
                what: "the hash".to_owned(),
                reason: e.to_string(),
            })?;
        let definition = self.published(hash).await?;
        Ok(definition.map(|bytes| (hash, bytes)))
    }

    /// A definition by its hash.
    pub(super) async fn published(
        &self,
        hash: crate::ids::DefinitionHash,
    ) -> Result<Option<Bytes>, StoreError> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.keys.definition(hash));
        let definition: Option<Vec<u8>> = self.command("definition", &cmd).await?;
        Ok(definition.map(Bytes::from))
    }
}
