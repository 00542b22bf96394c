//! What stands in ready lists, and how to queue it again.

use std::{fmt, str::FromStr};

use super::{
    DefinitionHash, IdError, InstanceId, QueueName, RunTail, SharedKey, TaskName, error::shorten,
};

/// A ready list: a queue and a definition, so that each of its readers may run all that stands in it.
///
/// Written `<queue>:<definition>`; its key is `{ns:p}:ready:<queue>:<definition>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListName {
    /// The queue.
    pub queue: QueueName,
    /// The definition whose workers read this list.
    pub definition: DefinitionHash,
}

impl fmt::Display for ListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.queue, self.definition)
    }
}

impl FromStr for ListName {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let stored = || IdError::Stored {
            kind: "list name",
            value: shorten(value),
        };
        let (queue, definition) = value.split_once(':').ok_or_else(stored)?;
        Ok(Self {
            queue: QueueName::new(queue)?,
            definition: definition.parse()?,
        })
    }
}

/// Where the input of a task is stored in its snapshot, and how long it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputRef {
    /// One field of the snapshot: `input 100` or `out:<task> 104`.
    Field {
        /// The field.
        field: ValueField,
        /// Its length in bytes.
        len: usize,
    },
    /// The outputs of all branches that meet here, which the worker assembles: `@`.
    Join,
}

impl InputRef {
    /// Whether it is this one field.
    #[must_use]
    pub fn is_of(&self, wanted: &ValueField) -> bool {
        matches!(self, Self::Field { field, .. } if field == wanted)
    }
}

impl fmt::Display for InputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { field, len } => write!(f, "{field} {len}"),
            Self::Join => f.write_str("@"),
        }
    }
}

impl FromStr for InputRef {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let stored = || IdError::Stored {
            kind: "input reference",
            value: shorten(value),
        };
        if value == "@" {
            return Ok(Self::Join);
        }
        let (field, len) = value.split_once(' ').ok_or_else(stored)?;
        Ok(Self::Field {
            field: field.parse()?,
            len: len.parse().map_err(|_| stored())?,
        })
    }
}

/// A field of a snapshot that holds a payload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueField {
    /// `input`: what the instance was started with.
    Input,
    /// `out:<task>`: the result of a task.
    Output(TaskName),
    /// `progress:<task>`: how far a task says it is.
    Progress(TaskName),
    /// `set:<key>`: a value that the tasks of an instance share.
    Shared(SharedKey),
}

impl fmt::Display for ValueField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::Output(task) => write!(f, "out:{task}"),
            Self::Progress(task) => write!(f, "progress:{task}"),
            Self::Shared(key) => write!(f, "set:{key}"),
        }
    }
}

impl FromStr for ValueField {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.split_once(':') {
            None if value == "input" => Ok(Self::Input),
            Some(("out", task)) => Ok(Self::Output(TaskName::new(task)?)),
            Some(("progress", task)) => Ok(Self::Progress(TaskName::new(task)?)),
            Some(("set", key)) => Ok(Self::Shared(SharedKey::new(key)?)),
            _ => Err(IdError::Stored {
                kind: "payload field",
                value: shorten(value),
            }),
        }
    }
}

/// What a claimed entry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Run the node: call the handler, or let the engine go past a node without user code.
    Run,
    /// The last attempt went past its deadline and its worker did not say so, or the signal that the node waited for did
    /// not come in time: let the engine apply what the definition says. Written as a `!` in front of the input reference.
    TimedOut,
}

/// An entry with the name of its list: all that is needed to queue a task again.
///
/// Written `<list>\0<id>\0<task>\0<run tail><ref>`; without `<list>\0` it is the *entry* that stands in the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The ready list.
    pub list: ListName,
    /// The instance.
    pub id: InstanceId,
    /// The task.
    pub task: TaskName,
    /// Which run of the instance.
    pub tail: RunTail,
    /// What to do.
    pub purpose: Purpose,
    /// Where the input is.
    pub input: InputRef,
}

impl Ticket {
    /// The timer of a node that waits for a signal: in the list that it goes to when its time is over.
    #[must_use]
    pub fn overdue(list: ListName, id: InstanceId, task: TaskName, tail: RunTail) -> Self {
        Self {
            input: InputRef::Field {
                field: ValueField::Output(task.clone()),
                len: 0,
            },
            purpose: Purpose::TimedOut,
            list,
            id,
            task,
            tail,
        }
    }

    /// The entry as it stands in its ready list.
    #[must_use]
    pub fn entry(&self) -> String {
        let mark = match self.purpose {
            Purpose::Run => "",
            Purpose::TimedOut => "!",
        };
        format!(
            "{}\0{}\0{}{mark}{}",
            self.id, self.task, self.tail, self.input
        )
    }

    /// The ticket of an entry in this list.
    pub(crate) fn of_entry(list: ListName, entry: &str) -> Result<Self, IdError> {
        let mut parts = entry.splitn(3, '\0');
        let mut next = || parts.next().ok_or_else(|| unreadable(entry));
        let (id, task, rest) = (next()?, next()?, next()?);
        let (tail, reference) = rest.split_at_checked(12).ok_or_else(|| unreadable(entry))?;
        let (purpose, reference) = reference
            .strip_prefix('!')
            .map_or((Purpose::Run, reference), |rest| (Purpose::TimedOut, rest));
        Ok(Self {
            list,
            id: InstanceId::stored(id)?,
            task: TaskName::new(task)?,
            tail: tail.parse()?,
            purpose,
            input: reference.parse()?,
        })
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\0{}", self.list, self.entry())
    }
}

impl FromStr for Ticket {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let (list, entry) = value.split_once('\0').ok_or_else(|| unreadable(value))?;
        Self::of_entry(list.parse()?, entry)
    }
}

fn unreadable(value: &str) -> IdError {
    IdError::Stored {
        kind: "ticket",
        value: shorten(value),
    }
}
