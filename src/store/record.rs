//! What is stored of one task, in one field of the snapshot, readable by hand.

use std::{fmt, str::FromStr};

use crate::{
    ids::{IdError, Nonce, WorkerId, shorten},
    time::Timestamp,
};

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// In a ready list.
    Ready,
    /// Claimed by a worker.
    Running,
    /// In the delayed set: a timer, a retry or a delayed start.
    Delayed,
    /// Waiting for a signal or a child.
    Waiting,
    /// Its result is stored.
    Completed,
    /// It failed for good.
    Failed,
    /// It was open when the instance ended otherwise.
    Closed,
    /// A retry of the instance took its result back; what is left of it is how often it was claimed.
    Cleared,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Running,
        Self::Delayed,
        Self::Waiting,
        Self::Completed,
        Self::Failed,
        Self::Closed,
        Self::Cleared,
    ];

    /// The word in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Delayed => "delayed",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Closed => "closed",
            Self::Cleared => "cleared",
        }
    }

    /// Whether something more must happen to the task.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Running | Self::Delayed | Self::Waiting
        )
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `<state> <attempt> <nonce> <failures> <crashes> <worker> <deadline>`, with `-` for what there is not.
///
/// While a task runs, this text *is* its fence: a worker sends it with each write and the store compares it whole,
/// together with the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskRecord {
    /// Where the task is.
    pub state: TaskState,
    /// How often the task was claimed in this run; only grows.
    pub attempt: u32,
    /// Of the claiming call; stays when the attempt is settled, gone when it was released or reaped.
    pub nonce: Option<Nonce>,
    /// What `max_attempts` bounds.
    pub failures: u32,
    /// What `max_crashes` bounds.
    pub crashes: u32,
    /// Who claimed it last.
    pub worker: Option<WorkerId>,
    /// When the running attempt is over whatever its worker says.
    pub deadline: Option<Timestamp>,
}

impl TaskRecord {
    /// A task that was never claimed.
    #[must_use]
    pub fn fresh(state: TaskState) -> Self {
        Self {
            state,
            attempt: 0,
            nonce: None,
            failures: 0,
            crashes: 0,
            worker: None,
            deadline: None,
        }
    }

    /// The first claim of a task without bounds.
    pub(crate) fn first(worker: &WorkerId, nonce: Nonce) -> Self {
        Self {
            attempt: 1,
            nonce: Some(nonce),
            worker: Some(worker.clone()),
            ..Self::fresh(TaskState::Running)
        }
    }
}

struct Dash<'a, T>(&'a Option<T>);

impl<T: fmt::Display> fmt::Display for Dash<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl fmt::Display for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {} {} {} {}",
            self.state,
            self.attempt,
            Dash(&self.nonce),
            self.failures,
            self.crashes,
            Dash(&self.worker),
            Dash(&self.deadline)
        )
    }
}

impl FromStr for TaskRecord {
    type Err = IdError;

    fn from_str(value: &str) -> Result<Self, IdError> {
        let stored = || IdError::Stored {
            kind: "task record",
            value: shorten(value),
        };
        let parts: Vec<&str> = value.split(' ').collect();
        let [state, attempt, nonce, failures, crashes, worker, deadline] =
            <[&str; 7]>::try_from(parts).map_err(|_| stored())?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| stored());
        let present = |text: &str| text != "-";
        Ok(Self {
            state: TaskState::ALL
                .into_iter()
                .find(|s| s.as_str() == state)
                .ok_or_else(stored)?,
            attempt: number(attempt)?,
            nonce: present(nonce).then(|| nonce.parse()).transpose()?,
            failures: number(failures)?,
            crashes: number(crashes)?,
            worker: present(worker).then(|| worker.parse()).transpose()?,
            deadline: present(deadline)
                .then(|| {
                    deadline
                        .parse()
                        .map(Timestamp::from_millis)
                        .map_err(|_| stored())
                })
                .transpose()?,
        })
    }
}

/// Where an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Status {
    /// Live: something of it is ready, delayed, running or waiting.
    Running,
    /// Live, but no task of it is claimed until somebody [resumes](crate::Handle::resume) it.
    Paused,
    /// Every node that had to run has its result.
    Completed,
    /// A task failed for good, or its workers crashed too often. Kept for a person: it is *dead*.
    Failed,
    /// Ended by [`cancel`](crate::Handle::cancel).
    Cancelled,
    /// Ended by an operator, or replaced by a start that said so.
    Terminated,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 6] = [
        Self::Running,
        Self::Paused,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Terminated,
    ];

    /// The word in the snapshot.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Terminated => "terminated",
        }
    }

    /// Whether the instance is over.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Running | Self::Paused)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == value)
            .ok_or_else(|| IdError::Stored {
                kind: "status",
                value: shorten(value),
            })
    }
}
