//! Which kind each key of a partition is of, and whom it belongs to.

use super::{Examination, Problem, confirm::Suspect, places::Places};
use crate::{
    ids::{InstanceId, ListName, TaskName},
    store::{StoreError, redis::scripts::mend::Mending},
};

/// The keys of a partition that stand for themselves, with their types.
const SINGLE: [(&str, &str); 10] = [
    ("meta", "hash"),
    ("seq", "string"),
    ("woken", "zset"),
    ("running", "zset"),
    ("delayed", "zset"),
    ("waiting", "set"),
    ("paused", "set"),
    ("keeper", "string"),
    ("aside", "hash"),
    ("lists", "set"),
];
/// The others: how their names begin.
const KINDS: [(&str, &str); 9] = [
    ("instance", "hash"),
    ("claim", "string"),
    ("parked", "list"),
    ("errors", "list"),
    ("ready", "list"),
    ("idle", "zset"),
    ("done", "list"),
    ("last", "string"),
    ("worker", "string"),
];

/// Keys of one batch by what is to be looked at.
#[derive(Debug, Default)]
struct Sorted {
    instances: Vec<InstanceId>,
    claims: Vec<(InstanceId, TaskName, String)>,
    /// Errors and parked tickets: what an instance has beside its snapshot.
    beside: Vec<(InstanceId, String)>,
    parked: Vec<InstanceId>,
    lists: Vec<(ListName, String)>,
}

fn expected(rest: &str) -> Option<&'static str> {
    let kind = rest.split_once(':').map(|(kind, _)| kind);
    let single = SINGLE.iter().find(|(name, _)| *name == rest);
    let found = single.or_else(|| KINDS.iter().find(|(name, _)| Some(*name) == kind));
    found.map(|(_, expected)| *expected)
}

impl Sorted {
    /// `None` for a key of no known kind.
    fn add(&mut self, key: &str, rest: &str) -> Option<()> {
        let Some((kind, name)) = rest.split_once(':') else {
            return Some(());
        };
        match kind {
            "instance" => self.instances.push(InstanceId::stored(name).ok()?),
            "claim" => {
                let (id, task) = name.rsplit_once(':')?;
                let (id, task) = (InstanceId::stored(id).ok()?, TaskName::new(task).ok()?);
                self.claims.push((id, task, key.to_owned()));
            }
            "errors" => self
                .beside
                .push((InstanceId::stored(name).ok()?, key.to_owned())),
            "parked" => {
                let id = InstanceId::stored(name).ok()?;
                self.beside.push((id.clone(), key.to_owned()));
                self.parked.push(id);
            }
            "ready" => self.lists.push((name.parse().ok()?, key.to_owned())),
            _ => {}
        }
        Some(())
    }
}

impl Examination<'_> {
    /// The keys of one batch, with their types.
    pub(super) async fn census(
        &self,
        places: &Places,
        keys: Vec<(String, String)>,
    ) -> Result<Vec<Suspect>, StoreError> {
        let (mut sorted, mut suspects) = (Sorted::default(), Vec::new());
        for (key, found) in keys {
            let rest = key.strip_prefix(self.keys.prefix).unwrap_or_default();
            // What is tried at connect comes and goes.
            if rest.ends_with(crate::store::redis::scripts::probe::PROBE) || found == "none" {
                continue;
            }
            self.seen().keys += 1;
            match expected(rest) {
                Some(expected) if expected != found => suspects.push(Suspect::Type {
                    key: key.clone(),
                    expected,
                }),
                Some(_) if sorted.add(&key, rest).is_some() => {}
                _ => {
                    self.seen().unknown.insert(key);
                }
            }
        }
        self.seen().instances += sorted.instances.len();
        suspects.extend(self.instances(places, sorted.instances).await?);
        suspects.extend(self.claims(sorted.claims).await?);
        suspects.extend(self.orphans(sorted.beside).await?);
        suspects.extend(self.still_parked(sorted.parked).await?);
        let unlisted = sorted.lists.into_iter().map(|(list, key)| {
            let mending = Mending {
                action: "listed",
                owner: None,
                id: None,
                key: key.clone(),
                list: Some(list),
                args: Vec::new(),
            };
            Suspect::Index {
                key,
                problem: Problem::NotListed,
                mending,
            }
        });
        suspects.extend(self.still_ill(unlisted.collect()).await?);
        Ok(suspects)
    }

    /// Claim keys that no running task has.
    async fn claims(
        &self,
        claims: Vec<(InstanceId, TaskName, String)>,
    ) -> Result<Vec<Suspect>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for (_, _, key) in &claims {
            pipe.cmd("GET").arg(key);
        }
        let values: Vec<Option<Vec<u8>>> = self.inner.pipeline("doctor", &pipe).await?;
        let held = claims
            .into_iter()
            .zip(values)
            .filter_map(|((id, task, key), value)| {
                let value = String::from_utf8_lossy(&value?).into_owned();
                let mending = Mending {
                    action: "hold",
                    owner: None,
                    id: Some(id),
                    key: key.clone(),
                    list: None,
                    args: vec![value.clone(), format!("task:{task}")],
                };
                let problem = Problem::StrayClaim { value };
                Some(Suspect::Index {
                    key,
                    problem,
                    mending,
                })
            });
        self.still_ill(held.collect()).await
    }

    /// Of what belongs to instances, what belongs to none.
    async fn orphans(&self, beside: Vec<(InstanceId, String)>) -> Result<Vec<Suspect>, StoreError> {
        if beside.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for (id, _) in &beside {
            pipe.cmd("EXISTS").arg(self.keys.instance(id));
        }
        let there: Vec<bool> = self.inner.pipeline("doctor", &pipe).await?;
        let gone = beside.into_iter().zip(there).filter(|(_, there)| !there);
        let gone = gone.map(|((id, key), _)| Suspect::Index {
            key: key.clone(),
            problem: Problem::Orphan,
            mending: Mending {
                action: "orphan",
                owner: None,
                id: Some(id),
                key,
                list: None,
                args: Vec::new(),
            },
        });
        self.still_ill(gone.collect()).await
    }

    /// Of instances with parked tickets, those that are not paused.
    pub(super) async fn still_parked(
        &self,
        parked: Vec<InstanceId>,
    ) -> Result<Vec<Suspect>, StoreError> {
        if parked.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for id in &parked {
            pipe.cmd("HGET").arg(self.keys.instance(id)).arg("status");
            pipe.cmd("LLEN").arg(self.keys.parked(id));
        }
        let said: Vec<redis::Value> = self.inner.pipeline("doctor", &pipe).await?;
        let runs = |pair: &[redis::Value]| {
            let status = redis::from_redis_value_ref::<Option<String>>(&pair[0])
                .ok()
                .flatten();
            let length = redis::from_redis_value_ref::<usize>(&pair[1]).unwrap_or(0);
            status.as_deref() == Some("running") && length > 0
        };
        let pairs = parked.into_iter().zip(said.chunks_exact(2));
        Ok(pairs
            .filter(|(_, pair)| runs(pair))
            .map(|(id, _)| Suspect::Parked { id })
            .collect())
    }
}
