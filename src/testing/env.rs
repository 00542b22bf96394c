//! Tests of a user's workflows: the real worker on a store in memory, with a clock that skips.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;

use crate::{
    client::{Client, ClientError, Handle},
    ids::{InstanceId, Partition, TaskName},
    store::{Inspect, Retention, StoreError, memory::MemoryStore},
    task::{Middleware, Next, TaskContext, TaskError},
    time::{Clock, Timestamp},
    worker::{Worker, WorkerBuildError, WorkerBuilder, WorkerHandle},
    workflow::{AnyWorkflow, Startable},
};

/// When the tests take place: 2026-01-01, midnight.
const BEGIN: i64 = 1_767_225_600_000;
/// Long enough for everything that is ready to run.
const MOMENT: Duration = Duration::from_millis(2);
/// How far time goes at once while a handler runs, which may have timers of its own.
const STRIDE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A worker, a client and a store for the test of a workflow, whose time the test moves: a wait of a month takes no time.
///
/// Needs a runtime of one thread with paused time: `#[tokio::test(start_paused = true)]`, with tokio's feature
/// `test-util`. Nothing but the clock is simulated: retries, timeouts, delays and signals go the way they go in
/// production. Claims hold for a day and finished instances are kept for ten years, so that neither disturbs a test.
///
/// ```
/// use std::time::Duration;
/// use tenure::{Workflow, testing::TestEnv};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> anyhow::Result<()> {
/// let trial = Workflow::builder("trial")
///     .task("welcome", async |name: String| anyhow::Ok(name))
///     .delay("month", Duration::from_secs(30 * 24 * 3600))
///     .task("bill", async |name: String| anyhow::Ok(format!("a bill for {name}")))
///     .build()?;
/// let env = TestEnv::new(&trial)?;
/// let handle = env.start(&trial, "Ada".to_owned()).await?;
/// assert_eq!(env.order(), ["welcome"]);
/// env.advance(Duration::from_secs(30 * 24 * 3600)).await?;
/// assert_eq!(env.order(), ["welcome", "bill"]);
/// assert_eq!(handle.result().await?, "a bill for Ada");
/// # Ok(())
/// # }
/// ```
pub struct TestEnv {
    store: MemoryStore,
    clock: Clock,
    client: Client,
    worker: WorkerHandle,
    attempts: Attempts,
}

/// An attempt at a task that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The instance.
    pub id: InstanceId,
    /// The task.
    pub task: TaskName,
    /// Which attempt at the task in this run.
    pub attempt: u32,
    /// When it began.
    pub at: Timestamp,
}

impl fmt::Debug for TestEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestEnv")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

impl TestEnv {
    /// An environment with a worker for one workflow.
    ///
    /// # Errors
    /// As [`WorkerBuilder::build`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(workflow: impl Into<AnyWorkflow>) -> Result<Self, WorkerBuildError> {
        Self::with(|worker| worker.workflow(workflow))
    }

    /// An environment with a worker that is built here: several workflows, shared state, middleware.
    ///
    /// # Errors
    /// As [`WorkerBuilder::build`].
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn with(
        build: impl FnOnce(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<Self, WorkerBuildError> {
        let clock = Clock::simulated(Timestamp::from_millis(BEGIN));
        let store = MemoryStore::with_clock(clock.clone());
        let attempts = Attempts::default();
        let recorder = Recorder {
            clock: clock.clone(),
            attempts: attempts.clone(),
        };
        let kept = 3650 * DAY;
        let worker = Worker::builder(store.clone())
            .id("test")
            .heartbeats_inline()
            .claim_ttl(DAY)
            .reap_interval(Duration::from_secs(3600))
            .retention(Retention {
                completed: kept,
                failed: kept,
                cancelled: kept,
            })
            .middleware(recorder);
        let worker = build(worker).build()?.spawn();
        Ok(Self {
            client: Client::new(store.clone()),
            store,
            clock,
            worker,
            attempts,
        })
    }

    /// Starts an instance, and lets everything run that is ready. For ids, labels and the like use [`TestEnv::client`],
    /// and [`TestEnv::settle`] behind it.
    ///
    /// # Errors
    /// As [`Client::start`].
    pub async fn start<S: Startable>(
        &self,
        workflow: &S,
        input: S::Input,
    ) -> Result<Handle<S::Output>, ClientError>
    where
        S::Input: Serialize,
        S::Output: 'static,
    {
        let handle = self.client.start(workflow, input).await?;
        self.settle().await;
        Ok(handle)
    }

    /// Sends a signal to a run, and lets everything run that is ready then.
    ///
    /// # Errors
    /// As [`Handle::signal`].
    pub async fn signal<O, P: Serialize + Sync + ?Sized>(
        &self,
        handle: &Handle<O>,
        name: &str,
        payload: &P,
    ) -> Result<(), ClientError> {
        handle.signal(name, payload).await?;
        self.settle().await;
        Ok(())
    }

    /// Lets everything run that is ready now. Takes a few milliseconds of the test's time.
    pub async fn settle(&self) {
        // Paused time goes on only when nothing else can.
        tokio::time::sleep(MOMENT).await;
    }

    /// Moves time, from timer to timer: what is due on the way runs at its time, and in its order. While a handler runs
    /// time goes on in short steps, since it may sleep itself.
    ///
    /// # Errors
    /// The store's; a store in memory has none.
    pub async fn advance(&self, by: Duration) -> Result<(), StoreError> {
        let end = self.now().plus(by);
        self.settle().await;
        while self.now() < end {
            let now = self.now();
            let due = self.store.delayed(Partition::default(), 1).await?;
            let due = due.first().map_or(end, |(_, due)| (*due).min(end));
            let gap = due.since(now).max(Duration::from_millis(1));
            if self.worker.health().running > 0 {
                tokio::time::sleep(gap.min(STRIDE)).await;
            } else {
                tokio::time::advance(gap).await;
                self.settle().await;
            }
        }
        Ok(())
    }

    /// The time of the store.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How many attempts at a task were begun, in all instances.
    #[must_use]
    pub fn attempts(&self, task: &str) -> usize {
        let attempts = self.attempts.lock();
        attempts.iter().filter(|a| a.task.as_str() == task).count()
    }

    /// The tasks in the order in which their attempts were begun, in all instances.
    #[must_use]
    pub fn order(&self) -> Vec<String> {
        let attempts = self.attempts.lock();
        attempts.iter().map(|a| a.task.to_string()).collect()
    }

    /// All attempts that were begun, in their order.
    #[must_use]
    pub fn history(&self) -> Vec<Attempt> {
        self.attempts.lock().clone()
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &MemoryStore {
        &self.store
    }
}

#[derive(Debug, Clone, Default)]
struct Attempts(Arc<Mutex<Vec<Attempt>>>);

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes down what begins.
struct Recorder {
    clock: Clock,
    attempts: Attempts,
}

impl Middleware for Recorder {
    async fn handle(
        &self,
        ctx: TaskContext,
        input: Bytes,
        next: Next<'_>,
    ) -> Result<Bytes, TaskError> {
        self.attempts.lock().push(Attempt {
            id: ctx.instance().clone(),
            task: ctx.task().clone(),
            attempt: ctx.attempt(),
            at: self.clock.now(),
        });
        next.run(ctx, input).await
    }
}
