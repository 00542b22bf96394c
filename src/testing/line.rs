use std::{fmt, str::FromStr, time::Duration};

use super::Digest;
use crate::{
    ids::{IdError, InstanceId, RunId, SignalId, SignalName, TaskName, WorkerId, shorten},
    store::Status,
    time::Timestamp,
};

/// One line of a ledger. As text its parts are separated by tabs; the instance id, which may hold spaces, comes last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A start was acknowledged to its client.
    Started {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
    },
    /// A client was told how a run ended.
    Told {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// How it ended.
        status: Status,
        /// Its result, if it was completed.
        result: Option<Digest>,
    },
    /// A handler began, before any effect.
    Began {
        /// When, by the ledger's clock.
        at: Timestamp,
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// The task.
        task: TaskName,
        /// The attempt.
        attempt: u32,
        /// How many attempts had failed before.
        failures: u32,
        /// What it was given.
        input: Digest,
    },
    /// A handler ended, after its effect.
    Ended {
        /// When, by the ledger's clock.
        at: Timestamp,
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// The task.
        task: TaskName,
        /// The attempt.
        attempt: u32,
        /// What it returned; `None` when it failed.
        output: Option<Digest>,
        /// How long it asked to wait before the next attempt, if it failed so.
        wait: Option<Duration>,
    },
    /// The store gave a task to a worker.
    Claimed {
        /// The worker.
        worker: WorkerId,
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// The task.
        task: TaskName,
        /// The attempt.
        attempt: u32,
        /// The nonce of the claim.
        nonce: String,
    },
    /// The store said that the completion of an attempt is stored.
    Stored {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// The task.
        task: TaskName,
        /// The attempt.
        attempt: u32,
    },
    /// The store told subscribers that a dead run was brought back to life.
    Retried {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
    },
    /// A signal is sent to a run, or was acknowledged to its client.
    Signalled {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// The signal.
        name: SignalName,
        /// Which of those of this name.
        signal: SignalId,
        /// What it brings: something that no other signal to this run brings.
        payload: Digest,
        /// Whether the client was told that it is stored. A signal is sent after the answer to the one before it of its name.
        acknowledged: bool,
    },
    /// The store told subscribers that a run is over.
    Over {
        /// The instance.
        id: InstanceId,
        /// The run.
        run: RunId,
        /// How it ended.
        status: Status,
    },
}

struct Dash<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Dash<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { id, run } => write!(f, "started\t{run}\t{id}"),
            Self::Told {
                id,
                run,
                status,
                result,
            } => write!(f, "told\t{run}\t{status}\t{}\t{id}", Dash(*result)),
            Self::Began {
                at,
                id,
                run,
                task,
                attempt,
                failures,
                input,
            } => write!(
                f,
                "began\t{run}\t{task}\t{attempt}\t{failures}\t{at}\t{input}\t{id}"
            ),
            Self::Ended {
                at,
                id,
                run,
                task,
                attempt,
                output,
                wait,
            } => write!(
                f,
                "ended\t{run}\t{task}\t{attempt}\t{at}\t{}\t{}\t{id}",
                Dash(*output),
                Dash(wait.map(|wait| wait.as_millis()))
            ),
            Self::Claimed {
                worker,
                id,
                run,
                task,
                attempt,
                nonce,
            } => write!(
                f,
                "claimed\t{run}\t{task}\t{attempt}\t{worker}\t{nonce}\t{id}"
            ),
            Self::Stored {
                id,
                run,
                task,
                attempt,
            } => write!(f, "stored\t{run}\t{task}\t{attempt}\t{id}"),
            Self::Signalled {
                id,
                run,
                name,
                signal,
                payload,
                acknowledged,
            } => write!(
                f,
                "signalled\t{run}\t{name}\t{signal}\t{payload}\t{acknowledged}\t{id}"
            ),
            Self::Retried { id, run } => write!(f, "retried\t{run}\t{id}"),
            Self::Over { id, run, status } => write!(f, "over\t{run}\t{status}\t{id}"),
        }
    }
}

/// The parts of a line, read one after the other.
struct Parts<'a> {
    line: &'a str,
    parts: std::str::Split<'a, char>,
}

