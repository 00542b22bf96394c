//! Counts afterwards: a load whose counts are wrong has measured nothing.

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, ensure};
use tenure::{
    ids::Partition,
    store::{Counts, Inspect, Status, Store},
};
use tokio::time::Instant;

use super::place::Place;

/// How long nothing may happen before a load is given up.
const STALL: Duration = Duration::from_secs(60);
/// Finished instances that are read at a time.
const PAGE: usize = 10_000;

/// What must be there when a load is over and its workers have stopped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Expected {
    pub(crate) completed: u64,
    pub(crate) cancelled: u64,
    /// Entries of instances that were not meant to be drained.
    pub(crate) ready: u64,
    /// Timers that were not meant to end.
    pub(crate) delayed: u64,
}

/// Counts over all partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) completed: u64,
    cancelled: u64,
    failed: u64,
    pub(crate) ready: u64,
    pub(crate) delayed: u64,
    pub(crate) running: u64,
    waiting: u64,
    paused: u64,
    aside: u64,
}

impl Found {
    /// Asks the store.
    pub(crate) async fn now(place: &Place) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for partition in Partition::all(place.store.partitions()) {
            found.add(&place.store.counts(partition).await?);
        }
        Ok(found)
    }

    fn add(&mut self, counts: &Counts) {
        let finished = |status| counts.finished.get(&status).copied().unwrap_or(0) as u64;
        self.completed += finished(Status::Completed);
        self.cancelled += finished(Status::Cancelled);
        self.failed += finished(Status::Failed) + finished(Status::Terminated);
        self.ready += counts.ready.values().sum::<usize>() as u64;
        self.delayed += counts.delayed as u64;
        self.running += counts.running as u64;
        self.waiting += counts.waiting as u64;
        self.paused += counts.paused as u64;
        self.aside += counts.aside as u64;
    }
}

/// Waits until so many instances are completed, looking often. Fails if nothing happens for a minute.
pub(crate) async fn until_completed(place: &Place, count: u64) -> anyhow::Result<()> {
    until(place, Duration::from_millis(2), |found| {
        found.completed >= count
    })
    .await
    .with_context(|| format!("not all of {count} instances completed"))
}

/// Waits until the counts are as wanted.
pub(crate) async fn until(
    place: &Place,
    every: Duration,
    wanted: impl Fn(&Found) -> bool,
) -> anyhow::Result<()> {
    let mut last = (Found::default(), Instant::now());
    loop {
        let found = Found::now(place).await?;
        if wanted(&found) {
            return Ok(());
        }
        if found != last.0 {
            last = (found, Instant::now());
        }
        ensure!(
            last.1.elapsed() < STALL,
            "nothing happened for {STALL:?}: {found:?}"
        );
        tokio::time::sleep(every).await;
    }
}

/// Compares what is there with what must be there: every instance over exactly once, nothing held, nothing forgotten.
pub(crate) async fn counts(place: &Place, expected: Expected) -> anyhow::Result<()> {
    let found = Found::now(place).await?;
    let wanted = Found {
        completed: expected.completed,
        cancelled: expected.cancelled,
        ready: expected.ready,
        delayed: expected.delayed,
        ..Found::default()
    };
    ensure!(
        found == wanted,
        "the counts are wrong: there should be {wanted:?}, and there is {found:?}"
    );
    distinct(place, expected.completed).await?;
    claim_keys(place).await
}

/// Each instance stands once in the index of completed ones.
async fn distinct(place: &Place, completed: u64) -> anyhow::Result<()> {
    let mut ids = HashSet::new();
    for partition in Partition::all(place.store.partitions()) {
        let mut offset = 0;
        loop {
            let page = place
                .store
                .finished(partition, Status::Completed, offset, PAGE)
                .await?;
            offset += page.len();
            let over = page.len() < PAGE;
            ids.extend(page.into_iter().map(|finished| finished.id));
            if over {
                break;
            }
        }
    }
    ensure!(
        ids.len() as u64 == completed,
        "{completed} completions are of {} instances: some completed twice",
        ids.len()
    );
    Ok(())
}

/// No claim key is left.
async fn claim_keys(place: &Place) -> anyhow::Result<()> {
    let pattern = format!("{{{}:*}}:claim:*", place.namespace);
    for node in &place.nodes {
        let mut node = node.clone();
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<String>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(PAGE)
                .query_async(&mut node)
                .await?;
            if let Some(key) = keys.first() {
                anyhow::bail!("a claim is left: {key}");
            }
            if next == 0 {
                break;
            }
            cursor = next;
        }
    }
    Ok(())
}

/// Handlers ran as often as there are tasks.
pub(crate) fn runs(ran: u64, tasks: u64) -> anyhow::Result<()> {
    ensure!(
        ran == tasks,
        "{tasks} tasks should have run once each, and handlers ran {ran} times"
    );
    Ok(())
}
