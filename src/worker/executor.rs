//! Runs the user's code of one task, within its bounds.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{
    catalog::Missing,
    claims::Claim,
    core::Core,
    input::{self, Input, NoInput},
    notes,
    roles::panic_message,
};
use crate::{
    codec,
    engine::{self, Attempt, Decision, Failure, Outcome},
    ids::{InputRef, Purpose, ValueField},
    store::{ErrorKind, ErrorRecord, StoreError, Verdict},
    task::{ContextParts, ErasedHandler, Next, Notebook, Retry, TaskContext, TaskError, Writer},
    workflow::{AnyWorkflow, Node, NodeId, NodeKind},
};

/// A payload at hand.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) field: ValueField,
    pub(crate) bytes: Bytes,
}

/// How an execution ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// There is something to store.
    Decided {
        verdict: Verdict,
        max_attempts: u32,
        /// The input, which a follow-up may share.
        input: Option<Known>,
    },
    /// The claim belongs to somebody else.
    Lost,
    /// The instance is over.
    Cancelled,
    /// This worker cannot run it.
    NotOurs { reason: String },
    /// The worker stops, and its patience is over.
    Aborted,
}

/// One execution: what all its steps look at.
struct Execution<'a> {
    core: &'a Arc<Core>,
    claim: &'a Arc<Claim>,
    workflow: &'a AnyWorkflow,
    id: NodeId,
    node: &'a Node,
    limit: Option<Limit>,
}

/// When the attempt is over, and what that means.
#[derive(Debug, Clone, Copy)]
struct Limit {
    at: Instant,
    after: Duration,
    kind: ErrorKind,
}

/// Runs one claimed task to its verdict.
pub(crate) async fn execute(core: &Arc<Core>, claim: &Arc<Claim>, known: Option<Known>) -> Ended {
    let ticket = &claim.claimed.ticket;
    let (workflow, id) = match core.catalog.find(ticket.list.definition, &ticket.task) {
        Ok(found) => found,
        Err(Missing::Definition(reason)) => return Ended::NotOurs { reason },
        // Given back it would stand at the head of its list for ever, before all that can be run.
        Err(Missing::Task(reason)) => return not_implemented(core, claim, reason),
    };
    let node = workflow.graph().node(id);
    let execution = Execution {
        core,
        claim,
        workflow,
        id,
        node,
        limit: Limit::of(claim, node),
    };
    execution.run(known).await
}

/// The end of a task that no worker has.
fn not_implemented(core: &Core, claim: &Claim, reason: String) -> Ended {
    let claimed = &claim.claimed;
    let error = ErrorRecord {
        kind: ErrorKind::Permanent,
        task: claimed.ticket.task.clone(),
        attempt: claimed.record.attempt,
        message: reason,
        worker: Some(core.config.worker.clone()),
        at: claimed.now.plus(claim.since.elapsed()).as_millis(),
    };
    Ended::Decided {
        verdict: Verdict::Failed { error },
        max_attempts: 1,
        input: None,
    }
}

