use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::notebook::{Notebook, StateError};
use crate::{
    codec,
    ids::{IdError, InstanceId, RunId, SharedKey, TaskName, ValueField, WorkflowName},
};

/// What a handler may know about its attempt, and how it learns that it should stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TaskContext(Arc<ContextParts>);

/// All that a [`TaskContext`] is made of.
///
/// A worker makes one for each attempt; tests that call a handler by hand start from [`ContextParts::for_test`] and set
/// what they need.
#[derive(Debug)]
#[non_exhaustive]
pub struct ContextParts {
    /// The name of the workflow.
    pub workflow: WorkflowName,
    /// The instance.
    pub instance: InstanceId,
    /// Its run.
    pub run: RunId,
    /// The task.
    pub task: TaskName,
    /// How often the task was claimed in this run, this time included.
    pub attempt: u32,
    /// How often it failed before.
    pub failures: u32,
    /// How many failures end it.
    pub max_attempts: u32,
    /// Grows when the store lost history.
    pub epoch: u64,
    /// When this attempt is over.
    pub deadline: Option<Instant>,
    /// Cancelled when the handler should stop.
    pub cancellation: CancellationToken,
    /// What the worker shares with its handlers.
    pub states: Arc<States>,
    /// The span of the attempt.
    pub span: Span,
    /// Where it writes down.
    pub(crate) notebook: Notebook,
}

impl ContextParts {
    pub(crate) fn new(
        workflow: WorkflowName,
        instance: InstanceId,
        run: RunId,
        task: TaskName,
    ) -> Self {
        Self {
            workflow,
            instance,
            run,
            task,
            attempt: 1,
            failures: 0,
            max_attempts: 1,
            epoch: 0,
            deadline: None,
            cancellation: CancellationToken::new(),
            states: Arc::default(),
            span: Span::none(),
            notebook: Notebook::default(),
        }
    }

    /// For a test that calls a handler by hand: the first and only attempt at `task` of an instance of a workflow `test`,
    /// without deadline and shared state.
    ///
    /// # Errors
    /// [`IdError::Name`] when `task` is not a valid name.
    pub fn for_test(task: impl AsRef<str>) -> Result<Self, IdError> {
        Ok(Self::new(
            WorkflowName::new("test")?,
            InstanceId::unique(),
            RunId::unique(),
            TaskName::new(task)?,
        ))
    }
}

impl TaskContext {
    /// A context of these parts.
    #[must_use]
    pub fn new(parts: ContextParts) -> Self {
        Self(Arc::new(parts))
    }

    /// For a test that calls a handler by hand, as [`ContextParts::for_test`] describes.
    ///
    /// # Errors
    /// [`IdError::Name`] when `task` is not a valid name.
    pub fn for_test(task: impl AsRef<str>) -> Result<Self, IdError> {
        ContextParts::for_test(task).map(Self::new)
    }

    /// The name of the workflow.
    #[must_use]
    pub fn workflow(&self) -> &WorkflowName {
        &self.0.workflow
    }

    /// The instance.
    #[must_use]
    pub fn instance(&self) -> &InstanceId {
        &self.0.instance
    }

    /// The run of the instance: another one after the id was started again.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.0.run
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> &TaskName {
        &self.0.task
    }

