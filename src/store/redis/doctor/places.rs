//! Where tickets and instances stand, read in pieces. What stays in its place from the first piece to the last is seen.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::Examination;
use crate::{
    ids::{InstanceId, ListName, RunTail, TaskName},
    store::{Finished, Status, StoreError, TaskState},
};

/// Enough of what is the key of a task to tell it from others: a partition may have millions.
pub(super) type Mark = u64;

fn mark_of(id: &str, task: &str, tail: &str) -> Mark {
    let mut hasher = DefaultHasher::new();
    (id, task, tail).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn task_mark(id: &InstanceId, task: &TaskName, tail: RunTail) -> Mark {
    mark_of(id.as_str(), task.as_str(), &tail.to_string())
}

pub(super) fn entry_mark(entry: &str) -> Mark {
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    hasher.finish()
}

/// That of an entry, whatever its list and its input.
fn of_entry(entry: &str) -> Option<Mark> {
    let mut parts = entry.splitn(3, '\0');
    let (id, task, rest) = (parts.next()?, parts.next()?, parts.next()?);
    Some(mark_of(id, task, rest.get(..12)?))
}

/// Where tasks stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Spot {
    Ready,
    Delayed,
    Running,
    Aside,
}

impl Spot {
    /// Where a task in this state has to stand, if it is one of these places.
    pub(super) fn of(state: TaskState) -> Option<Self> {
        match state {
            TaskState::Ready => Some(Self::Ready),
            TaskState::Delayed => Some(Self::Delayed),
            TaskState::Running => Some(Self::Running),
            _ => None,
        }
    }
}

/// All places of a partition, as they were while they were read.
#[derive(Debug, Default)]
pub(super) struct Places {
    tasks: HashSet<(Spot, Mark)>,
    /// Entries of the indexes of finished instances, with a bit for each status.
    done: HashMap<Mark, u8>,
    /// Of indexes: those that cannot be read.
    pub(super) odd: Vec<(Status, String)>,
    /// Of those that were set aside: ticket and reason.
    pub(super) aside: Vec<(String, String)>,
    pub(super) waiting: BTreeSet<String>,
    pub(super) paused: BTreeSet<String>,
}

fn bit(status: Status) -> u8 {
    let at = Status::ALL.iter().position(|one| *one == status);
    1 << at.unwrap_or(0)
}

impl Places {
    /// Whether a task stands where its state says, or was set aside.
    pub(super) fn has(&self, spot: Spot, mark: Mark) -> bool {
        self.tasks.contains(&(spot, mark)) || self.tasks.contains(&(Spot::Aside, mark))
    }

    /// The indexes that have this entry.
    pub(super) fn indexes(&self, entry: &str) -> Vec<Status> {
        let bits = self.done.get(&entry_mark(entry)).copied().unwrap_or(0);
        let has = |status: &Status| bits & bit(*status) != 0;
        Status::ALL.into_iter().filter(has).collect()
    }

    pub(super) async fn read(look: &Examination<'_>) -> Result<Self, StoreError> {
        let mut places = Self::default();
        let tasks = &mut places.tasks;
        look.walk(|spot, mark, _| {
            tasks.insert((spot, mark));
        })
        .await?;
        places.aside = look.aside().await?;
        for status in Status::ALL
            .into_iter()
            .filter(|status| status.is_terminal())
        {
            let (done, odd) = (&mut places.done, &mut places.odd);
            let key = look.keys.done(status.as_str());
            look.list(&key, |entry| match Finished::parse(entry) {
                Some(_) => *done.entry(entry_mark(entry)).or_default() |= bit(status),
                None => odd.push((status, entry.to_owned())),
            })
            .await?;
        }
        let waiting = &mut places.waiting;
        look.set("SSCAN", &look.keys.waiting(), |id| {
            waiting.insert(id.to_owned());
        })
        .await?;
        let paused = &mut places.paused;
        look.set("SSCAN", &look.keys.paused(), |id| {
            paused.insert(id.to_owned());
        })
        .await?;
        Ok(places)
    }
}

