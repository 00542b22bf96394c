//! One run: processes that live and die around a store.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use futures_util::StreamExt;
use tenure::{
    Client, Reaper, Worker, Workflow,
    store::{Event, Store},
    testing::{Check, FaultyStore, Ledger, Link},
    workflow::AnyWorkflow,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::{
    chaos::{Chaos, Time},
    clerk,
    handler::Process,
    producer,
    scenario::{Kind, Scenario},
    script::Line,
    shape::{self, Token},
};

/// All that the processes of one run need.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) ledger: Ledger,
    pub(crate) flows: Arc<Vec<Workflow<Token, Token>>>,
    pub(crate) tuning: Tuning,
    /// The run is over: workers are gone.
    pub(crate) over: CancellationToken,
}

/// The numbers of workers, and how long faults go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) ttl: Duration,
    pub(crate) poll: Duration,
    pub(crate) reap: Duration,
    pub(crate) drain: Duration,
    pub(crate) trouble: Duration,
}

impl Tuning {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let mut rng = Rng::with_seed(scenario.seed ^ 0x7a11);
        let mut millis = |least, most| Duration::from_millis(rng.u64(least..most));
        Self {
            ttl: millis(600, 3000),
            poll: millis(200, 1500),
            reap: millis(100, 600),
            drain: millis(0, 800),
            trouble: millis(8000, 16000),
        }
    }
}

const CRASH_DELAY: Duration = Duration::from_millis(100);

impl World {
    pub(crate) fn new(chaos: Arc<Chaos>, store: Arc<dyn Store>, tuning: Tuning) -> Self {
        let mut rng = Rng::with_seed(chaos.scenario.seed ^ 0x9ea9);
        let count = rng.usize(1..=2);
        let flows = (0..count).map(|i| shape::workflow(&mut rng, &format!("flow{i}")));
        Self {
            ledger: Ledger::in_memory().with_clock(chaos.ledger_clock.clone()),
            flows: Arc::new(flows.collect()),
            chaos,
            store,
            tuning,
            over: CancellationToken::new(),
        }
    }

    pub(crate) fn rng(&self, salt: u64) -> Rng {
        Rng::with_seed(self.chaos.scenario.seed.wrapping_mul(0x9e37_79b9) ^ salt)
    }

    pub(crate) fn check(&self) -> Check {
        let mut graphs = self.flows.iter().map(Workflow::graph);
        let first = graphs.next().expect("at least one workflow");
        let check = graphs.fold(Check::new(first), Check::and);
        match self.chaos.time() {
            Time::Simulated => check,
            // The store cuts its microseconds off.
            Time::Real => check.tolerance(Duration::from_millis(2)),
        }
    }

    /// The store as one process sees it.
    fn line(&self, name: &str) -> FaultyStore {
        let script = Line::new(&self.chaos, name, &self.ledger, self.tuning.ttl);
        FaultyStore::new(Arc::clone(&self.store), Link::new(script))
    }

    pub(crate) fn client(&self, name: &str) -> (Client, Arc<Link>) {
        let line = self.line(name);
        let link = Arc::clone(line.link());
        (Client::new(line), link)
    }

    /// Everything that goes on by itself.
    pub(crate) fn begin(&self) {
        let world = self.clone();
        tokio::spawn(async move { world.watch_events().await });
        for slot in 0..self.chaos.scenario.workers {
            let world = self.clone();
            tokio::spawn(async move { world.keep_a_worker(slot).await });
        }
        producer::begin(self);
        clerk::begin(self, producer::ids(self));
        if self.chaos.scenario.seed.is_multiple_of(3) {
            let world = self.clone();
            tokio::spawn(async move { world.keep_a_reaper().await });
        }
        let world = self.clone();
        tokio::spawn(async move { world.disturb().await });
    }

    /// A reaper besides those of the workers.
    async fn keep_a_reaper(&self) {
        for generation in 0.. {
            let line = self.line(&format!("r{generation}"));
            let link = Arc::clone(line.link());
            let reaper = Reaper::builder(line)
                .interval(2 * self.tuning.reap)
                .outage_pause(self.tuning.ttl / 3)
                .crash_delay(CRASH_DELAY)
                .build()
                .expect("a valid reaper");
            let life = tokio::spawn(async move { reaper.run(CancellationToken::new()).await });
            while !link.is_dead() {
                sleep(Duration::from_millis(200)).await;
                if self.over.is_cancelled() {
                    link.kill();
                } else if self.chaos.is_healed() {
                    link.heal();
                }
            }
            life.abort();
            if self.over.is_cancelled() {
                return;
            }
        }
    }