impl Execution<'_> {
    async fn run(self, known: Option<Known>) -> Ended {
        if let Some(outcome) = self.decided_before() {
            return self.decide(outcome, None);
        }
        let Some(handler) = self.workflow.handler(self.id) else {
            return self.decide(End::Passed, self.at_hand());
        };
        let join = self.workflow.graph().join_sources(self.id);
        let read = input::read(self.core, self.claim, join, known);
        let input = match self.bounded(read, Duration::ZERO).await {
            Bounded::Done(Ok(input)) => input,
            Bounded::Done(Err(NoInput::Gone)) => return Ended::Lost,
            Bounded::Done(Err(NoInput::Unreadable { reason })) => {
                let outcome = failure(
                    ErrorKind::Permanent,
                    format!("the input cannot be read: {reason}"),
                );
                return self.decide(outcome, None);
            }
            Bounded::OverTime(limit) => return self.decide(self.over_time(limit), None),
            Bounded::Stopped(ended) => return ended,
        };
        let outcome = match self.call(handler, input.bytes.clone()).await {
            Ok(outcome) => outcome,
            Err(ended) => return ended,
        };
        let Input { bytes, field } = input;
        let known = field.map(|field| Known { field, bytes });
        self.decide(self.refuse_too_large(outcome), known)
    }

    /// The input, if it came with the claim as it is stored.
    fn at_hand(&self) -> Option<Known> {
        let claimed = &self.claim.claimed;
        match &claimed.ticket.input {
            InputRef::Field { field, .. } => Some(Known {
                field: field.clone(),
                bytes: claimed.input.clone()?,
            }),
            InputRef::Join => None,
        }
    }

    /// Where the input is, with its length as it came: an entry that says a node is late knows of no signal.
    fn input(&self) -> InputRef {
        let claimed = &self.claim.claimed;
        match (&claimed.ticket.input, &claimed.input) {
            (InputRef::Field { field, .. }, Some(bytes)) => InputRef::Field {
                field: field.clone(),
                len: bytes.len(),
            },
            (input, _) => input.clone(),
        }
    }

    /// What needs no code any more: a reaper found the last attempt over its time, all attempts took too long, or a signal
    /// did not come in time.
    fn decided_before(&self) -> Option<End> {
        let claimed = &self.claim.claimed;
        if let NodeKind::Wait(_) = self.node.kind {
            // One that was too late, entered again by an entry that stood twice, and had its signal then: it goes on.
            let late = claimed.ticket.purpose == Purpose::TimedOut && claimed.input.is_none();
            return late.then_some(End::Late);
        }
        let late = claimed
            .overall
            .is_some_and(|overall| overall <= claimed.now);
        match (late, claimed.ticket.purpose) {
            (true, _) => Some(failure(
                ErrorKind::Deadline,
                "all attempts together took longer than the task's deadline".into(),
            )),
            (false, Purpose::TimedOut) => Some(failure(
                ErrorKind::Timeout,
                "the attempt went past its timeout, and its worker did not stop it".into(),
            )),
            (false, Purpose::Run) => None,
        }
    }

    /// The handler, with its panics caught, in its bounds.
    async fn call(&self, handler: &Arc<dyn ErasedHandler>, input: Bytes) -> Result<End, Ended> {
        let token = self.claim.cancelled.child_token();
        let context = self.context(token.clone());
        let next = Next::new(&self.core.layers, handler.as_ref());
        let mut future: BoxFuture<'_, _> =
            Box::pin(AssertUnwindSafe(async { next.run(context, input).await }).catch_unwind());
        let ended = self
            .bounded(
                notes::beside(self.claim, &mut future),
                self.core.config.cancel_grace,
            )
            .await;
        if !matches!(ended, Bounded::Done(_)) {
            // What the handler has spawned can hear of its end.
            token.cancel();
        }
        drop_quietly(future);
        if !matches!(ended, Bounded::Stopped(_)) {
            self.claim.last_progress().await;
        }
        match ended {
            Bounded::Done(Ok(Ok(output))) => Ok(End::Output(output)),
            Bounded::Done(Ok(Err(error))) => Ok(error_end(&error)),
            Bounded::Done(Err(panic)) => {
                Ok(failure(ErrorKind::Panic, panic_message(panic.as_ref())))
            }
            Bounded::OverTime(limit) => Ok(self.over_time(limit)),
            Bounded::Stopped(ended) => Err(ended),
        }
    }

    /// Waits for something, for as long as the attempt may last.
    async fn bounded<T>(&self, work: impl Future<Output = T>, grace: Duration) -> Bounded<T> {
        let over_time = async {
            match self.limit {
                Some(limit) => {
                    tokio::time::sleep_until(limit.at).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            self.claim.cancelled.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let done = tokio::select! {
            biased;
            () = self.claim.lost.cancelled() => return Bounded::Stopped(Ended::Lost),
            () = self.core.abort.cancelled() => return Bounded::Stopped(Ended::Aborted),
            limit = over_time => return Bounded::OverTime(limit),
            () = cancelled => return Bounded::Stopped(Ended::Cancelled),
            done = work => done,
        };
        // It may have blocked its thread past any of these.
        if self.claim.lost.is_cancelled() {
            return Bounded::Stopped(Ended::Lost);
        }
        if self.claim.cancelled.is_cancelled() {
            return Bounded::Stopped(Ended::Cancelled);
        }
        match self.limit {
            Some(limit) if Instant::now() >= limit.at => Bounded::OverTime(limit),
            _ => Bounded::Done(done),
        }
    }

    fn over_time(&self, limit: Limit) -> End {
        let task = &self.claim.claimed.ticket.task;
        let message = match limit.kind {
            ErrorKind::Deadline => {
                format!("task `{task}` took longer than its deadline over all attempts")
            }
            _ => format!(
                "task `{task}` took longer than its timeout of {:?}",
                limit.after
            ),
        };
        failure(limit.kind, message)
    }

    /// What the store would refuse is an error of the task: no retry of the call can mend it.
    fn refuse_too_large(&self, outcome: End) -> End {
        let limit = self.core.store.max_payload();
        match outcome {
            End::Output(output) if output.len() > limit => {
                let error = StoreError::TooLarge {
                    what: format!("the output of task `{}`", self.claim.claimed.ticket.task),
                    size: output.len(),
                    limit,
                };
                failure(ErrorKind::Permanent, error.to_string())
            }
            outcome => outcome,
        }
    }

    fn context(&self, token: CancellationToken) -> TaskContext {
        let claimed = &self.claim.claimed;
        let ticket = &claimed.ticket;
        let mut parts = ContextParts::new(
            self.workflow.name().clone(),
            ticket.id.clone(),
            claimed.run,
            ticket.task.clone(),
        );
        parts.attempt = claimed.record.attempt;
        parts.failures = claimed.record.failures;
        parts.max_attempts = self.node.retry.attempts();
        parts.epoch = self.core.epoch();
        parts.deadline = self.limit.map(|limit| limit.at);
        parts.cancellation = token;
        parts.states = Arc::clone(&self.core.states);
        parts.span = Span::current();
        let writer: Arc<dyn Writer> = Arc::<Claim>::clone(self.claim);
        parts.notebook = Notebook::Claim(writer);
        TaskContext::new(parts)
    }

    /// The engine's decision, with the bytes and the names that it does not need to know.
    fn decide(&self, outcome: End, input: Option<Known>) -> Ended {
        let claimed = &self.claim.claimed;
        let now = claimed.now.plus(self.claim.since.elapsed());
        let attempt = Attempt {
            failures: claimed.record.failures,
            input: self.input(),
            overall_left: claimed.overall.map(|overall| overall.since(now)),
        };
        let (outcome, output) = match outcome {
            End::Output(output) => (Outcome::Completed { len: output.len() }, Some(output)),
            End::Passed => (Outcome::Passed, None),
            End::Late => (Outcome::Late, Some(codec::NIL)),
            End::Failed(failure) => (Outcome::Failed(failure), None),
        };
        let graph = self.workflow.graph();
        let record = |failure: Failure| ErrorRecord {
            kind: failure.kind,
            task: claimed.ticket.task.clone(),
            attempt: claimed.record.attempt,
            message: failure.message,
            worker: Some(self.core.config.worker.clone()),
            at: now.as_millis(),
        };
        let verdict = match engine::decide(graph, self.id, &attempt, &outcome, fastrand::f64()) {
            Decision::Completed { follow_ups } => Verdict::Completed { output, follow_ups },
            Decision::Wait(wait) => Verdict::Wait(wait),
            Decision::Retry { after, failure } => Verdict::Retry {
                after,
                error: record(failure),
            },
            Decision::Failed { failure } => Verdict::Failed {
                error: record(failure),
            },
            Decision::Paused { failure } => Verdict::Paused {
                error: record(failure),
            },
        };
        Ended::Decided {
            verdict,
            max_attempts: self.node.retry.attempts(),
            input,
        }
    }
}

/// What an attempt came to.
#[derive(Debug)]
enum End {
    Output(Bytes),
    Passed,
    /// Without the signal.
    Late,
    Failed(Failure),
}

/// How a bounded wait ended.
enum Bounded<T> {
    Done(T),
    OverTime(Limit),
    Stopped(Ended),
}

impl Limit {
    /// Counted from the moment at which the claim's reply was read, in the time that the store gave it.
    fn of(claim: &Claim, node: &Node) -> Option<Self> {
        let claimed = &claim.claimed;
        let deadline = claimed.record.deadline?;
        let after = deadline.since(claimed.now);
        let by_timeout = node.limits.timeout.is_some_and(|timeout| timeout <= after);
        let kind = if claimed.overall == Some(deadline) && !by_timeout {
            ErrorKind::Deadline
        } else {
            ErrorKind::Timeout
        };
        Some(Self {
            at: claim.since + after,
            after,
            kind,
        })
    }
}

fn failure(kind: ErrorKind, message: String) -> End {
    End::Failed(Failure {
        kind,
        message,
        retry: match kind {
            ErrorKind::Permanent | ErrorKind::Deadline => Retry::Never,
            _ => Retry::Policy,
        },
    })
}

fn error_end(error: &TaskError) -> End {
    End::Failed(Failure {
        kind: error.kind(),
        message: error.message(),
        retry: error.retry(),
    })
}

/// A future whose destructor panics must not take its slot with it.
fn drop_quietly<T>(future: T) {
    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(|| drop(future))) {
        tracing::error!(
            message = panic_message(panic.as_ref()),
            "a handler panicked while it was dropped"
        );
    }
}
