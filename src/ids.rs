//! Names and ids: what is allowed in each, and how each is written in Redis.
//!
//! A value of one of these types is known to be well formed; every constructor says what is wrong otherwise. All of
//! them are cheap to clone.

use std::{fmt, num::NonZeroU16, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest name of a task, queue, workflow, worker or namespace, in bytes.
pub const MAX_NAME: usize = 64;
/// The longest worker id, in bytes: it stands in every task record.
pub const MAX_WORKER_ID: usize = 30;
/// The longest instance id, in bytes.
pub const MAX_INSTANCE_ID: usize = 256;

/// An id or a name that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// A name is empty, too long, or holds a character outside `[A-Za-z0-9_.-]`.
    #[error(
        "`{value}` is not a valid {kind}: it must be 1 to {max} characters of A-Z a-z 0-9 _ . -"
    )]
    Name {
        /// What the name was for.
        kind: &'static str,
        /// What was given, shortened.
        value: String,
        /// The longest name allowed here.
        max: usize,
    },
    /// An instance id is empty, too long, or holds a character that is reserved.
    #[error(
        "`{value}` is not a valid instance id: it must be 1 to {MAX_INSTANCE_ID} bytes without control characters, `/` (children) and `~` (placement)"
    )]
    Instance {
        /// What was given, shortened.
        value: String,
    },
    /// Text that is not a UUID stands where a run is expected.
    #[error(
        "`{value}` is not a run: it must be a UUID such as 0198c0de-7e57-7000-8000-00000000abcd"
    )]
    Run {
        /// What was given, shortened.
        value: String,
    },
    /// A stored id (entry, ticket, list, record) cannot be read.
    #[error("`{value}` is not a valid {kind}")]
    Stored {
        /// What should have stood there.
        kind: &'static str,
        /// What stood there, shortened.
        value: String,
    },
}

pub(crate) fn shorten(value: &str) -> String {
    let mut shown: String = value
        .chars()
        .take(80)
        .flat_map(char::escape_default)
        .collect();
    if value.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}

/// A UUIDv7 that nobody else has; from a seed where a test set one for this thread.
fn fresh_uuid() -> Uuid {
    #[cfg(feature = "testing")]
    if let Some(seeded) = crate::testing::uuid() {
        return seeded;
    }
    Uuid::now_v7()
}

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

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(value: &str) -> Result<Self, IdError> {
                Self::new(value)
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdError;
            fn try_from(value: String) -> Result<Self, IdError> {
                Self::new(value)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.0.as_ref().into()
            }
        }
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
    /// An address for hints: the id of a worker or of a client.
    MailboxId, "mailbox id", MAX_NAME
);

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

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TaskName {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        Self::new(value)
    }
}

impl TryFrom<String> for TaskName {
    type Error = IdError;
    fn try_from(value: String) -> Result<Self, IdError> {
        Self::new(value)
    }
}

impl From<TaskName> for String {
    fn from(value: TaskName) -> String {
        value.0.as_ref().into()
    }
}

