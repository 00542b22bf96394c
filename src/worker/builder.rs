use std::{any::Any, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{catalog::Catalog, config::Config, core::Core, life::Worker};
use crate::{
    ids::{IdError, QueueName, WorkerId, WorkflowName},
    options::OptionError,
    store::{IntoStore, Retention, Store},
    task::{ErasedHandler, Layer, Middleware, States, TaskContext, TaskError},
    workflow::{AnyWorkflow, Graph},
};

/// Why a worker cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerBuildError {
    /// There is nothing it could run.
    #[error("a worker needs at least one workflow; add it with workflow(..)")]
    NoWorkflow,
    /// One definition was given twice.
    #[error("workflow `{workflow}` was given twice with the same definition; give it once")]
    Twice {
        /// The workflow.
        workflow: WorkflowName,
    },
    /// The queues leave nothing to do.
    #[error("none of the worker's workflows uses the queues {queues:?}; they use {used:?}")]
    NoList {
        /// What was asked for.
        queues: Vec<QueueName>,
        /// What the workflows use.
        used: Vec<QueueName>,
    },
    /// A number or a duration is out of range.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// An id or a name is not allowed.
    #[error(transparent)]
    Id(#[from] IdError),
}

/// Builds a [`Worker`].
#[must_use = "a builder does nothing until build()"]
pub struct WorkerBuilder {
    store: Arc<dyn Store>,
    config: Config,
    workflows: Vec<AnyWorkflow>,
    queues: Vec<QueueName>,
    states: States,
    layers: Vec<Arc<dyn Layer>>,
    invalid: Option<IdError>,
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBuilder")
            .field("config", &self.config)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl WorkerBuilder {
    pub(super) fn new(store: impl IntoStore) -> Self {
        Self {
            store: store.into_store(),
            config: Config::new(),
            workflows: Vec::new(),
            queues: Vec::new(),
            states: States::default(),
            layers: Vec::new(),
            invalid: None,
        }
    }

    /// The worker's id: 1 to 30 characters of `A-Z a-z 0-9 _ . -`. It must be new for each start of a process: two
    /// workers with one id take each other for one. Default: machine, process and a random part.
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        match WorkerId::new(id) {
            Ok(id) => self.config.worker = id,
            Err(error) => self.invalid = self.invalid.or(Some(error)),
        }
        self
    }

    /// A workflow whose tasks it runs. At least one; another version of the same name is another workflow.
    pub fn workflow(mut self, workflow: impl Into<AnyWorkflow>) -> Self {
        self.workflows.push(workflow.into());
        self
    }

    /// Several workflows, as [`WorkerBuilder::workflow`] takes one.
    pub fn workflows<W: Into<AnyWorkflow>>(
        mut self,
        workflows: impl IntoIterator<Item = W>,
    ) -> Self {
        self.workflows.extend(workflows.into_iter().map(Into::into));
        self
    }

    /// A workflow of which only the structure is here: all its tasks go to one function, with the task's context and its
    /// payload as MessagePack. For code that is not in this process, or not in Rust. It takes the same path as typed
    /// handlers: retries, timeouts, cancellation and panics are the same.
    pub fn external<F, Fut, E>(self, graph: Arc<Graph>, execute: F) -> Self
    where
        F: Fn(TaskContext, Bytes) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Bytes, E>> + Send + 'static,
        E: Into<TaskError>,
    {
        let handler: Arc<dyn ErasedHandler> = Arc::new(External(execute));
        self.workflow(AnyWorkflow::external(graph, &handler))
    }

    /// The only queues it takes tasks from. Default: all that its workflows use.
    pub fn queues<Q: AsRef<str>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        for queue in queues {
            match QueueName::new(queue) {
                Ok(queue) => self.queues.push(queue),
                Err(error) => self.invalid = self.invalid.or(Some(error)),
            }
        }
        self
    }

    /// Something that handlers share, found by its type with `ctx.state::<T>()`: a pool, a client, a configuration. A
    /// second value of one type takes the place of the first. Default: nothing.
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.states.insert(state);
        self
    }

    /// Something that stands around all handlers of the worker. Of several the first one added is the outermost.
    /// Default: nothing.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.layers.push(Arc::new(middleware));
        self
    }

    /// How many tasks run at once, 1 to 100 000. Default: 100.
    ///
    /// A task whose handler has ended leaves its slot to the next one while its outcome is on its way, so that a worker holds
    /// more claims than it has slots: by no more than two calls with outcomes hold, for each partition. Handlers that mostly
    /// wait for others are run fastest by a runtime of one thread (docs/benchmarks.md has figures).
    pub fn concurrency(mut self, slots: usize) -> Self {
        self.config.concurrency = slots;
        self
    }

    /// How long a claim outlives its last heartbeat, from 50 ms to a day: what a crash costs in time, and what an outage of
    /// the store may last before others may run the tasks again. Heartbeats come at a third of it. Default: 30 s.
    pub fn claim_ttl(mut self, ttl: Duration) -> Self {
        self.config.claim_ttl = ttl;
        self
    }

    /// How often an idle worker looks for tasks by itself, should a hint get lost, from 10 ms to 5 s. Default: 5 s.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = interval;
        self
    }

    /// How long running tasks may go on after a shutdown; then they are dropped and given back. Up to a day.
    /// Default: 30 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.drain_timeout = timeout;
        self
    }

    /// How long a handler may go on after its instance was cancelled and its token told it so; then it is dropped. Up to a
    /// day. Default: 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.config.cancel_grace = grace;
        self
    }

    /// The most tasks of one claim call, 1 to 256; never more than there are free slots, or than half of all slots. Default:
    /// 256.
    pub fn max_batch(mut self, tasks: usize) -> Self {
        self.config.max_batch = tasks;
        self
    }

    /// How often timers, expired claims and old instances are looked at, from 10 ms to an hour; a timer that is known to
    /// be due sooner is on time in any case. Default: 1 s.
    pub fn reap_interval(mut self, interval: Duration) -> Self {
        self.config.reap_interval = interval;
        self
    }

    /// The most expired claims, and the most old instances, of one look, 1 to 1000; it goes on at once while there are
    /// more. Default: 100.
    pub fn reap_batch(mut self, claims: usize) -> Self {
        self.config.reap_batch = claims;
        self
    }

    /// How long a task waits after its second crash, doubled with each further one up to 60 s, from 1 ms to 60 s; after
    /// the first it is ready at once. Default: 1 s.
    pub fn crash_delay(mut self, delay: Duration) -> Self {
        self.config.crash_delay = delay;
        self
    }

    /// How long finished instances are kept. Default: [`Retention::default`].
    pub fn retention(mut self, retention: Retention) -> Self {
        self.config.retention = retention;
        self
    }

    /// Heartbeats from the worker's own runtime instead of a thread, for simulations on one thread with paused time. A
    /// handler that blocks this thread stops them.
    #[cfg(feature = "testing")]
    pub fn heartbeats_inline(mut self) -> Self {
        self.config.heartbeats = super::config::Heartbeats::WorkersRuntime;
        self
    }

    /// The worker. Nothing is sent to the store yet.
    ///
    /// # Errors
    /// [`WorkerBuildError`] says what is wrong and what is allowed.
    pub fn build(self) -> Result<Worker, WorkerBuildError> {
        if let Some(invalid) = self.invalid {
            return Err(invalid.into());
        }
        self.config.check()?;
        let catalog = Catalog::new(self.workflows, &self.queues)?;
        let (core, inboxes) =
            Core::new(self.store, self.config, catalog, (self.states, self.layers));
        Ok(Worker::new(Arc::new(core), inboxes))
    }
}

/// One function for all tasks of a workflow.
struct External<F>(F);

impl<F, Fut, E> ErasedHandler for External<F>
where
    F: Fn(TaskContext, Bytes) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Bytes, E>> + Send + 'static,
    E: Into<TaskError>,
{
    fn run(&self, context: TaskContext, input: Bytes) -> BoxFuture<'_, Result<Bytes, TaskError>> {
        let work = (self.0)(context, input);
        Box::pin(async move { work.await.map_err(Into::into) })
    }
}
