use std::fmt;

use crate::{
    ids::{DefinitionHash, TaskName, WorkflowName},
    store::{Status, TaskState},
};

/// What is wrong with a key, of which the finding says the name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// An open task stands in none of the places where something would find it.
    StandsNowhere {
        /// The task.
        task: TaskName,
        /// Where it should stand: ready, delayed, running.
        state: TaskState,
    },
    /// A running task has no claim key, and nobody has set it again.
    NoClaim {
        /// The task.
        task: TaskName,
    },
    /// A node waits for a signal and is not among those that a signal looks for.
    NotAwaited {
        /// The node.
        task: TaskName,
    },
    /// Tickets are parked, but the instance is not paused.
    StillParked,
    /// An instance is missing in an index.
    NotIndexed {
        /// The index: `waiting`, `paused`, `done:<status>`.
        index: String,
    },
    /// An index has an instance that does not belong into it.
    WronglyIndexed {
        /// The index.
        index: String,
        /// What stands there.
        entry: String,
    },
    /// The count of live tokens is not that of open tasks.
    Miscounted {
        /// What is stored.
        stored: i64,
        /// What there is.
        open: usize,
    },
    /// It lives, and none of its tasks is open.
    NothingOpen,
    /// It is over, and some of its tasks are open, or it does not say when it ended.
    HalfEnded {
        /// What it is.
        status: Status,
    },
    /// A field of a snapshot cannot be read, or is missing.
    Unreadable {
        /// The field.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A snapshot of a format that this version does not know.
    UnknownFormat {
        /// The format.
        found: String,
    },
    /// The key holds something of another type.
    WrongType {
        /// The type that it should have.
        expected: &'static str,
        /// The one that it has.
        found: String,
    },
    /// A claim key that no running task holds, or that never expires.
    StrayClaim {
        /// Its value.
        value: String,
    },
    /// It belongs to an instance that is not there.
    Orphan,
    /// A ready list has entries, and is not in `lists`.
    NotListed,
    /// An entry was set aside, since it could not be read.
    Aside {
        /// Which.
        ticket: String,
        /// Why.
        reason: String,
    },
    /// Instances of a definition live, and no worker has it.
    NoWorker {
        /// The workflow.
        workflow: WorkflowName,
        /// The definition.
        definition: DefinitionHash,
        /// How many live.
        instances: usize,
    },
}

/// Entries hold NUL characters, which no terminal shows.
fn shown(entry: &str) -> String {
    crate::ids::shorten(&entry.replace('\0', " "))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandsNowhere { task, state } => match state {
                TaskState::Ready => write!(
                    f,
                    "task `{task}` is ready and stands in no ready list: no worker will find it"
                ),
                TaskState::Delayed => write!(
                    f,
                    "task `{task}` is delayed and has no ticket in `delayed`: it will never be due"
                ),
                _ => write!(
                    f,
                    "task `{task}` is {state} and has no ticket in `running`: nobody will notice if its worker dies"
                ),
            },
            Self::NoClaim { task } => write!(
                f,
                "task `{task}` is running and has no claim key, and no worker has set it again"
            ),
            Self::NotAwaited { task } => write!(
                f,
                "task `{task}` waits for a signal and is not in the field `waits`: no signal will find it"
            ),
            Self::StillParked => {
                f.write_str("it has parked tickets, but the instance is not paused: no worker will find them")
            }
            Self::NotIndexed { index } => write!(f, "it is missing in the index `{index}`"),
            Self::WronglyIndexed { index, entry } => {
                write!(f, "`{}` stands in `{index}` and does not belong there", shown(entry))
            }
            Self::Miscounted { stored, open } => write!(
                f,
                "the field `open` says {stored} live tokens, its tasks say {open}: it would end too early or never"
            ),
            Self::NothingOpen => {
                f.write_str("it lives and none of its tasks is open: nothing will ever happen to it")
            }
            Self::HalfEnded { status } => write!(
                f,
                "it is {status}, but it has open tasks or does not say when it ended"
            ),
            Self::Unreadable { field, reason } => write!(f, "{field} cannot be read: {reason}"),
            Self::UnknownFormat { found } => {
                write!(f, "it has format {found}, which this version does not know")
            }
            Self::WrongType { expected, found } => {
                write!(f, "it holds a {found}, where a {expected} belongs")
            }
            Self::StrayClaim { value } => write!(
                f,
                "no running task has this claim, and it does not expire as it should (`{}`)",
                shown(value)
            ),
            Self::Orphan => f.write_str("it belongs to an instance that is not there"),
            Self::NotListed => {
                f.write_str("this ready list has entries and is not in `lists`: counts and listings do not see it")
            }
            Self::Aside { ticket, reason } => {
                write!(f, "`{}` was set aside: {reason}", shown(ticket))
            }
            Self::NoWorker {
                workflow,
                definition,
                instances,
            } => write!(
                f,
                "{instances} live instance(s) of `{workflow}` ({definition}) have no worker: none that lives has this definition"
            ),
        }
    }
}

impl Problem {
    /// What to do about it where it is not mended.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::StandsNowhere {
                state: TaskState::Delayed,
                ..
            } => "when it was due is lost; `tenure terminate` the instance and start it anew",
            Self::StandsNowhere { .. } | Self::NotAwaited { .. } => {
                "where it belongs cannot be told without its published definition; start a worker that has it, or `tenure terminate` the instance and start it anew"
            }
            Self::NothingOpen | Self::HalfEnded { .. } => {
                "what should happen next cannot be told; `tenure terminate` the instance and start it anew, or `tenure delete` it"
            }
            Self::Unreadable { .. } => {
                "it cannot be told from anything else; write what belongs there by hand, or `tenure terminate` the instance and start it anew"
            }
            Self::UnknownFormat { .. } => "use a newer version of tenure; it was left untouched",
            Self::WrongType { .. } => "something else wrote it; look at it, and remove it by hand",
            Self::Aside { .. } => {
                "when it can be read (after an upgrade, or when the instance is mended) `tenure doctor --fix` brings it back"
            }
            Self::NoWorker { .. } => "start a worker that has this definition",
            Self::NoClaim { .. }
            | Self::StillParked
            | Self::NotIndexed { .. }
            | Self::WronglyIndexed { .. }
            | Self::Miscounted { .. }
            | Self::StrayClaim { .. }
            | Self::Orphan
            | Self::NotListed => "run `tenure doctor --fix` again",
        }
    }

    /// What mending does, in a few words.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::StandsNowhere { state, .. } => match state {
                TaskState::Ready => "its entry is in its ready list again",
                TaskState::Delayed => "its ticket is among the delayed again",
                _ => "its ticket is in `running` again",
            },
            Self::NoClaim { .. } => {
                "its worker holds it again if that is alive, else it was taken back to run again"
            }
            Self::NotAwaited { .. } => "it is in `waits` again",
            Self::StillParked => "its tickets are in their lists again",
            Self::NotIndexed { .. } => "it is in the index again",
            Self::WronglyIndexed { .. } => "it was removed there",
            Self::Miscounted { .. } => "the open tasks were counted and stored",
            Self::Unreadable { .. } => "the field was restored",
            Self::StrayClaim { .. } => "the claim key was deleted, or expires again",
            Self::Orphan => "it was deleted",
            Self::NotListed => "it is in `lists` again",
            Self::Aside { .. } => {
                "it can be read now and is back in its list, or its time is over and it was dropped"
            }
            Self::NothingOpen
            | Self::HalfEnded { .. }
            | Self::UnknownFormat { .. }
            | Self::WrongType { .. }
            | Self::NoWorker { .. } => "nothing",
        }
    }
}