impl Parts<'_> {
    fn bad(&self) -> IdError {
        IdError::Stored {
            kind: "line of a ledger",
            value: shorten(self.line),
        }
    }

    fn text(&mut self) -> Result<&str, IdError> {
        match self.parts.next() {
            Some(part) => Ok(part),
            None => Err(self.bad()),
        }
    }

    fn next<T: FromStr>(&mut self) -> Result<T, IdError> {
        let parsed = self.text()?.parse().ok();
        parsed.ok_or_else(|| self.bad())
    }

    fn time(&mut self) -> Result<Timestamp, IdError> {
        self.next().map(Timestamp::from_millis)
    }

    fn optional<T: FromStr>(&mut self) -> Result<Option<T>, IdError> {
        let parsed = match self.text()? {
            "-" => return Ok(None),
            value => value.parse().ok(),
        };
        parsed.map(Some).ok_or_else(|| self.bad())
    }
}

impl FromStr for Line {
    type Err = IdError;

    fn from_str(line: &str) -> Result<Self, IdError> {
        let mut parts = Parts {
            line,
            parts: line.split('\t'),
        };
        let kind = parts.text()?.to_owned();
        let run = parts.next()?;
        Ok(match kind.as_str() {
            "started" => Self::Started {
                run,
                id: parts.next()?,
            },
            "told" => Self::Told {
                run,
                status: parts.next()?,
                result: parts.optional()?,
                id: parts.next()?,
            },
            "began" => Self::Began {
                run,
                task: parts.next()?,
                attempt: parts.next()?,
                failures: parts.next()?,
                at: parts.time()?,
                input: parts.next()?,
                id: parts.next()?,
            },
            "ended" => Self::Ended {
                run,
                task: parts.next()?,
                attempt: parts.next()?,
                at: parts.time()?,
                output: parts.optional()?,
                wait: parts.optional()?.map(Duration::from_millis),
                id: parts.next()?,
            },
            "claimed" => Self::Claimed {
                run,
                task: parts.next()?,
                attempt: parts.next()?,
                worker: parts.next()?,
                nonce: parts.next()?,
                id: parts.next()?,
            },
            "stored" => Self::Stored {
                run,
                task: parts.next()?,
                attempt: parts.next()?,
                id: parts.next()?,
            },
            "retried" => Self::Retried {
                run,
                id: parts.next()?,
            },
            "signalled" => Self::Signalled {
                run,
                name: parts.next()?,
                signal: parts.next()?,
                payload: parts.next()?,
                acknowledged: parts.next()?,
                id: parts.next()?,
            },
            "over" => Self::Over {
                run,
                status: parts.next()?,
                id: parts.next()?,
            },
            _ => return Err(parts.bad()),
        })
    }
}

impl Line {
    /// The instance that it is about.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        match self {
            Self::Started { id, .. }
            | Self::Told { id, .. }
            | Self::Began { id, .. }
            | Self::Ended { id, .. }
            | Self::Claimed { id, .. }
            | Self::Stored { id, .. }
            | Self::Signalled { id, .. }
            | Self::Retried { id, .. }
            | Self::Over { id, .. } => id,
        }
    }

    /// The run that it is about.
    #[must_use]
    pub fn run(&self) -> RunId {
        match self {
            Self::Started { run, .. }
            | Self::Told { run, .. }
            | Self::Began { run, .. }
            | Self::Ended { run, .. }
            | Self::Claimed { run, .. }
            | Self::Stored { run, .. }
            | Self::Signalled { run, .. }
            | Self::Retried { run, .. }
            | Self::Over { run, .. } => *run,
        }
    }

    /// The task that it is about, if it is about one.
    #[must_use]
    pub fn task(&self) -> Option<&TaskName> {
        match self {
            Self::Began { task, .. }
            | Self::Ended { task, .. }
            | Self::Claimed { task, .. }
            | Self::Stored { task, .. } => Some(task),
            Self::Started { .. }
            | Self::Told { .. }
            | Self::Signalled { .. }
            | Self::Retried { .. }
            | Self::Over { .. } => None,
        }
    }
}
