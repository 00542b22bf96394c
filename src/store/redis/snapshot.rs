//! Snapshots, read from the fields that are stored.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::Inner;
use crate::{
    codec,
    error::StoreError,
    ids::{
        DefinitionHash, InstanceId, QueueName, RunId, SignalId, SignalName, TaskName, ValueField,
        WorkflowName,
    },
    store::{
        EarlySignal, Header, JoinRecord, Snapshot, StartMeta, Status, Summary, TaskRecord,
        WaitRecord,
    },
    time::Timestamp,
};

/// The format of snapshots that this version reads and writes.
const FORMAT: u32 = 1;

impl Header {
    /// The fields of a snapshot that make up its header.
    pub(super) const FIELDS: [&'static str; 8] = [
        "v", "run", "status", "about", "times", "result", "error", "control",
    ];
}

/// The fields of one snapshot.
pub(super) struct Fields<'a> {
    inner: &'a Inner,
    id: &'a InstanceId,
    map: HashMap<String, Bytes>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(inner: &'a Inner, id: &'a InstanceId) -> Self {
        Self {
            inner,
            id,
            map: HashMap::new(),
        }
    }

    pub(super) fn insert(&mut self, name: &str, value: Bytes) {
        self.map.insert(name.to_owned(), value);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    fn corrupt(&self, what: &str, reason: impl std::fmt::Display) -> StoreError {
        self.inner.corrupt(self.id, what, reason.to_string())
    }

    fn optional<T>(&self, name: &str) -> Result<Option<T>, StoreError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(bytes) = self.map.get(name) else {
            return Ok(None);
        };
        let text = str::from_utf8(bytes).map_err(|e| self.corrupt(name, e))?;
        text.parse()
            .map(Some)
            .map_err(|e: T::Err| self.corrupt(name, e))
    }

    fn required<T>(&self, name: &str) -> Result<T, StoreError>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        self.optional(name)?
            .ok_or_else(|| self.corrupt(name, "it is missing"))
    }

    fn decoded<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        self.map
            .get(name)
            .map(|bytes| codec::decode(bytes))
            .transpose()
            .map_err(|e| self.corrupt(name, e))
    }

    fn time(&self, name: &str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional(name)?.map(Timestamp::from_millis))
    }
}

/// `about`: `<workflow> <definition> <queue> <max crashes> <created at, ms since 1970>`, written once. One field, since
/// each costs a small instance some 60 bytes under the default settings of Redis.
struct About {
    workflow: WorkflowName,
    definition: DefinitionHash,
    queue: QueueName,
    max_crashes: u32,
    created_at: Timestamp,
}

impl About {
    fn of(fields: &Fields<'_>) -> Result<Self, StoreError> {
        let text: String = fields.required("about")?;
        Self::parse(&text)
            .ok_or_else(|| fields.corrupt("about", format!("`{}`", crate::ids::shorten(&text))))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            workflow: words.next()?.parse().ok()?,
            definition: words.next()?.parse().ok()?,
            queue: words.next()?.parse().ok()?,
            max_crashes: words.next()?.parse().ok()?,
            created_at: Timestamp::from_millis(words.next()?.parse().ok()?),
        })
    }
}

/// When an instance was created, from the text of its `about`.
pub(super) fn created_at(about: &str) -> Option<Timestamp> {
    About::parse(about).map(|about| about.created_at)
}

/// `times`: `<started at> <finished at> <field of the result>`, as far as it has come; `-` for what was not. An instance
/// that ended otherwise has `finished_at`, and `result` stands alone while other branches go on.
struct Times {
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    result: Option<ValueField>,
}

impl Times {
    fn of(fields: &Fields<'_>) -> Result<Self, StoreError> {
        let text: String = fields.optional("times")?.unwrap_or_default();
        let wrong = || fields.corrupt("times", format!("`{}`", crate::ids::shorten(&text)));
        let mut words = text.split_ascii_whitespace();
        let mut time = || match words.next() {
            None | Some("-") => Ok(None),
            Some(word) => word.parse().map(Some).map_err(|_| wrong()),
        };
        let (started, finished): (Option<i64>, Option<i64>) = (time()?, time()?);
        let result = words.next().map(str::parse).transpose();
        Ok(Self {
            started_at: started.map(Timestamp::from_millis),
            finished_at: match fields.time("finished_at")? {
                None => finished.map(Timestamp::from_millis),
                own => own,
            },
            result: match result.map_err(|_| wrong())? {
                None => fields.optional("result")?,
                own => own,
            },
        })
    }
}

/// Reads a header, after a look at the format.
pub(super) fn header(fields: &Fields<'_>) -> Result<Header, StoreError> {
    let format: String = fields.required("v")?;
    if format != FORMAT.to_string() {
        return Err(fields.inner.format(fields.id, format));
    }
    let about = About::of(fields)?;
    Ok(Header {
        run: fields.required("run")?,
        status: fields.required("status")?,
        workflow: about.workflow,
        definition: about.definition,
        result: Times::of(fields)?.result,
        error: fields.decoded("error")?,
        control: fields.decoded("control")?,
    })
}

