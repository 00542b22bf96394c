//! What can be done to an instance, and in which words it is told.

use tenure::{ClientError, Handle, RetryFrom, Status};

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verb {
    Cancel,
    Terminate,
    Pause,
    Resume,
    Retry(RetryFrom),
    Delete,
}

impl Verb {
    /// As it is typed.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry(_) => "retry",
            Self::Delete => "delete",
        }
    }

    /// As it is told when it was done.
    pub(crate) fn done(&self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::Terminate => "terminated",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Retry(_) => "retried",
            Self::Delete => "deleted",
        }
    }

    /// Whether it can be done to an instance of this status: what a filter without a status takes.
    pub(crate) fn is_for(&self, status: Status) -> bool {
        match self {
            Self::Cancel | Self::Terminate => !status.is_terminal(),
            Self::Pause => status == Status::Running,
            Self::Resume => status == Status::Paused,
            Self::Retry(_) => status == Status::Failed,
            Self::Delete => status.is_terminal(),
        }
    }

    /// Whether an instance of this status is as it would be afterwards.
    pub(crate) fn is_so(&self, status: Status) -> bool {
        match self {
            Self::Cancel => status == Status::Cancelled,
            Self::Terminate => status == Status::Terminated,
            Self::Pause => status == Status::Paused,
            Self::Resume => status == Status::Running,
            Self::Retry(_) | Self::Delete => false,
        }
    }

    pub(super) async fn apply(
        &self,
        handle: &Handle,
        reason: &str,
        actor: &str,
    ) -> Result<(), ClientError> {
        match self {
            Self::Cancel => handle.cancel(reason, actor).await,
            Self::Terminate => handle.terminate(reason, actor).await,
            Self::Pause => handle.pause(reason, actor).await,
            Self::Resume => handle.resume(reason, actor).await,
            Self::Retry(from) => handle.retry(from.clone(), reason, actor).await,
            Self::Delete => handle.delete().await,
        }
    }
}
