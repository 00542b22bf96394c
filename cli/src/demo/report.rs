//! Counts what happened, from what Redis holds and from what the handlers wrote, never from the workers' own counters.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use tenure::{
    Client, Handle, codec,
    ids::{RunId, TaskName, ValueField},
    store::{Snapshot, Status, TaskState},
};
use uuid::Uuid;

use super::{
    crew::Killed,
    ledger::{Line, Phase},
    orders::Done,
};

/// What a demo shows.
pub(crate) struct Report {
    pub(crate) instances: u64,
    pub(crate) completed: u64,
    pub(crate) tasks: u64,
    pub(crate) attempts: u64,
    pub(crate) failures: u64,
    pub(crate) crashes: u64,
    /// Tasks whose handler returned a result more than once, or began anew after it was cut off.
    pub(crate) ran_twice: u64,
    pub(crate) committed_twice: u64,
    /// From the start of an instance to its end, in milliseconds by Redis's clock.
    pub(crate) latency: Histogram<u64>,
    pub(crate) recovery: Option<Recovery>,
}

/// What became of the tasks that the killed worker held.
pub(crate) struct Recovery {
    /// How many began again elsewhere.
    pub(crate) tasks: usize,
    /// From the kill until the last of them began again.
    pub(crate) millis: u64,
}

type TaskKey = (String, String);

/// Reads all instances and the ledger.
pub(crate) async fn count(
    client: &Client,
    handles: &[Handle<Done>],
    ledger: &Path,
    killed: Option<Killed>,
) -> anyhow::Result<Report> {
    let text = std::fs::read_to_string(ledger).context("the ledger cannot be read")?;
    let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
    let mut seen = Seen::of(&lines);
    let mut report = Report {
        instances: handles.len() as u64,
        completed: 0,
        tasks: 0,
        attempts: 0,
        failures: 0,
        crashes: 0,
        ran_twice: ran_twice(&lines),
        committed_twice: 0,
        latency: Histogram::new_with_bounds(1, 3_600_000, 3)?,
        recovery: killed.map(|killed| recovery(&lines, killed)),
    };
    let mut instances = stream::iter(handles)
        .map(|handle| read(client, handle))
        .buffer_unordered(64);
    while let Some((id, snapshot, tokens)) = instances.try_next().await? {
        report.add(&snapshot);
        for (task, token) in tokens {
            seen.committed(&id, &task, token);
        }
    }
    report.committed_twice = seen.committed_twice();
    Ok(report)
}

impl Report {
    fn add(&mut self, snapshot: &Snapshot) {
        self.completed += u64::from(snapshot.header.status == Status::Completed);
        for record in snapshot.tasks.values() {
            self.tasks += u64::from(record.state == TaskState::Completed);
            self.attempts += u64::from(record.attempt);
            self.failures += u64::from(record.failures);
            self.crashes += u64::from(record.crashes);
        }
        if let Some(finished) = snapshot.finished_at {
            let millis = finished.since(snapshot.created_at).as_millis();
            self.latency
                .saturating_record(u64::try_from(millis).unwrap_or(u64::MAX));
        }
    }
}

/// An instance as it is stored, with the tokens of its committed results.
async fn read(
    client: &Client,
    handle: &Handle<Done>,
) -> anyhow::Result<(String, Snapshot, Vec<(TaskName, Uuid)>)> {
    let id = handle.id();
    let store = client.store();
    let snapshot = store
        .snapshot(id)
        .await?
        .with_context(|| format!("instance {id} is gone"))?;
    let run: RunId = snapshot.header.run;
    let fields: Vec<ValueField> = snapshot
        .values
        .keys()
        .filter(|field| **field != ValueField::Input)
        .cloned()
        .collect();
    let values = store.values(id, run, &fields).await?;
    let mut tokens = Vec::new();
    for (field, value) in fields.into_iter().zip(values) {
        if let (ValueField::Output(task), Some(bytes)) = (field, value) {
            tokens.push((task, codec::decode::<Done>(&bytes)?.token));
        }
    }
    Ok((id.to_string(), snapshot, tokens))
}

/// Every token that was ever seen as *the* result of a task: by its successors, and in Redis at the end.
struct Seen(HashMap<TaskKey, HashSet<Uuid>>);

impl Seen {
    fn of(lines: &[Line]) -> Self {
        let mut seen = Self(HashMap::new());
        for line in lines {
            for (task, token) in &line.saw {
                seen.0
                    .entry((line.instance.clone(), task.clone()))
                    .or_default()
                    .insert(*token);
            }
        }
        seen
    }

    fn committed(&mut self, id: &str, task: &TaskName, token: Uuid) {
        self.0
            .entry((id.to_owned(), task.to_string()))
            .or_default()
            .insert(token);
    }

    fn committed_twice(&self) -> u64 {
        self.0.values().filter(|tokens| tokens.len() > 1).count() as u64
    }
}

/// Tasks that began more often than failures explain.
fn ran_twice(lines: &[Line]) -> u64 {
    let mut balance: HashMap<(&str, &str), i64> = HashMap::new();
    for line in lines {
        let entry = balance.entry((&line.instance, &line.task)).or_default();
        match line.phase {
            Phase::Begin => *entry += 1,
            Phase::Fail => *entry -= 1,
            Phase::End => {}
        }
    }
    balance.values().filter(|begun| **begun > 1).count() as u64
}

/// Tasks that began after the kill in an attempt which no failure explains: their claim was lost with the killed worker.
fn recovery(lines: &[Line], killed: Killed) -> Recovery {
    let mut failed: HashMap<(&str, &str), u32> = HashMap::new();
    for line in lines.iter().filter(|line| line.phase == Phase::Fail) {
        *failed.entry((&line.instance, &line.task)).or_default() += 1;
    }
    let mut again: HashMap<(&str, &str), u64> = HashMap::new();
    for line in lines
        .iter()
        .filter(|line| line.phase == Phase::Begin && line.at >= killed.at)
    {
        let key = (line.instance.as_str(), line.task.as_str());
        if line.attempt > 1 + failed.get(&key).copied().unwrap_or(0) {
            again.entry(key).or_insert(line.at);
        }
    }
    let last = again.values().max().copied().unwrap_or(killed.at);
    Recovery {
        tasks: again.len(),
        millis: last.saturating_sub(killed.at),
    }
}