fn join(record: &str) -> Option<JoinRecord> {
    let mut words = record.splitn(6, ' ');
    let mut number = || words.next()?.parse().ok();
    let (arrived, failed, need, total) = (number()?, number()?, number()?, number()?);
    let fired = match words.next()? {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    let names = words.next()?;
    let who = names
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| TaskName::new(name).ok())
        .collect::<Option<_>>()?;
    Some(JoinRecord {
        arrived,
        failed,
        need,
        total,
        fired,
        who,
    })
}

/// What a listing shows, from the fields of [`Header`], times, `meta` and tasks.
pub(super) fn summary(fields: &Fields<'_>) -> Result<Summary, StoreError> {
    let header = header(fields)?;
    let mut tasks = BTreeMap::new();
    for name in fields.map.keys() {
        if let Some(task) = name.strip_prefix("task:") {
            let record: TaskRecord = fields.required(name)?;
            if record.state.is_open() {
                tasks.insert(TaskName::new(task)?, record);
            }
        }
    }
    let times = Times::of(fields)?;
    Ok(Summary {
        id: fields.id.clone(),
        run: header.run,
        status: header.status,
        workflow: header.workflow,
        definition: header.definition,
        created_at: About::of(fields)?.created_at,
        started_at: times.started_at,
        finished_at: times.finished_at,
        meta: StartMeta::lenient(fields.map.get("meta").map(AsRef::as_ref)),
        tasks,
        error: header.error,
    })
}

/// ` <signal>=<task>=<list>` for each node that waits.
fn waits(text: &str) -> Option<Vec<WaitRecord>> {
    let wait = |word: &str| {
        let (signal, rest) = word.split_once('=')?;
        let (task, list) = rest.split_once('=')?;
        Some(WaitRecord {
            signal: SignalName::new(signal).ok()?,
            task: TaskName::new(task).ok()?,
            list: list.parse().ok()?,
        })
    };
    text.split_ascii_whitespace().map(wait).collect()
}

/// ` <name>=<id>` for each signal that came early; `lens` has the lengths of their payloads.
fn early(text: &str, lens: &HashMap<String, usize>) -> Option<Vec<EarlySignal>> {
    let signal = |word: &str| {
        let (name, id) = word.split_once('=')?;
        Some(EarlySignal {
            name: SignalName::new(name).ok()?,
            id: SignalId::new(id).ok()?,
            len: *lens.get(id)?,
        })
    };
    text.split_ascii_whitespace().map(signal).collect()
}

impl Fields<'_> {
    /// A field that is a list of words, read by a function that finds nothing when one of them is wrong.
    fn words<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, StoreError> {
        let text: String = self.optional(name)?.unwrap_or_default();
        read(&text).ok_or_else(|| self.corrupt(name, format!("`{}`", crate::ids::shorten(&text))))
    }
}

/// Of all fields, with the lengths of the payloads and of those of early signals.
pub(super) fn snapshot(
    fields: &Fields<'_>,
    values: BTreeMap<ValueField, usize>,
    lens: &HashMap<String, usize>,
) -> Result<Snapshot, StoreError> {
    let header = header(fields)?;
    let mut tasks = BTreeMap::new();
    let mut joins = BTreeMap::new();
    for name in fields.map.keys() {
        if let Some(task) = name.strip_prefix("task:") {
            let record: TaskRecord = fields.required(name)?;
            tasks.insert(TaskName::new(task)?, record);
        } else if let Some(task) = name.strip_prefix("join:") {
            let record: String = fields.required(name)?;
            let record =
                join(&record).ok_or_else(|| fields.corrupt(name, "it is not a join record"))?;
            joins.insert(TaskName::new(task)?, record);
        }
    }
    let replaced: Option<String> = fields.optional("replaced")?;
    let replaced = replaced
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map(str::parse::<RunId>)
        .collect::<Result<_, _>>()
        .map_err(|e| fields.corrupt("replaced", e))?;
    let (about, times) = (About::of(fields)?, Times::of(fields)?);
    let open = match fields.optional("open")? {
        Some(open) => open,
        None if header.status == Status::Completed => 0,
        None => 1,
    };
    Ok(Snapshot {
        header,
        queue: about.queue,
        created_at: about.created_at,
        started_at: times.started_at,
        finished_at: times.finished_at,
        open,
        max_crashes: about.max_crashes,
        retries: fields.optional("retries")?.unwrap_or(0),
        replaced,
        meta: fields.map.get("meta").cloned(),
        tasks,
        joins,
        waits: fields.words("waits", waits)?,
        early: fields.words("signals", |text| early(text, lens))?,
        signals: fields.words("awaits", |text| {
            let names = text.split_ascii_whitespace();
            names.map(|name| SignalName::new(name).ok()).collect()
        })?,
        values,
    })
}