/// The user-chosen name of one execution of a workflow: 1 to 256 bytes of UTF-8 without control characters, `/` and `~`.
///
/// [`InstanceId::placed`] makes an id that lives in the partition of its placement; children of an instance are made by
/// the engine and carry a `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// Checks and wraps an id that a user chose.
    ///
    /// # Errors
    /// [`IdError::Instance`] says what is allowed.
    pub fn new(value: impl AsRef<str>) -> Result<Self, IdError> {
        let value = value.as_ref();
        if value.contains(['/', '~']) {
            return Err(IdError::Instance {
                value: shorten(value),
            });
        }
        Self::stored(value)
    }

    /// `<placement>~<id>`: all ids of one placement live in one partition.
    ///
    /// # Errors
    /// [`IdError::Instance`] says what is allowed.
    pub fn placed(placement: impl AsRef<str>, id: impl AsRef<str>) -> Result<Self, IdError> {
        let (placement, id) = (Self::new(placement)?, Self::new(id)?);
        Self::stored(&format!("{placement}~{id}"))
    }

    /// A fresh id for an instance whose name does not matter: a UUIDv7.
    #[must_use]
    pub fn unique() -> Self {
        Self(fresh_uuid().to_string().into())
    }

    /// An id as it stands in the store: placement and children are allowed.
    pub(crate) fn stored(value: &str) -> Result<Self, IdError> {
        if (1..=MAX_INSTANCE_ID).contains(&value.len()) && !value.chars().any(char::is_control) {
            Ok(Self(value.into()))
        } else {
            Err(IdError::Instance {
                value: shorten(value),
            })
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The partition that this instance lives in: `CRC16(placement or root) mod 16384 mod partitions`.
    #[must_use]
    pub fn partition(&self, partitions: NonZeroU16) -> Partition {
        let root = self.0.split('/').next().unwrap_or(&self.0);
        let key = root
            .split_once('~')
            .map_or(root, |(placement, _)| placement);
        let slot = crc16::State::<crc16::XMODEM>::calculate(key.as_bytes()) % 16384;
        Partition(slot % partitions.get())
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for InstanceId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for InstanceId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        Self::stored(value)
    }
}

impl TryFrom<String> for InstanceId {
    type Error = IdError;
    fn try_from(value: String) -> Result<Self, IdError> {
        Self::stored(&value)
    }
}

impl From<InstanceId> for String {
    fn from(value: InstanceId) -> String {
        value.0.as_ref().into()
    }
}

/// A share of a namespace that lives in one hash slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(u16);

impl Partition {
    /// All partitions of an installation with `count` of them.
    pub fn all(count: NonZeroU16) -> impl Iterator<Item = Self> {
        (0..count.get()).map(Self)
    }

    /// The number in the hash tag.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One start of an instance id, made by the client: a UUIDv7.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(Uuid);

impl RunId {
    /// A new run.
    #[must_use]
    pub fn unique() -> Self {
        Self(fresh_uuid())
    }

    /// The last 12 characters: what entries carry to tell runs of one id apart.
    #[must_use]
    pub fn tail(self) -> RunTail {
        let mut tail = [0; 12];
        let mut buffer = Uuid::encode_buffer();
        tail.copy_from_slice(&self.0.hyphenated().encode_lower(&mut buffer).as_bytes()[24..]);
        RunTail(tail)
    }
}

impl From<Uuid> for RunId {
    fn from(value: Uuid) -> Self {
        Self(value)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        Uuid::try_parse(value).map(Self).map_err(|_| IdError::Run {
            value: shorten(value),
        })
    }
}

/// The last 12 characters of a [`RunId`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunTail([u8; 12]);

impl RunTail {
    /// The tail as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for RunTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RunTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for RunTail {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let bytes: [u8; 12] = value.as_bytes().try_into().map_err(|_| IdError::Stored {
            kind: "run tail",
            value: shorten(value),
        })?;
        if bytes.iter().all(u8::is_ascii_hexdigit) {
            Ok(Self(bytes))
        } else {
            Err(IdError::Stored {
                kind: "run tail",
                value: shorten(value),
            })
        }
    }
}

/// What makes one claiming call different from every other: 8 characters, never repeated for one task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce([u8; 8]);

impl Nonce {
    /// A new nonce.
    #[must_use]
    pub fn random() -> Self {
        Self(std::array::from_fn(|_| fastrand::alphanumeric() as u8))
    }

    /// The nonce as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Nonce {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.as_bytes().try_into() {
            Ok(bytes) if value.bytes().all(|b| b.is_ascii_alphanumeric()) => Ok(Self(bytes)),
            _ => Err(IdError::Stored {
                kind: "nonce",
                value: shorten(value),
            }),
        }
    }
}

/// The hash of a workflow's definition: 16 hexadecimal characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionHash([u8; 16]);

impl DefinitionHash {
    /// The hash as text, from the first 8 bytes of a digest.
    #[must_use]
    pub fn from_digest(digest: [u8; 8]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        Self(std::array::from_fn(|i| {
            let byte = digest[i / 2];
            HEX[usize::from(if i % 2 == 0 { byte >> 4 } else { byte & 15 })]
        }))
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DefinitionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DefinitionHash {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.as_bytes().try_into() {
            Ok(bytes)
                if value
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) =>
            {
                Ok(Self(bytes))
            }
            _ => Err(IdError::Stored {
                kind: "definition hash",
                value: shorten(value),
            }),
        }
    }
}

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
}

impl fmt::Display for ValueField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input => f.write_str("input"),
            Self::Output(task) => write!(f, "out:{task}"),
        }
    }
}

impl FromStr for ValueField {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        match value.split_once(':') {
            None if value == "input" => Ok(Self::Input),
            Some(("out", task)) => Ok(Self::Output(TaskName::new(task)?)),
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
    /// The last attempt went past its deadline and its worker did not say so: let the engine apply the retry policy.
    /// Written as a `!` in front of the input reference.
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
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\0{}", self.list, self.entry())
    }
}

