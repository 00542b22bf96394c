use std::time::Duration;

use super::{FollowUp, Limits, Next, Wait};
use crate::{
    ids::{InputRef, SignalName, ValueField},
    task::{ErrorKind, Retry},
    workflow::{Graph, Late, MAX_DURATION, Node, NodeId, NodeKind, OnExhausted, RetryPolicy},
};

/// What happened in a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The handler of a task or join returned.
    Completed {
        /// The length of its result, in bytes.
        len: usize,
    },
    /// A delay is over; a node that waits for a signal has it, or is reached.
    Passed,
    /// A node waited for its signal as long as it may.
    Late,
    /// The attempt failed.
    Failed(Failure),
}

/// How an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind.
    pub kind: ErrorKind,
    /// The message, with its causes.
    pub message: String,
    /// What the handler said about the next attempt.
    pub retry: Retry,
}

/// What the engine has to know about the attempt that something happened in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// How often the task failed before.
    pub failures: u32,
    /// Where its input is, as its ticket says.
    pub input: InputRef,
    /// How much is left of the task's deadline over all attempts; zero if it has passed, `None` if there is none.
    pub overall_left: Option<Duration>,
}

/// What must be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The node is done, and this follows.
    Completed {
        /// In the order of the edges.
        follow_ups: Vec<FollowUp>,
    },
    /// The node waits.
    Wait(Wait),
    /// The task failed and is tried again.
    Retry {
        /// After this time; zero is at once.
        after: Duration,
        /// What to record.
        failure: Failure,
    },
    /// The task failed for good, and its instance with it.
    Failed {
        /// What to record: that of the attempt, or that the deadline leaves no time for another one.
        failure: Failure,
    },
    /// The task failed for good, and its instance is paused for a person.
    Paused {
        /// As above.
        failure: Failure,
    },
}

/// What an instance begins with, whose input has this length: at least one follow-up, none of them an arrival or the end.
#[must_use]
pub fn begin(graph: &Graph, input_len: usize) -> Vec<FollowUp> {
    let input = InputRef::Field {
        field: ValueField::Input,
        len: input_len,
    };
    let entry = graph.entry().iter();
    entry.map(|&node| enter(graph, node, &input)).collect()
}

/// How one node begins an instance. One that waits is entered by an engine first, as a delayed start needs it too.
pub(super) fn enter(graph: &Graph, node: NodeId, input: &InputRef) -> FollowUp {
    match follow(graph, node, input) {
        FollowUp::Wait { next, .. } => FollowUp::Ready(Next {
            input: input.clone(),
            ..next
        }),
        follow_up => follow_up,
    }
}

/// The length of `nil`, the value of a node that went on without its signal.
const NIL: usize = 1;

/// What must be stored because of this outcome of an attempt at this node. `jitter` is a random number from 0 to 1.
///
/// An outcome that a node cannot have (a task that passed, a delay that returned a value) fails it for good: it can only
/// come from a worker whose graph is not that of the instance.
#[must_use]
pub fn decide(
    graph: &Graph,
    node: NodeId,
    attempt: &Attempt,
    outcome: &Outcome,
    jitter: f64,
) -> Decision {
    let here = graph.node(node);
    let own = |len| InputRef::Field {
        field: here.value(),
        len,
    };
    let value = match (outcome, here.kind) {
        (Outcome::Failed(failure), _) => {
            let decision = fail(&here.retry, attempt, failure, jitter);
            return exhausted(graph.on_exhausted(), decision);
        }
        // Its input is its own value when the signal is there; anything else when it is only reached.
        (Outcome::Passed, NodeKind::Wait(_)) if !attempt.input.is_of(&here.value()) => {
            return Decision::Wait(wait_of(here));
        }
        (Outcome::Passed, NodeKind::Delay(_) | NodeKind::Wait(_)) => attempt.input.clone(),
        (Outcome::Late, NodeKind::Wait(Late::Fail)) => return too_late(here),
        (Outcome::Late, NodeKind::Wait(Late::GoOn)) => own(NIL),
        (Outcome::Completed { len }, NodeKind::Task | NodeKind::Join { .. }) => own(*len),
        (Outcome::Completed { .. } | Outcome::Passed | Outcome::Late, _) => {
            let message = format!("`{}` cannot end like this: {outcome:?}", here.name);
            return failed(ErrorKind::Permanent, message);
        }
    };
    let follow_ups = if here.next.is_empty() {
        vec![FollowUp::End {
            result: graph.result().clone(),
        }]
    } else {
        let next = here.next.iter();
        next.map(|&next| follow(graph, next, &value)).collect()
    };
    Decision::Completed { follow_ups }
}

