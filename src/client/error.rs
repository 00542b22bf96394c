use std::{sync::Arc, time::Duration};

use crate::{
    codec::CodecError,
    ids::{
        DefinitionHash, IdError, InstanceId, RunId, SignalId, SignalName, TaskName, ValueField,
        WorkflowName,
    },
    store::{ErrorRecord, SignalRequest, Status, StoreError},
};

/// Why a client could not do what it was asked. Each says what can be done about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no such instance: it was never started, or it is over and its retention has passed.
    #[error(
        "there is no instance `{id}`; it was never started, or was removed after its retention"
    )]
    NotFound {
        /// The instance.
        id: InstanceId,
    },
    /// A start was refused because its id is taken.
    #[error(
        "instance `{id}` exists already ({status}, run {run}); choose another id, or say what is to happen then: if_exists(..) of a start, --if-exists of the command line"
    )]
    AlreadyExists {
        /// The instance.
        id: InstanceId,
        /// The run that is there.
        run: RunId,
        /// Its status.
        status: Status,
    },
    /// The id was started anew after this handle was made.
    #[error(
        "run {run} of instance `{id}` was replaced by a later start; use handle(\"{id}\") for the new one"
    )]
    Replaced {
        /// The instance.
        id: InstanceId,
        /// The run of this handle.
        run: RunId,
    },
    /// The payload is over the store's limit; nothing was sent.
    #[error(
        "the input of `{id}` has {size} bytes, the limit is {limit}; store large data elsewhere and pass its address, or raise `max_payload`"
    )]
    TooLarge {
        /// The instance.
        id: InstanceId,
        /// The size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The input cannot be written as a payload.
    #[error("the input of `{id}` cannot be stored: {source}")]
    Input {
        /// The instance.
        id: InstanceId,
        /// Why.
        source: Arc<CodecError>,
    },
    /// The result is not of the type that was asked for; it stays stored, `result_bytes()` returns it as it is.
    #[error("the result of `{id}` has another type: {source}; result_bytes() returns it undecoded")]
    WrongType {
        /// The instance.
        id: InstanceId,
        /// What the decoder said.
        source: Arc<CodecError>,
    },
    /// A stored value of the instance is not of the type that was asked for; it stays stored.
    #[error(
        "`{field}` of `{id}` has another type: {source}; ask for the type that its task stores"
    )]
    WrongValue {
        /// The instance.
        id: InstanceId,
        /// Which value.
        field: ValueField,
        /// What the decoder said.
        source: Arc<CodecError>,
    },
    /// The instance failed.
    #[error("instance `{id}` failed in task `{task}`, attempt {attempt}: {message}", task = error.task, attempt = error.attempt, message = error.message)]
    Failed {
        /// The instance.
        id: InstanceId,
        /// The last error.
        error: Box<ErrorRecord>,
    },
    /// The instance was cancelled.
    #[error("instance `{id}` was cancelled by {}: {}", actor.as_deref().unwrap_or("somebody"), reason.as_deref().unwrap_or("no reason given"))]
    Cancelled {
        /// The instance.
        id: InstanceId,
        /// Why.
        reason: Option<String>,
        /// By whom.
        actor: Option<String>,
    },
    /// The instance was terminated.
    #[error("instance `{id}` was terminated by {}: {}", actor.as_deref().unwrap_or("somebody"), reason.as_deref().unwrap_or("no reason given"))]
    Terminated {
        /// The instance.
        id: InstanceId,
        /// Why.
        reason: Option<String>,
        /// By whom.
        actor: Option<String>,
    },
    /// The instance is over and cannot be steered any more.
    #[error("instance `{id}` is over already: {status}")]
    Over {
        /// The instance.
        id: InstanceId,
        /// How it ended.
        status: Status,
    },
    /// The instance is paused already.
    #[error("instance `{id}` is paused already; resume it, or leave it as it is")]
    AlreadyPaused {
        /// The instance.
        id: InstanceId,
    },
    /// To delete: the instance is not over.
    #[error("instance `{id}` is {status}; cancel or terminate it first, then delete it")]
    Live {
        /// The instance.
        id: InstanceId,
        /// Where it is.
        status: Status,
    },
    /// To retry: the instance did not fail.
    #[error("instance `{id}` is {status}; only one that failed can be retried")]
    NotDead {
        /// The instance.
        id: InstanceId,
        /// Where it is, or how it ended.
        status: Status,
    },
    /// To retry: the task was not reached, or is none of the workflow.
    #[error(
        "instance `{id}` has not reached a task `{task}`; it can be retried from {}",
        list(reached)
    )]
    UnknownTask {
        /// The instance.
        id: InstanceId,
        /// What was asked for.
        task: TaskName,
        /// The tasks that it has reached.
        reached: Vec<TaskName>,
    },
    /// To retry: the definition of the instance is not stored.
    #[error(
        "definition {definition} of `{workflow}`, which `{id}` was started with, is not published; start a worker that has it, then retry"
    )]
    Unpublished {
        /// The instance.
        id: InstanceId,
        /// Its workflow.
        workflow: WorkflowName,
        /// Its definition.
        definition: DefinitionHash,
    },
    /// The store was asked for a start and did not answer for as long as the client is patient: it may live or not.
    #[error(
        "it is unknown whether instance `{id}` was started; start it again with the same id and IdPolicy::UseExisting to find out"
    )]
    Unknown {
        /// The instance.
        id: InstanceId,
        /// The run that would have been its.
        run: RunId,
        /// The last error.
        source: Arc<StoreError>,
    },
    /// No node of the instance's definition waits for a signal of this name.
    #[error("{}", not_awaited(id, name, awaited))]
    NotAwaited {
        /// The instance.
        id: InstanceId,
        /// The signal.
        name: SignalName,
        /// The signals that nodes of its definition wait for.
        awaited: Vec<SignalName>,
    },
    /// As many signals as are kept wait for their nodes already.
    #[error(
        "instance `{id}` has {} signals that no node has waited for yet, which is the limit; send it again when some are taken, or look why it does not go on",
        SignalRequest::MAX_EARLY
    )]
    Full {
        /// The instance.
        id: InstanceId,
    },
    /// The payload of a signal cannot be written.
    #[error("the payload of signal `{name}` for `{id}` cannot be stored: {source}")]
    Signal {
        /// The instance.
        id: InstanceId,
        /// The signal.
        name: SignalName,
        /// Why.
        source: Arc<CodecError>,
    },
    /// The store was asked to take a signal and did not answer for as long as the client is patient: it may have it or
    /// not.
    #[error(
        "it is unknown whether `{id}` has the signal; send it again with id(\"{signal}\"), which counts once"
    )]
    SignalUnknown {
        /// The instance.
        id: InstanceId,
        /// The id of the signal.
        signal: SignalId,
        /// The last error.
        source: Arc<StoreError>,
    },
    /// The result did not come in time. The instance goes on.
    #[error("instance `{id}` was not over after {after:?}; it goes on, wait again or cancel it")]
    TimedOut {
        /// The instance.
        id: InstanceId,
        /// How long was waited.
        after: Duration,
    },
    /// A start by name found no definition of that name.
    #[error(
        "no worker has published a workflow `{workflow}` yet; start a worker that has it, or start it by its Workflow or WorkflowRef"
    )]
    UnknownWorkflow {
        /// The name.
        workflow: WorkflowName,
    },
    /// The published definition of a name cannot be read.
    #[error(
        "the published definition of `{workflow}` cannot be read: {reason}; use the version of tenure that its workers have"
    )]
    Definition {
        /// The name.
        workflow: WorkflowName,
        /// What is wrong with it.
        reason: String,
    },
    /// An option of a start is out of range.
    #[error("{0}")]
    Option(#[from] crate::reaper::OptionError),
    /// An id or a name is not allowed.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
}

fn not_awaited(id: &InstanceId, name: &SignalName, awaited: &[SignalName]) -> String {
    let signals: Vec<String> = awaited.iter().map(|name| format!("`{name}`")).collect();
    let known = if signals.is_empty() {
        "none at all".to_owned()
    } else {
        format!("those for {}", signals.join(", "))
    };
    format!("the workflow of `{id}` has no wait for signal `{name}`, it has {known}")
}

/// Names for a sentence.
fn list(tasks: &[TaskName]) -> String {
    let names: Vec<_> = tasks.iter().map(|task| format!("`{task}`")).collect();
    names.join(", ")
}

impl From<StoreError> for ClientError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl ClientError {
    /// Whether the same call may succeed later without a change by a person, and can do no harm. An
    /// [unknown](Self::Unknown) start is not: without an id of its own a second call would start a second instance.
    /// Look for the id that the error names, or start that id again with
    /// [`UseExisting`](crate::IdPolicy::UseExisting).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::TimedOut { .. }
            | Self::UnknownWorkflow { .. }
            | Self::Unpublished { .. }
            | Self::Full { .. } => true,
            _ => false,
        }
    }
}
