//! Names: of workflows, tasks, queues, signals, workers and namespaces.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{IdError, MAX_NAME, MAX_WORKER_ID, Nonce, error::shorten, run::fresh_uuid, text::text};

fn is_name(value: &str, max: usize) -> bool {
    (1..=max).contains(&value.len())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and wraps a name.
            ///
            /// # Errors
            /// [`IdError::Name`] says what is allowed.
            pub fn new(value: impl AsRef<str>) -> Result<Self, IdError> {
                let value = value.as_ref();
                if is_name(value, $max) {
                    Ok(Self(value.into()))
                } else {
                    Err(IdError::Name { kind: $kind, value: shorten(value), max: $max })
                }
            }
        }

        text!($type, new);
    };
}

name!(
    /// The prefix of all keys of one installation. Default: `tenure`.
    Namespace, "namespace", MAX_NAME
);
name!(
    /// The name of a workflow.
    WorkflowName, "workflow name", MAX_NAME
);
name!(
    /// A queue: workers serve queues, tasks go to one. Default: `default`.
    QueueName, "queue name", MAX_NAME
);
name!(
    /// One worker process, unique for each start of it: at most 30 characters.
    WorkerId, "worker id", MAX_WORKER_ID
);
name!(
    /// The key of a value that the tasks of an instance share.
    SharedKey, "shared key", MAX_NAME
);
name!(
    /// An address for hints: the id of a worker or of a client.
    MailboxId, "mailbox id", MAX_NAME
);

name!(
    /// The name of a signal: what a node waits for and a client sends.
    SignalName, "signal name", MAX_NAME
);
name!(
    /// What tells one signal from all others that are sent to a run: a repeat has the same id and counts once.
    SignalId, "signal id", MAX_NAME
);

impl SignalId {
    /// An id that no other signal has.
    #[must_use]
    pub fn unique() -> Self {
        Self(fresh_uuid().simple().to_string().into())
    }
}

impl From<TaskName> for SignalName {
    /// The signal of a node that names no other: a node's name in a graph is one of a signal too.
    fn from(task: TaskName) -> Self {
        Self(task.0)
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self("tenure".into())
    }
}

impl Default for QueueName {
    fn default() -> Self {
        Self("default".into())
    }
}

impl From<WorkerId> for MailboxId {
    fn from(worker: WorkerId) -> Self {
        Self(worker.0)
    }
}

impl WorkerId {
    /// An id that no other process start has: the machine's name (shortened), the process and a random part.
    #[must_use]
    pub fn unique() -> Self {
        let host = gethostname::gethostname();
        let host: String = host
            .to_string_lossy()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            .take(12)
            .collect();
        let host = if host.is_empty() {
            "worker".to_owned()
        } else {
            host
        };
        Self(format!("{host}-{}-{}", std::process::id(), Nonce::random()).into())
    }
}

impl MailboxId {
    /// The mailbox of a client: random, so that two clients never share one.
    #[must_use]
    pub fn unique() -> Self {
        Self(format!("client-{}", fresh_uuid().simple()).into())
    }
}

/// The name of a node of a workflow; a task inside a loop is `<task>#<iteration>`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskName(Arc<str>);

impl TaskName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`IdError::Name`] says what is allowed.
    pub fn new(value: impl AsRef<str>) -> Result<Self, IdError> {
        let value = value.as_ref();
        let (base, iteration) = value
            .split_once('#')
            .map_or((value, None), |(base, i)| (base, Some(i)));
        let iteration_ok =
            iteration.is_none_or(|i| i.parse::<u32>().is_ok_and(|n| n.to_string() == i));
        if is_name(base, MAX_NAME) && iteration_ok {
            Ok(Self(value.into()))
        } else {
            Err(IdError::Name {
                kind: "task name",
                value: shorten(value),
                max: MAX_NAME,
            })
        }
    }
}

text!(TaskName, new);