impl Examination<'_> {
    /// Every ticket and entry with its place, its mark and its text as a ticket.
    pub(super) async fn walk(
        &self,
        mut visit: impl FnMut(Spot, Mark, &str),
    ) -> Result<(), StoreError> {
        for list in self.lists().await? {
            let key = self.keys.ready(&list);
            self.list(&key, |entry| {
                if let Some(mark) = of_entry(entry) {
                    visit(Spot::Ready, mark, &format!("{list}\0{entry}"));
                }
            })
            .await?;
        }
        for (spot, key) in [
            (Spot::Delayed, self.keys.delayed()),
            (Spot::Running, self.keys.running()),
        ] {
            self.set("ZSCAN", &key, |ticket| {
                let entry = ticket.split_once('\0').map(|(_, entry)| entry);
                if let Some(mark) = entry.and_then(of_entry) {
                    visit(spot, mark, ticket);
                }
            })
            .await?;
        }
        for (ticket, _) in self.aside().await? {
            let entry = ticket.split_once('\0').map(|(_, entry)| entry);
            if let Some(mark) = entry.and_then(of_entry) {
                visit(Spot::Aside, mark, &ticket);
            }
        }
        Ok(())
    }

    /// The lists that are known, and those of all published definitions.
    async fn lists(&self) -> Result<BTreeSet<ListName>, StoreError> {
        let mut cmd = redis::cmd("SMEMBERS");
        cmd.arg(self.keys.lists());
        let names: Option<Vec<String>> = self.read(&cmd).await?;
        let known = names
            .into_iter()
            .flatten()
            .filter_map(|name| name.parse().ok());
        Ok(known
            .chain(self.graphs.values().flat_map(|graph| graph.lists()))
            .collect())
    }

    async fn aside(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut all = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let mut cmd = redis::cmd("HSCAN");
            cmd.arg(self.keys.aside())
                .arg(&cursor)
                .arg("COUNT")
                .arg(self.batch);
            let Some((next, pairs)) = self.read::<(String, Vec<Vec<u8>>)>(&cmd).await? else {
                return Ok(all);
            };
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            all.extend(
                pairs
                    .chunks_exact(2)
                    .map(|pair| (text(&pair[0]), text(&pair[1]))),
            );
            if next == "0" {
                return Ok(all);
            }
            cursor = next;
        }
    }

    /// Every element of a list, from its tail: what is taken from its head, or put behind its tail, shifts nothing out of
    /// sight.
    pub(super) async fn list(
        &self,
        key: &str,
        mut visit: impl FnMut(&str),
    ) -> Result<(), StoreError> {
        let (mut seen, batch) = (0_i64, i64::try_from(self.batch).unwrap_or(i64::MAX));
        loop {
            let mut cmd = redis::cmd("LRANGE");
            cmd.arg(key).arg(-(seen + batch)).arg(-(seen + 1));
            let entries: Vec<Vec<u8>> = self.read(&cmd).await?.unwrap_or_default();
            for entry in &entries {
                visit(&String::from_utf8_lossy(entry));
            }
            let got = i64::try_from(entries.len()).unwrap_or(i64::MAX);
            if got < batch {
                return Ok(());
            }
            seen += got;
            self.breathe().await;
        }
    }

    /// Every member of a set or of a sorted one.
    pub(super) async fn set(
        &self,
        command: &str,
        key: &str,
        mut visit: impl FnMut(&str),
    ) -> Result<(), StoreError> {
        let step = if command == "ZSCAN" { 2 } else { 1 };
        let mut cursor = "0".to_owned();
        loop {
            let mut cmd = redis::cmd(command);
            cmd.arg(key).arg(&cursor).arg("COUNT").arg(self.batch);
            let Some((next, members)) = self.read::<(String, Vec<Vec<u8>>)>(&cmd).await? else {
                return Ok(());
            };
            for member in members.iter().step_by(step) {
                visit(&String::from_utf8_lossy(member));
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
            self.breathe().await;
        }
    }

    /// A read of a key that may have another type, which is a finding of its own: then there is nothing to read.
    pub(super) async fn read<T: redis::FromRedisValue>(
        &self,
        cmd: &redis::Cmd,
    ) -> Result<Option<T>, StoreError> {
        match self.inner.command("doctor", cmd).await {
            Err(StoreError::Server { source, .. }) if source.to_string().contains("WRONGTYPE") => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }
}
