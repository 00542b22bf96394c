//! Indexes against instances: who is missing in one, and who has no business there.

use super::{Examination, Problem, confirm::Suspect, places::Places};
use crate::{
    ids::InstanceId,
    store::{Finished, Snapshot, Status, StoreError, redis::scripts::mend::Mending},
};

impl Examination<'_> {
    /// A live instance is among those that wait, or are paused, if its snapshot says so.
    pub(super) fn members(
        &self,
        places: &Places,
        id: &InstanceId,
        snapshot: &Snapshot,
    ) -> Vec<Suspect> {
        let waits = !snapshot.waits.is_empty() && !places.waiting.contains(id.as_str());
        let paused =
            snapshot.header.status == Status::Paused && !places.paused.contains(id.as_str());
        let missing = [("waiting", waits), ("paused", paused)];
        let missing = missing.into_iter().filter(|(_, missing)| *missing);
        missing
            .map(|(index, _)| Suspect::Index {
                key: self.keys.instance(id),
                problem: Problem::NotIndexed {
                    index: index.to_owned(),
                },
                mending: self.member(index, id),
            })
            .collect()
    }

    pub(super) fn member(&self, index: &str, id: &InstanceId) -> Mending {
        Mending {
            action: "member",
            owner: None,
            id: Some(id.clone()),
            key: [self.keys.prefix, index].concat(),
            list: None,
            args: vec![index.to_owned(), id.to_string()],
        }
    }

    /// A finished instance stands in the index of its status, and in no other.
    pub(super) fn ended(
        &self,
        places: &Places,
        id: &InstanceId,
        snapshot: &Snapshot,
    ) -> Vec<Suspect> {
        let (status, run) = (snapshot.header.status, snapshot.header.run);
        let Some(at) = snapshot.finished_at else {
            return Vec::new();
        };
        let finished = Finished {
            id: id.clone(),
            tail: run.tail(),
            at,
        };
        let entry = finished.to_string();
        let indexes = places.indexes(&entry);
        let mut suspects = Vec::new();
        if !indexes.contains(&status) {
            let key = self.keys.done(status.as_str());
            let args = vec![
                run.to_string(),
                status.to_string(),
                at.to_string(),
                entry.clone(),
            ];
            suspects.push(Suspect::Index {
                key: self.keys.instance(id),
                problem: Problem::NotIndexed {
                    index: format!("done:{status}"),
                },
                mending: Mending {
                    action: "done",
                    owner: None,
                    id: Some(id.clone()),
                    key,
                    list: None,
                    args,
                },
            });
        }
        let wrong = indexes.into_iter().filter(|index| *index != status);
        suspects.extend(wrong.map(|index| self.undone(Some(id), index, &entry)));
        suspects
    }

    fn undone(&self, id: Option<&InstanceId>, status: Status, entry: &str) -> Suspect {
        let key = self.keys.done(status.as_str());
        Suspect::Index {
            key: key.clone(),
            problem: Problem::WronglyIndexed {
                index: format!("done:{status}"),
                entry: entry.to_owned(),
            },
            mending: Mending {
                action: "undone",
                owner: None,
                id: id.cloned(),
                key,
                list: None,
                args: vec![entry.to_owned()],
            },
        }
    }

    /// What stands in an index and has no business there; and what was set aside.
    pub(super) async fn indexes(&self, places: &Places) -> Result<Vec<Suspect>, StoreError> {
        let mut suspects: Vec<Suspect> = places
            .odd
            .iter()
            .take(Self::FINDINGS)
            .map(|(status, entry)| self.undone(None, *status, entry))
            .collect();
        for (index, field, members) in [
            ("waiting", "waits", &places.waiting),
            ("paused", "status", &places.paused),
        ] {
            let all: Vec<&String> = members.iter().collect();
            for some in all.chunks(self.batch) {
                suspects.extend(self.strangers(index, field, some).await?);
                self.breathe().await;
            }
        }
        let mut suspects = self.still_ill(suspects).await?;
        let aside = places.aside.iter();
        suspects.extend(aside.map(|(ticket, reason)| Suspect::Aside {
            ticket: ticket.clone(),
            reason: reason.clone(),
        }));
        Ok(suspects)
    }

    async fn strangers(
        &self,
        index: &str,
        field: &str,
        members: &[&String],
    ) -> Result<Vec<Suspect>, StoreError> {
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        let prefix = self.keys.prefix;
        for member in members {
            pipe.cmd("HGET")
                .arg(format!("{prefix}instance:{member}"))
                .arg(field);
        }
        let said: Vec<redis::Value> = self.inner.pipeline("doctor", &pipe).await?;
        let belongs = |said: redis::Value| {
            let said = redis::from_redis_value::<Option<String>>(said)
                .ok()
                .flatten();
            said.is_some_and(|said| index == "waiting" || said == "paused")
        };
        let strange = members.iter().zip(said).filter_map(|(member, said)| {
            if belongs(said) {
                return None;
            }
            // What is no id belongs to nobody: the script finds no instance.
            let mut mending = self.member(index, &InstanceId::stored(member).ok()?);
            mending.args = vec![index.to_owned(), (*member).clone()];
            Some(Suspect::Index {
                key: mending.key.clone(),
                problem: Problem::WronglyIndexed {
                    index: index.to_owned(),
                    entry: (*member).clone(),
                },
                mending,
            })
        });
        Ok(strange.collect())
    }
}