/// How one node follows a value.
fn follow(graph: &Graph, id: NodeId, value: &InputRef) -> FollowUp {
    let node = graph.node(id);
    let next = |input, limits| Next {
        task: node.name.clone(),
        list: graph.list(id),
        input,
        limits,
    };
    match node.kind {
        NodeKind::Task => FollowUp::Ready(next(value.clone(), node.limits)),
        NodeKind::Delay(delay) => FollowUp::After {
            next: next(value.clone(), Limits::NONE),
            delay,
        },
        NodeKind::Wait(_) => {
            let own = InputRef::Field {
                field: node.value(),
                len: 0,
            };
            FollowUp::Wait {
                next: next(own, Limits::NONE),
                wait: wait_of(node),
            }
        }
        // Nobody else arrives, so there is nothing to count.
        NodeKind::Join { total: 1, .. } => FollowUp::Ready(next(InputRef::Join, node.limits)),
        NodeKind::Join { need, total } => FollowUp::Arrive {
            next: next(InputRef::Join, node.limits),
            need,
            total,
        },
    }
}

fn wait_of(node: &Node) -> Wait {
    let own = || SignalName::from(node.name.clone());
    Wait {
        signal: node.signal.clone().unwrap_or_else(own),
        timeout: node.limits.timeout,
    }
}

fn too_late(node: &Node) -> Decision {
    let Wait { signal, timeout } = wait_of(node);
    // The definition of who decides may have no timeout any more.
    let within = timeout.map_or("in time".to_owned(), |timeout| {
        format!("within {timeout:?}")
    });
    let message = format!("no signal `{signal}` came {within}");
    failed(ErrorKind::Timeout, message)
}

fn failed(kind: ErrorKind, message: String) -> Decision {
    Decision::Failed {
        failure: Failure {
            kind,
            message,
            retry: Retry::Never,
        },
    }
}

fn exhausted(then: OnExhausted, decision: Decision) -> Decision {
    match (then, decision) {
        (OnExhausted::Pause, Decision::Failed { failure }) => Decision::Paused { failure },
        (_, decision) => decision,
    }
}

fn fail(policy: &RetryPolicy, attempt: &Attempt, failure: &Failure, jitter: f64) -> Decision {
    let failure = failure.clone();
    let failures = attempt.failures.saturating_add(1);
    let may_go_on = match failure.kind {
        ErrorKind::Permanent | ErrorKind::Deadline => false,
        ErrorKind::Error | ErrorKind::Panic | ErrorKind::Timeout | ErrorKind::Crash => {
            failures < policy.attempts()
        }
    };
    let after = match failure.retry {
        Retry::Policy => policy.delay(failures, jitter),
        Retry::After(after) => after.min(MAX_DURATION),
        Retry::Never => return Decision::Failed { failure },
    };
    if !may_go_on {
        return Decision::Failed { failure };
    }
    match attempt.overall_left {
        Some(left) if after >= left => Decision::Failed {
            failure: Failure {
                kind: ErrorKind::Deadline,
                message: format!(
                    "{}; the next attempt in {after:?} would begin after the task's deadline, in {left:?}",
                    failure.message
                ),
                retry: Retry::Never,
            },
        },
        Some(_) | None => Decision::Retry { after, failure },
    }
}