    async fn watch_events(&self) {
        let mut events = self.store.events().await.expect("events of a whole store");
        while let Some(event) = events.next().await {
            if let Event::Changed(event) = event {
                self.ledger.event(&event).expect("a ledger in memory");
            }
        }
    }

    /// Outages and steps of the clock.
    async fn disturb(&self) {
        let mut rng = self.rng(0xd157);
        loop {
            sleep(Duration::from_millis(rng.u64(500..5000))).await;
            if self.chaos.is_healed() {
                return;
            }
            match rng.u8(0..4) {
                0 if self.chaos.scenario.has(Kind::Outage) => {
                    self.chaos.outage(Duration::from_millis(rng.u64(100..4000)));
                }
                1 if self.chaos.scenario.has(Kind::ClockStep) => {
                    self.chaos.step(rng.i64(-5000..8000));
                }
                _ => {}
            }
        }
    }

    /// One worker after the other in one place: each lives until it dies or is told to go.
    async fn keep_a_worker(&self, slot: usize) {
        let mut rng = self.rng(0x3a3a + slot as u64);
        for generation in 0.. {
            if self.over.is_cancelled() {
                return;
            }
            let name = format!("w{slot}.{generation}");
            self.live(&name, &mut rng).await;
            let healed = self.chaos.is_healed();
            let gap = if healed { 100 } else { rng.u64(10..2500) };
            sleep(Duration::from_millis(gap)).await;
        }
    }

    async fn live(&self, name: &str, rng: &mut Rng) {
        let line = self.line(name);
        let link = Arc::clone(line.link());
        let worker = self.worker(name, line, rng.usize(1..5));
        let goes_after = Duration::from_millis(rng.u64(1000..20_000));
        self.chaos.note(name, &|| "a worker begins".into());
        let token = CancellationToken::new();
        let life = tokio::spawn(worker.run(token.clone()));
        let begin = Instant::now();
        while !life.is_finished() && !link.is_dead() {
            sleep(Duration::from_millis(100)).await;
            if self.over.is_cancelled() {
                link.kill();
            } else if self.chaos.is_healed() {
                link.heal();
            } else if begin.elapsed() > goes_after && !token.is_cancelled() {
                self.chaos.note(name, &|| "the worker is told to go".into());
                self.chaos.gone(name);
                token.cancel();
            }
        }
        self.chaos.note(name, &|| "the worker is gone".into());
        self.chaos.gone(name);
        link.kill();
        life.abort();
    }

    fn worker(&self, name: &str, line: FaultyStore, slots: usize) -> Worker {
        let process = Process {
            name: name.to_owned(),
            chaos: Arc::clone(&self.chaos),
            link: Arc::clone(line.link()),
            ledger: self.ledger.clone(),
        };
        let builder = match self.chaos.time() {
            Time::Simulated => Worker::builder(line).heartbeats_inline(),
            Time::Real => Worker::builder(line),
        };
        builder
            .id(name)
            .workflows(self.flows.iter().map(AnyWorkflow::from))
            .state(process)
            .concurrency(slots)
            .claim_ttl(self.tuning.ttl)
            .poll_interval(self.tuning.poll)
            .reap_interval(self.tuning.reap)
            .drain_timeout(self.tuning.drain)
            .crash_delay(CRASH_DELAY)
            .cancel_grace(Duration::from_millis(200))
            .build()
            .expect("a valid worker")
    }

    /// What holds at all times.
    pub(crate) async fn check_always(&self) {
        let history = self.ledger.history();
        let check = self.check();
        let store = self.store.as_ref();
        let always = check.always(store, &history).await.expect("a whole store");
        let causes = check.causes(store, &history).await.expect("a whole store");
        for violation in always.into_iter().chain(causes) {
            self.chaos.violation(violation.to_string());
        }
    }
}