    /// How often the task was claimed in this run: 1 for the first time. Attempts that ended with the death of a worker,
    /// or were given back at a shutdown, count here.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// How often the task failed before; what [`TaskContext::max_attempts`] bounds.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.0.failures
    }

    /// How many failures end the task.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.0.max_attempts
    }

    /// Whether a failure of this attempt, unless it says otherwise, ends the task.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.0.failures.saturating_add(1) >= self.0.max_attempts
    }

    /// A token for other systems: of two fences of one task, one with a greater epoch, and within an epoch and a run one
    /// with a greater attempt, is the younger. A system that keeps the youngest it saw can refuse a late writer.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence {
            epoch: self.0.epoch,
            run: self.0.run,
            attempt: self.0.attempt,
        }
    }

    /// `<run>/<task>`: the same for all attempts at this task in this run, different for every other task and run. For
    /// systems that take an idempotency key.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.0.run, self.0.task)
    }

    /// When this attempt is over: the earlier of its timeout and the task's deadline. The handler's future is dropped
    /// then.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// How long this attempt may still take; zero if it is over, `None` if nothing bounds it.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.0
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Cancelled when the instance is cancelled, when the claim is lost, at the deadline, and when the worker shuts down
    /// and its grace period is over. The future of the handler is dropped soon after; what runs elsewhere
    /// (`spawn_blocking`, own threads) has only this token to learn from.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// What the worker shares with its handlers under this type; `None` if it has nothing of this type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.states.get()
    }

    /// Says how far the task is: any value, of at most 64 KiB. It can be read by [`Handle::progress`], and by later
    /// attempts of the task with [`TaskContext::last_progress`], while the instance is kept.
    ///
    /// Costs the handler nothing: the last value is sent at most once a second, and before the task is settled, whatever
    /// its outcome. A worker that dies loses what was said in its last second.
    ///
    /// [`Handle::progress`]: crate::Handle::progress
    ///
    /// # Errors
    /// [`StateError::TooLarge`], [`StateError::Codec`].
    pub fn progress<T: Serialize>(&self, value: &T) -> Result<(), StateError> {
        let field = ValueField::Progress(self.0.task.clone());
        let value = encoded(&field, value)?;
        self.0.notebook.progress(field, value)
    }

    /// What this task said last of its progress, in this attempt or one before it; `None` if it said nothing. The store
    /// is asked each time. A retry of a failed instance forgets it for the tasks behind those that begin again.
    ///
    /// # Errors
    /// [`StateError::Codec`] when it is of another type, [`StateError::Store`]; a store that is away is waited for.
    pub async fn last_progress<T: DeserializeOwned>(&self) -> Result<Option<T>, StateError> {
        self.read(ValueField::Progress(self.0.task.clone())).await
    }

    /// Sets a value that all tasks of the instance can read, and that [`Handle::shared`] shows: of at most 64 KiB, under a
    /// key of 1 to 64 characters of `A-Z a-z 0-9 _ . -`, and 64 of them for an instance. The last one set is kept.
    ///
    /// When it returns, the value is stored; should the worker die before the task is settled, it stays. If the future is
    /// dropped, it is stored or not. A worker that lost the task changes nothing.
    ///
    /// [`Handle::shared`]: crate::Handle::shared
    ///
    /// # Errors
    /// All of [`StateError`]; a store that is away is waited for.
    pub async fn set<T: Serialize + Sync>(
        &self,
        key: impl AsRef<str> + Send,
        value: &T,
    ) -> Result<(), StateError> {
        let key = SharedKey::new(key)?;
        let value = encoded(&ValueField::Shared(key.clone()), value)?;
        self.0.notebook.set(key, value).await
    }

    /// The value that a task of the instance has set under this key; `None` if none has. The store is asked each time.
    ///
    /// # Errors
    /// [`StateError::Key`], [`StateError::Codec`], [`StateError::Store`]; a store that is away is waited for.
    pub async fn get<T: DeserializeOwned>(
        &self,
        key: impl AsRef<str> + Send,
    ) -> Result<Option<T>, StateError> {
        let key = SharedKey::new(key)?;
        self.read(ValueField::Shared(key)).await
    }

    async fn read<T: DeserializeOwned>(&self, field: ValueField) -> Result<Option<T>, StateError> {
        let value = self.0.notebook.read(field.clone()).await?;
        let decoded = value.map(|value| codec::decode(&value)).transpose();
        decoded.map_err(|source| StateError::Codec {
            field,
            source: source.into(),
        })
    }

    /// The span of the attempt, to attach spawned work to.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.0.span
    }
}

fn encoded<T: Serialize>(field: &ValueField, value: &T) -> Result<Bytes, StateError> {
    codec::encode(value).map_err(|source| StateError::Codec {
        field: field.clone(),
        source: source.into(),
    })
}

/// Which attempt a side effect belongs to. See [`TaskContext::fence`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Grows when the store lost history (a failover to an older copy), so that attempts may be counted again.
    pub epoch: u64,
    /// The run.
    pub run: RunId,
    /// The attempt; only grows within a run.
    pub attempt: u32,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.epoch, self.run, self.attempt)
    }
}

/// What a worker shares with its handlers: at most one value of each type.
#[derive(Clone, Default)]
pub struct States(HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl States {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shares a value, in place of an earlier one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.insert_shared(Arc::new(value));
    }

    /// Shares a value that is shared already, in place of an earlier one of its type.
    pub fn insert_shared<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), value));
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.values().map(|(name, _)| name))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_found_by_its_type_and_the_last_of_a_type_counts() {
        let mut states = States::new();
        states.insert(1_u32);
        states.insert(2_u32);
        states.insert_shared(Arc::new("text"));
        let mut parts = ContextParts::for_test("a").unwrap();
        parts.states = Arc::new(states);
        let context = TaskContext::new(parts);
        assert_eq!(context.state::<u32>().as_deref(), Some(&2));
        assert_eq!(context.state::<&str>().as_deref(), Some(&"text"));
        assert_eq!(context.state::<u64>(), None);
    }

    #[test]
    fn the_idempotency_key_is_the_same_for_all_attempts_and_the_fence_is_not() {
        let first = ContextParts::for_test("charge").unwrap();
        let mut second = ContextParts::for_test("charge").unwrap();
        (second.run, second.attempt) = (first.run, 2);
        let (first, second) = (TaskContext::new(first), TaskContext::new(second));
        assert_eq!(first.idempotency_key(), format!("{}/charge", first.run()));
        assert_eq!(first.idempotency_key(), second.idempotency_key());
        assert_ne!(first.fence(), second.fence());
        let other_run = TaskContext::for_test("charge").unwrap();
        assert_ne!(first.idempotency_key(), other_run.idempotency_key());
    }

    #[tokio::test(start_paused = true)]
    async fn the_remaining_time_runs_down_to_zero() {
        let mut parts = ContextParts::for_test("a").unwrap();
        parts.deadline = Some(Instant::now() + Duration::from_secs(10));
        let context = TaskContext::new(parts);
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(context.remaining(), Some(Duration::from_secs(6)));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(context.remaining(), Some(Duration::ZERO));
        assert_eq!(TaskContext::for_test("a").unwrap().remaining(), None);
    }

    #[test]
    fn the_attempt_that_ends_the_task_is_the_last_one() {
        let mut parts = ContextParts::for_test("a").unwrap();
        (parts.attempt, parts.failures, parts.max_attempts) = (9, 1, 3);
        assert!(!TaskContext::new(parts).is_last());
        assert!(TaskContext::for_test("a").unwrap().is_last());
    }
}
