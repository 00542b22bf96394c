//! What each test has for itself: a server, a directory with its ledger and gates, and a client.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use redis::FromRedisValue;
use tempfile::TempDir;
use tenure::{
    Client, Handle, RedisStore, Workflow,
    ids::InstanceId,
    store::{Inspect, Snapshot, Status, TaskRecord},
};
use tenure_test_support::RedisServer;

use crate::{
    crew::Process,
    job::{self, Job, Kind},
    ledger::{Ledger, Line, Phase},
    program::Setup,
    wait,
};

/// The world of one test.
pub(crate) struct World {
    pub(crate) server: RedisServer,
    pub(crate) store: RedisStore,
    pub(crate) client: Client,
    pub(crate) ledger: Ledger,
    dir: TempDir,
    processes: AtomicUsize,
}

impl World {
    /// On a server that keeps nothing on disk.
    pub(crate) async fn new() -> Self {
        Self::on(RedisServer::start()).await
    }

    pub(crate) async fn on(server: RedisServer) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let store = RedisStore::connect(&server.url())
            .await
            .expect("the test's server can be used");
        let client = Client::new(store.clone());
        let ledger = Ledger::open(&dir.path().join("ledger"));
        Self {
            server,
            store,
            client,
            ledger,
            dir,
            processes: AtomicUsize::new(0),
        }
    }

    /// A worker of some workflows with a claim TTL, and with quick rounds.
    pub(crate) fn setup(&self, kinds: &[Kind], ttl: Duration) -> Setup {
        Setup {
            url: self.server.url(),
            ledger: self.ledger.path().to_owned(),
            kinds: kinds.to_vec(),
            ttl: u64::try_from(ttl.as_millis()).expect("a short time"),
            concurrency: 10,
            drain: 60_000,
            threads: 2,
            reap: 100,
            crash_delay: 10,
        }
    }

    /// Starts a worker process; it may take a moment until it works.
    pub(crate) fn spawn(&self, setup: &Setup) -> Process {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        Process::spawn(setup, &self.dir.path().join(format!("log-{number}")))
    }

    /// Starts a worker process and waits until it works.
    pub(crate) async fn worker(&self, setup: &Setup) -> Process {
        let mut process = self.spawn(setup);
        process.up().await;
        process
    }

    /// A worker process of one workflow.
    pub(crate) async fn worker_of(&self, kind: Kind, ttl: Duration) -> Process {
        self.worker(&self.setup(&[kind], ttl)).await
    }

    pub(crate) fn workflow(&self, kind: Kind) -> Workflow<Job, Job> {
        job::workflow(kind, &self.ledger)
    }

    /// A gate that is shut, by name.
    pub(crate) fn gate(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Opens a gate.
    pub(crate) fn open(&self, name: &str) {
        std::fs::write(self.gate(name), "").expect("a gate can be opened");
    }

    /// Starts an instance.
    pub(crate) async fn start(&self, kind: Kind, id: &str, job: Job) -> Handle<Job> {
        self.client
            .start(&self.workflow(kind), job)
            .id(id)
            .await
            .expect("a start")
    }

    /// Starts many, named by a prefix and their number, with a crash budget.
    pub(crate) async fn start_many(
        &self,
        kind: Kind,
        prefix: &str,
        count: usize,
        max_crashes: u32,
        job: impl Fn(usize) -> Job,
    ) -> Vec<Handle<Job>> {
        let starts = (0..count).map(|i| {
            tenure::Start::new(job(i))
                .id(format!("{prefix}-{i}"))
                .max_crashes(max_crashes)
        });
        let answers = self.client.start_many(&self.workflow(kind), starts).await;
        answers
            .into_iter()
            .map(|answer| answer.expect("a start"))
            .collect()
    }

    /// Waits until a handler of a task has begun, and returns its line.
    pub(crate) async fn begun(&self, instance: &str, task: &str, attempt: u32) -> Line {
        wait::until_some(
            &format!("attempt {attempt} of {instance} {task} begins"),
            async || {
                self.ledger
                    .of(Phase::Begin, instance, task)
                    .into_iter()
                    .find(|line| line.attempt == attempt)
            },
        )
        .await
    }

    /// How often a task was begun.
    pub(crate) fn executions(&self, instance: &str, task: &str) -> usize {
        self.ledger.of(Phase::Begin, instance, task).len()
    }

    /// Waits until an instance is over.
    pub(crate) async fn over(&self, handle: &Handle<Job>) -> Status {
        wait::until_some(&format!("{} is over", handle.id()), async || {
            handle
                .status()
                .await
                .ok()
                .filter(|status| status.is_terminal())
        })
        .await
    }

    /// All that is stored of an instance.
    pub(crate) async fn snapshot(&self, handle: &Handle<Job>) -> Snapshot {
        handle.snapshot().await.expect("the snapshot")
    }

    /// What is stored of a task.
    pub(crate) async fn record(&self, handle: &Handle<Job>, task: &str) -> TaskRecord {
        let mut snapshot = self.snapshot(handle).await;
        let found = snapshot
            .tasks
            .iter()
            .find(|(name, _)| name.as_str() == task)
            .map(|(name, _)| name.clone());
        found
            .and_then(|name| snapshot.tasks.remove(&name))
            .unwrap_or_else(|| panic!("no task {task} yet"))
    }

    /// The messages of failed attempts, newest first.
    pub(crate) async fn errors(&self, id: &InstanceId) -> Vec<tenure::store::ErrorRecord> {
        self.store.errors(id).await.expect("the errors")
    }

    /// Runs a command on the server.
    pub(crate) fn redis<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.server.run(words)
    }

    /// Whether the claim key of a task is there.
    pub(crate) fn has_claim_key(&self, instance: &str, task: &str) -> bool {
        self.redis(&["EXISTS", &claim_key(instance, task)])
    }

    /// The names of all claim keys.
    pub(crate) fn claim_keys(&self) -> Vec<String> {
        self.redis(&["KEYS", "{tenure:0}:claim:*"])
    }
}

/// The name of a claim key.
pub(crate) fn claim_key(instance: &str, task: &str) -> String {
    format!("{{tenure:0}}:claim:{instance}:{task}")
}
