//! What a command says to the shell.

use std::{error::Error, fmt, process::ExitCode};

use tenure::{ClientError, StoreError};

/// How a command ended. The numbers are documented and stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked for.
    Done = 0,
    /// It could not; or what it looked at is not well: an instance that failed, findings of `doctor`.
    Failed = 1,
    /// The command line or the configuration is wrong; nothing was done. clap says 2 too.
    Usage = 2,
    /// There is no such instance, workflow or task.
    NotFound = 3,
    /// Its state does not allow it: the id is taken, it is over, it is not paused.
    Refused = 4,
    /// Redis cannot be reached, refuses the user, or did not answer.
    Unavailable = 5,
    /// It was not over within the time that `--timeout` gave.
    TimedOut = 6,
}

impl Exit {
    /// For the end of `--help`.
    pub(crate) const HELP: &'static str = "\
Exit codes:
  0  done
  1  failed, or what was looked at is not well
  2  the command line or the configuration is wrong; nothing was done
  3  there is no such instance, workflow or task
  4  its state does not allow it: the id is taken, it is over, it is paused already
  5  Redis cannot be reached, refuses the user, or did not answer
  6  not over within the time that was given";

    /// That of an error, wherever in its chain the reason is.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.is::<Usage>() {
            return Self::Usage;
        }
        for cause in error.chain() {
            if let Some(error) = cause.downcast_ref::<ClientError>() {
                return Self::of_client(error);
            }
            if let Some(error) = cause.downcast_ref::<StoreError>() {
                return Self::of_store(error);
            }
        }
        Self::Failed
    }

    pub(crate) fn of_client(error: &ClientError) -> Self {
        match error {
            ClientError::NotFound { .. }
            | ClientError::UnknownWorkflow { .. }
            | ClientError::UnknownTask { .. }
            | ClientError::Replaced { .. } => Self::NotFound,
            ClientError::AlreadyExists { .. }
            | ClientError::Over { .. }
            | ClientError::AlreadyPaused { .. }
            | ClientError::Live { .. }
            | ClientError::NotDead { .. }
            | ClientError::NotAwaited { .. }
            | ClientError::Full { .. } => Self::Refused,
            ClientError::TimedOut { .. } => Self::TimedOut,
            ClientError::Option(_) | ClientError::Id(_) | ClientError::TooLarge { .. } => {
                Self::Usage
            }
            ClientError::Unknown { .. } | ClientError::SignalUnknown { .. } => Self::Unavailable,
            ClientError::Store(error) => Self::of_store(error),
            _ => Self::Failed,
        }
    }

    fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable { .. }
            | StoreError::Timeout { .. }
            | StoreError::Moment { .. }
            | StoreError::Login
            | StoreError::Right { .. } => Self::Unavailable,
            StoreError::Address { .. }
            | StoreError::Certificate { .. }
            | StoreError::Partitions { .. }
            | StoreError::Request { .. }
            | StoreError::TooLarge { .. } => Self::Usage,
            _ => Self::Failed,
        }
    }
}

/// What was given is wrong, and nothing was done.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    /// Of a sentence.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Of an error, with its causes.
    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    pub(crate) fn because(error: anyhow::Error) -> anyhow::Error {
        Self(format!("{error:#}")).into()
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
