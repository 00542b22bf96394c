//! What listings show of instances: two round trips for a batch.

use bytes::Bytes;

use super::{
    Inner, PartitionKeys,
    snapshot::{Fields, summary},
};
use crate::{
    error::StoreError,
    ids::{InstanceId, Partition},
    store::{Header, Summaries},
};

impl Inner {
    /// Which fields there are, then those that are shown.
    pub(super) async fn summaries(
        &self,
        partition: Partition,
        ids: &[InstanceId],
    ) -> Result<Summaries, StoreError> {
        let mut summaries = Summaries::default();
        if ids.is_empty() {
            return Ok(summaries);
        }
        let keys = self.keys_of(partition)?;
        let names = self.field_names(&keys, ids).await?;
        let mut pipe = redis::pipe();
        for (id, names) in &names {
            if let Some(names) = names {
                pipe.cmd("HMGET").arg(keys.instance(id)).arg(names);
            }
        }
        let values: Vec<Vec<Option<Bytes>>> = match pipe.is_empty() {
            true => Vec::new(),
            false => self.pipeline("summaries", &pipe).await?,
        };
        let mut values = values.into_iter();
        for (id, names) in names {
            let Some(names) = names else {
                summaries.unreadable.push(id.clone());
                continue;
            };
            let mut fields = Fields::new(self, id);
            for (name, value) in names.iter().zip(values.next().unwrap_or_default()) {
                if let Some(value) = value {
                    fields.insert(name, value);
                }
            }
            if fields.is_empty() {
                continue;
            }
            match summary(&fields) {
                Ok(summary) => summaries.found.push(summary),
                Err(_) => summaries.unreadable.push(id.clone()),
            }
        }
        Ok(summaries)
    }

    /// The fields to read of each instance that is there; none for a key that is no snapshot.
    async fn field_names<'a>(
        &self,
        keys: &PartitionKeys<'_>,
        ids: &'a [InstanceId],
    ) -> Result<Vec<(&'a InstanceId, Option<Vec<String>>)>, StoreError> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in ids {
            pipe.cmd("HKEYS").arg(keys.instance(id));
        }
        let replies: Vec<redis::Value> = self.pipeline("summaries", &pipe).await?;
        let named = ids.iter().zip(replies).filter_map(|(id, reply)| {
            let found = redis::from_redis_value::<Vec<String>>(reply).ok();
            let absent = found.as_ref().is_some_and(Vec::is_empty);
            (!absent).then(|| (id, found.map(shown)))
        });
        Ok(named.collect())
    }
}

/// The fields that a listing shows.
fn shown(names: Vec<String>) -> Vec<String> {
    let more = ["finished_at", "meta"];
    let fixed = Header::FIELDS.into_iter().chain(more).map(str::to_owned);
    let tasks = names.into_iter().filter(|name| name.starts_with("task:"));
    fixed.chain(tasks).collect()
}
