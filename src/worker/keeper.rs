//! The keeper's rounds: timers, recovery and retention, apart from the slots, so that a worker whose slots are all busy
//! keeps them on time.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::{bell::Bell, core::Core};
use crate::{
    backoff::Backoff,
    ids::Partition,
    rounds::{RoundSettings, Rounds, is_keeper},
    store::{Store, StoreError, TickReply},
};

/// What the keeper is told by hints.
#[derive(Debug, Default)]
pub(crate) struct KeeperNews {
    /// A timer is due before all others there.
    pub(crate) timers: HashSet<Partition>,
    /// The connection is new: heartbeats have to come before reaping.
    pub(crate) reconnected: bool,
}

pub(crate) type KeeperBell = Bell<KeeperNews>;

/// The role.
#[derive(Debug)]
pub(crate) struct Keeper {
    core: Arc<Core>,
    partitions: Vec<Kept>,
    /// Where the rotation over the partitions of others stands.
    turn: usize,
    next_turn: Instant,
    backoff: Backoff,
}

#[derive(Debug)]
struct Kept {
    partition: Partition,
    rounds: Rounds,
    keeper: bool,
    /// When it is looked at again whatever the rotation says: the keeper's interval, a timer, a bound that was hit.
    due: Option<Instant>,
}

impl Keeper {
    /// The most partitions that are kept at the full rate; beyond them rounds are spread.
    const MOST_SPREAD: u32 = 5;
    /// In how many turns all partitions of others are looked at.
    const TURNS: usize = 16;
    /// How many rounds are under way at once.
    const AT_ONCE: usize = 8;

    pub(crate) fn new(core: Arc<Core>) -> Self {
        let partitions = Partition::all(core.store.partitions())
            .map(|partition| Kept {
                partition,
                rounds: Rounds::new(partition),
                keeper: false,
                due: None,
            })
            .collect();
        Self {
            core,
            partitions,
            turn: 0,
            next_turn: Instant::now(),
            backoff: Backoff::new(),
        }
    }

    /// Until dropped.
    pub(crate) async fn run(mut self) {
        // Timers may have come due while nobody kept them.
        let now = Instant::now();
        for kept in &mut self.partitions {
            kept.rounds.begin();
            kept.due = Some(now);
        }
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(wake) => {}
                () = self.core.keeper.rung() => self.read_news(),
            }
            self.round().await;
        }
    }

    /// One round in every partition, for a worker that is driven by hand.
    pub(crate) async fn tick_all(&mut self) -> Result<Vec<TickReply>, StoreError> {
        let mut replies = Vec::new();
        for index in 0..self.partitions.len() {
            for (index, reply) in self.tick(&[index]).await {
                let reply = reply?;
                self.learn(index, &reply);
                replies.push(reply);
            }
        }
        Ok(replies)
    }

    fn read_news(&mut self) {
        let news = self.core.keeper.take();
        let now = Instant::now();
        let pause = self.core.config.heartbeat_interval();
        for kept in &mut self.partitions {
            if news.reconnected {
                kept.rounds.pause(pause);
            }
            if news.timers.contains(&kept.partition) {
                kept.due = Some(now);
            }
        }
    }

    fn next_wake(&self) -> Instant {
        self.partitions
            .iter()
            .filter_map(|kept| kept.due)
            .min()
            .map_or(self.next_turn, |due| due.min(self.next_turn))
    }

    /// Everything that is due now.
    async fn round(&mut self) {
        let now = Instant::now();
        let mut due: Vec<usize> = (0..self.partitions.len())
            .filter(|&i| self.partitions[i].due.is_some_and(|due| due <= now))
            .collect();
        if self.next_turn <= now {
            due.extend(self.take_turn());
            self.next_turn = now + self.turn_interval();
        }
        let mut wait = None;
        for (index, reply) in self.tick(&due).await {
            match reply {
                Ok(reply) => self.learn(index, &reply),
                Err(error) => {
                    let wait = *wait.get_or_insert_with(|| self.failed(index, &error));
                    self.partitions[index].due = Some(Instant::now() + wait);
                }
            }
        }
    }

    /// The next partitions in rotation that others keep: all of them in so many turns.
    fn take_turn(&mut self) -> Vec<usize> {
        let count = self.partitions.len();
        let mut others: Vec<usize> = (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(|&i| !self.partitions[i].keeper && self.partitions[i].due.is_none())
            .collect();
        others.truncate(count.div_ceil(Self::TURNS));
        self.turn = others.last().map_or(self.turn, |last| last + 1);
        others
    }

    /// A keeper looks at the partitions of others more rarely: it has its own.
    fn turn_interval(&self) -> Duration {
        let interval = self.core.config.reap_interval;
        if self.kept() > 0 {
            interval * 2
        } else {
            interval
        }
    }

    fn kept(&self) -> usize {
        self.partitions.iter().filter(|kept| kept.keeper).count()
    }

    /// How often a kept partition is looked at: with many of them more rarely, so that an idle worker stays quiet.
    fn own_interval(&self, kept: usize) -> Duration {
        let kept = u32::try_from(kept).unwrap_or(u32::MAX);
        self.core.config.reap_interval * kept.clamp(1, Self::MOST_SPREAD)
    }

    /// A round in each of these.
    async fn tick(&mut self, due: &[usize]) -> Vec<(usize, Result<TickReply, StoreError>)> {
        // It may come to keep all of them.
        let settings = self.settings(self.kept().max(due.len()));
        let store: &dyn Store = self.core.store.as_ref();
        let kept = self.partitions.iter_mut().enumerate();
        let rounds: Vec<_> = kept
            .filter(|(index, _)| due.contains(index))
            .map(|(index, kept)| {
                kept.rounds
                    .tick(store, &settings)
                    .map(move |reply| (index, reply))
            })
            .collect();
        futures_util::stream::iter(rounds)
            .buffer_unordered(Self::AT_ONCE)
            .collect()
            .await
    }

    fn learn(&mut self, index: usize, reply: &TickReply) {
        self.backoff.reset();
        self.core.health.heard();
        self.partitions[index].keeper = is_keeper(reply);
        let kept = self.kept();
        self.core.health.keeper_of.store(kept, Ordering::Relaxed);
        self.partitions[index].due = self.next_due(index, reply);
    }

    fn next_due(&self, index: usize, reply: &TickReply) -> Option<Instant> {
        let now = Instant::now();
        if reply.again {
            return Some(now);
        }
        if !self.partitions[index].keeper {
            return None;
        }
        let timer = reply.next_due.map(|due| now + due.since(reply.now));
        let regular = now + self.own_interval(self.kept());
        Some(timer.map_or(regular, |timer| timer.min(regular)))
    }

    /// How long to wait after a failure.
    fn failed(&mut self, index: usize, error: &StoreError) -> Duration {
        if self.backoff.is_fresh() {
            tracing::warn!(worker = %self.core.config.worker, partition = %self.partitions[index].partition, %error, "a keeper's round failed; it goes on");
        }
        self.backoff.delay()
    }

    fn settings(&self, kept: usize) -> RoundSettings {
        let config = &self.core.config;
        let keep = (self.own_interval(kept) * 3).max(Duration::from_secs(5));
        let reap = u32::try_from(config.reap_batch).unwrap_or(u32::MAX);
        RoundSettings {
            keeper: Some((config.worker.clone(), keep)),
            // What stays under a millisecond of the server; a full batch goes on at once.
            promote: 200,
            reap,
            prune: reap,
            crash_delay: config.crash_delay,
            ttl: config.claim_ttl,
            retention: config.retention,
            pause: config.heartbeat_interval(),
        }
    }
}