impl FromStr for Ticket {
    type Err = IdError;
    fn from_str(value: &str) -> Result<Self, IdError> {
        let stored = || IdError::Stored {
            kind: "ticket",
            value: shorten(value),
        };
        let mut parts = value.splitn(4, '\0');
        let mut next = || parts.next().ok_or_else(stored);
        let (list, id, task, rest) = (next()?, next()?, next()?, next()?);
        let (tail, reference) = rest.split_at_checked(12).ok_or_else(stored)?;
        let (purpose, reference) = reference
            .strip_prefix('!')
            .map_or((Purpose::Run, reference), |rest| (Purpose::TimedOut, rest));
        Ok(Self {
            list: list.parse()?,
            id: InstanceId::stored(id)?,
            task: TaskName::new(task)?,
            tail: tail.parse()?,
            purpose,
            input: reference.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_round_trips<T>(values: &[T])
    where
        T: FromStr<Err = IdError> + fmt::Display + PartialEq + fmt::Debug,
    {
        for value in values {
            assert_eq!(&value.to_string().parse::<T>().unwrap(), value);
        }
    }

    #[test]
    fn names_are_1_to_64_characters_of_the_allowed_ones() {
        for good in ["a", "A-Za-z0-9_.-", &"x".repeat(64)] {
            assert_eq!(QueueName::new(good).unwrap().as_str(), good);
            assert_eq!(TaskName::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            " ",
            "a b",
            "a:b",
            "a/b",
            "a~b",
            "ä",
            "a\0",
            &"x".repeat(65),
        ] {
            let error = WorkflowName::new(bad).unwrap_err().to_string();
            assert!(
                error.contains("1 to 64 characters of A-Z a-z 0-9 _ . -"),
                "{error}"
            );
            TaskName::new(bad).unwrap_err();
            Namespace::new(bad).unwrap_err();
        }
        WorkerId::new("x".repeat(30)).unwrap();
        WorkerId::new("x".repeat(31)).unwrap_err();
    }

    #[test]
    fn a_bad_name_is_shown_shortened_and_without_control_characters() {
        let error = QueueName::new("\n".repeat(1000)).unwrap_err().to_string();
        assert!(error.len() < 400, "{error}");
        assert!(!error.contains('\n') && error.contains("\\n") && error.contains('…'));
    }

    #[test]
    fn names_with_a_separator_cannot_be_made_so_no_two_keys_meet() {
        // case 69
        for separator in [':', '\0', '{', '}', ' ', '~', '/'] {
            TaskName::new(format!("a{separator}b")).unwrap_err();
            QueueName::new(format!("a{separator}b")).unwrap_err();
        }
    }

    #[test]
    fn a_task_of_a_loop_carries_its_iteration() {
        for good in ["a#0", "a#1", "a#4294967295"] {
            TaskName::new(good).unwrap();
        }
        for bad in [
            "a#",
            "#1",
            "a#01",
            "a#-1",
            "a#+1",
            "a#1#2",
            "a#4294967296",
            "a#x",
        ] {
            TaskName::new(bad).unwrap_err();
        }
    }

    #[test]
    fn instance_ids_leave_out_what_is_reserved_and_allow_all_else() {
        for good in ["a", "order:42", "ä 🙂 {x}", &"x".repeat(256)] {
            assert_eq!(InstanceId::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "a/b",
            "a~b",
            "a\0b",
            "a\nb",
            &"x".repeat(257),
            &"ä".repeat(129),
        ] {
            InstanceId::new(bad).unwrap_err();
        }
        assert_eq!(InstanceId::placed("p", "a").unwrap().as_str(), "p~a");
        InstanceId::placed("", "a").unwrap_err();
        InstanceId::placed("p~q", "a").unwrap_err();
        InstanceId::placed("x".repeat(200), "y".repeat(56)).unwrap_err();
    }

    #[test]
    fn ids_of_one_placement_and_children_live_together() {
        let partitions = NonZeroU16::new(1000).unwrap();
        let of = |id: &str| InstanceId::stored(id).unwrap().partition(partitions);
        assert_eq!(of("p~a"), of("p~b"));
        assert_eq!(of("p~a"), of("p"));
        assert_eq!(of("root"), of("root/child#1/grandchild"));
        assert_eq!(of("p~a"), of("p~a/child"));
        // The slot that Redis Cluster gives to this key, 12739, and what 1000 partitions make of it.
        assert_eq!(of("123456789").number(), 739);
        let one = NonZeroU16::new(1).unwrap();
        assert_eq!(InstanceId::unique().partition(one).number(), 0);
        assert_eq!(Partition::all(partitions).count(), 1000);
    }

    #[test]
    fn the_tail_of_a_run_is_the_end_of_its_text() {
        let run: RunId = "0198c0de-7e57-7000-8000-00000000abcd".parse().unwrap();
        assert_eq!(run.tail().as_str(), "00000000abcd");
        text_round_trips(&[run]);
        text_round_trips(&[run.tail()]);
        "not-a-run".parse::<RunId>().unwrap_err();
        "00000000abc".parse::<RunTail>().unwrap_err();
        "00000000abcg".parse::<RunTail>().unwrap_err();
    }

    #[test]
    fn worker_ids_and_nonces_differ_each_time() {
        let (a, b) = (WorkerId::unique(), WorkerId::unique());
        assert_ne!(a, b);
        assert!(a.as_str().len() <= MAX_WORKER_ID);
        assert_eq!(WorkerId::new(a.as_str()).unwrap(), a);
        let nonce = Nonce::random();
        assert_ne!(nonce, Nonce::random());
        text_round_trips(&[nonce]);
        "1234567".parse::<Nonce>().unwrap_err();
        "1234 678".parse::<Nonce>().unwrap_err();
    }

    #[test]
    fn a_hash_is_16_hexadecimal_characters() {
        let hash = DefinitionHash::from_digest([0, 1, 0x2f, 0xff, 0xa0, 9, 0x90, 0x0a]);
        assert_eq!(hash.as_str(), "00012fffa009900a");
        text_round_trips(&[hash]);
        "00012FFFA009900A".parse::<DefinitionHash>().unwrap_err();
        "00012fffa009900".parse::<DefinitionHash>().unwrap_err();
    }

    fn ticket(purpose: Purpose, input: InputRef) -> Ticket {
        Ticket {
            list: "default:00012fffa009900a".parse().unwrap(),
            id: InstanceId::stored("p~order 42 {x}:y/child").unwrap(),
            task: TaskName::new("a#3").unwrap(),
            tail: "a0000000abcd".parse().unwrap(),
            purpose,
            input,
        }
    }

    #[test]
    fn a_ticket_is_its_list_and_its_entry_and_reads_back() {
        let output = InputRef::Field {
            field: ValueField::Output(TaskName::new("a").unwrap()),
            len: 104,
        };
        let one = ticket(Purpose::Run, output);
        assert_eq!(
            one.to_string(),
            "default:00012fffa009900a\0p~order 42 {x}:y/child\0a#3\0a0000000abcdout:a 104"
        );
        assert_eq!(one.to_string(), format!("{}\0{}", one.list, one.entry()));
        let input = InputRef::Field {
            field: ValueField::Input,
            len: 0,
        };
        let overdue = ticket(Purpose::TimedOut, InputRef::Join);
        assert!(overdue.entry().ends_with("a0000000abcd!@"));
        text_round_trips(&[one, overdue, ticket(Purpose::TimedOut, input)]);
    }

    #[test]
    fn a_broken_ticket_is_an_error() {
        for bad in [
            "",
            "default:00012fffa009900a",
            "default:00012fffa009900a\0id\0a",
            "default:00012fffa009900a\0id\0a\0short",
            "default:00012fffa009900a\0id\0a\0a0000000abcd",
            "default:00012fffa009900a\0id\0a\0a0000000abcdinput",
            "default:00012fffa009900a\0id\0a\0a0000000abcdinput x",
            "default:00012fffa009900a\0id\0a\0a0000000abcdin:a 1",
            "default:00012fffa009900a\0id\0a\0a0000000abc🙂@",
            "default\0id\0a\0a0000000abcd@",
        ] {
            bad.parse::<Ticket>().unwrap_err();
        }
    }

    #[test]
    fn ids_are_checked_when_they_are_deserialized() {
        assert!(serde_json::from_str::<TaskName>(r#""a""#).is_ok());
        assert!(serde_json::from_str::<TaskName>(r#""a b""#).is_err());
        assert!(serde_json::from_str::<InstanceId>(r#""""#).is_err());
    }
}
