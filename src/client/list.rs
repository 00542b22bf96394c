//! Which instances there are: walks the places where they stand, page by page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use super::{error::ClientError, producer::Client};
use crate::{
    ids::{IdError, InstanceId, Partition, WorkflowName},
    options,
    store::{Found, Place, Position, Status, Store, Summary, TaskState},
    time::Timestamp,
};

/// The most entries that are looked at with one call when a page is nearly full.
const PIECE: usize = 100;

/// Which instances to list, and how many at a time. Default: all, 100 a page.
#[derive(Debug, Clone)]
#[must_use]
pub struct Filter {
    workflow: Option<WorkflowName>,
    statuses: Vec<Status>,
    labels: BTreeMap<String, String>,
    created_after: Option<Timestamp>,
    created_before: Option<Timestamp>,
    id_prefix: String,
    limit: usize,
    cursor: Option<Cursor>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            workflow: None,
            statuses: Vec::new(),
            labels: BTreeMap::new(),
            created_after: None,
            created_before: None,
            id_prefix: String::new(),
            limit: 100,
            cursor: None,
        }
    }
}

impl Filter {
    /// All instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of a workflow, whatever their definition.
    pub fn workflow(mut self, workflow: WorkflowName) -> Self {
        self.workflow = Some(workflow);
        self
    }

    /// Only those of a status. Several calls: of any of them.
    pub fn status(mut self, status: Status) -> Self {
        self.statuses.push(status);
        self
    }

    /// Only those with this label. Several calls: with all of them.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Only those that were started at this time of the store or later.
    pub fn created_after(mut self, time: impl Into<Timestamp>) -> Self {
        self.created_after = Some(time.into());
        self
    }

    /// Only those that were started before this time of the store.
    pub fn created_before(mut self, time: impl Into<Timestamp>) -> Self {
        self.created_before = Some(time.into());
        self
    }

    /// Only those whose id begins so.
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.id_prefix = prefix.into();
        self
    }

    /// The most instances of a page, 1 to 1000. Default: 100.
    pub fn limit(mut self, instances: usize) -> Self {
        self.limit = instances;
        self
    }

    /// Goes on where a page ended; the rest of the filter must be the same. Default: from the beginning.
    pub fn after(mut self, cursor: Cursor) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// Whether it names a status at all.
    pub(super) fn names_status(&self) -> bool {
        !self.statuses.is_empty()
    }

    fn wants(&self, status: Status) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&status)
    }

    fn accepts(&self, summary: &Summary) -> bool {
        let labels = &summary.meta.labels;
        self.wants(summary.status)
            && self
                .workflow
                .as_ref()
                .is_none_or(|w| *w == summary.workflow)
            && self.created_after.is_none_or(|t| summary.created_at >= t)
            && self.created_before.is_none_or(|t| summary.created_at < t)
            && self
                .labels
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Page {
    /// The instances, each once.
    pub instances: Vec<Summary>,
    /// Instances whose records cannot be read, whatever the filter says.
    pub unreadable: Vec<InstanceId>,
    /// Where the listing goes on; `None` at its end. A page may be empty and not the last one: when little of what was
    /// looked at passes the filter.
    pub next: Option<Cursor>,
}

/// Where a listing goes on. Its text is opaque and has only characters that need no quoting; it is of use as long as the
/// namespace has the same number of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    partition: Partition,
    place: Place,
    position: Option<Position>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position.as_ref().map_or("", |p| p.0.as_str());
        let text = format!("{}\n{}\n{position}", self.partition, self.place);
        text.bytes().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = IdError;

    fn from_str(value: &str) -> Result<Self, IdError> {
        let stored = || IdError::Stored {
            kind: "cursor",
            value: crate::ids::shorten(value),
        };
        let digit = |at: usize| {
            value
                .get(at..at + 2)
                .and_then(|d| u8::from_str_radix(d, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..value.len()).step_by(2).map(digit).collect();
        let text = String::from_utf8(bytes.ok_or_else(stored)?).map_err(|_| stored())?;
        let mut parts = text.splitn(3, '\n');
        let mut next = || parts.next().ok_or_else(stored);
        let (partition, place, position) = (next()?, next()?, next()?);
        Ok(Self {
            partition: Partition::from_number(partition.parse().map_err(|_| stored())?),
            place: place.parse()?,
            position: (!position.is_empty()).then(|| Position(position.to_owned())),
        })
    }
}

impl Client {
    /// Lists instances: live ones by where they stand, then finished ones, the newest of each status first, partition by
    /// partition.
    ///
    /// A page costs bounded work: it ends when it is full, or when ten times as many entries as it may have instances (but
    /// at least 1000) were looked at; the page then has a [`next`](Page::next) and may be empty. What filters cannot be
    /// answered from a place (label, workflow, time) is read from each snapshot.
    ///
    /// An instance that stays as it is while the listing goes on is shown once; twice only if more than a page is queued
    /// behind it in its ready list between two pages. One that moves meanwhile (a task of it is claimed or ends, it is
    /// paused, it finishes, it is started anew) may be missed, or shown on several pages, but never twice on one page. A
    /// summary is true for the moment at which it was read. Nothing is changed, and dropping the future changes nothing.
    ///
    /// # Errors
    /// [`ClientError::Option`] for a limit out of range; [`ClientError::Store`], also for a cursor of another listing.
    pub async fn list(&self, filter: &Filter) -> Result<Page, ClientError> {
        options::number("limit", filter.limit, 1, 1_000)?;
        let walk = Walk {
            store: self.store_ref(),
            filter,
            page: Page::default(),
            left: (10 * filter.limit).max(1_000),
        };
        walk.run().await
    }
}

/// A page in the making.
struct Walk<'a> {
    store: &'a dyn Store,
    filter: &'a Filter,
    page: Page,
    /// How many entries may still be looked at.
    left: usize,
}

impl Walk<'_> {
    async fn run(mut self) -> Result<Page, ClientError> {
        let mut cursor = self.filter.cursor.clone();
        for partition in Partition::all(self.store.partitions()) {
            if cursor
                .as_ref()
                .is_some_and(|cursor| partition < cursor.partition)
            {
                continue;
            }
            let at = cursor.take();
            for place in self.places(partition).await? {
                // A list may have come or gone since the cursor was made: the order is that of the places.
                if at.as_ref().is_some_and(|at| rank(&place) < rank(&at.place)) {
                    continue;
                }
                let from = at.as_ref().filter(|at| at.place == place);
                let from = from.and_then(|at| at.position.clone());
                if let Some(position) = self.place(partition, &place, from).await? {
                    self.page.next = Some(Cursor {
                        partition,
                        place,
                        position: Some(position).filter(|p| !p.0.is_empty()),
                    });
                    return Ok(self.page);
                }
            }
        }
        Ok(self.page)
    }

    /// The places of a partition that may hold what is asked for, in their order.
    async fn places(&self, partition: Partition) -> Result<Vec<Place>, ClientError> {
        let mut places = Vec::new();
        if self.filter.wants(Status::Running) {
            let counts = self.store.counts(partition).await?;
            places.push(Place::Delayed);
            places.extend(counts.ready.into_keys().map(Place::Ready));
            places.extend([Place::Running, Place::Waiting]);
        }
        if self.filter.wants(Status::Paused) {
            places.push(Place::Paused);
        }
        let over = Status::ALL.into_iter().filter(|s| s.is_terminal());
        places.extend(over.filter(|s| self.filter.wants(*s)).map(Place::Done));
        Ok(places)
    }

    /// Looks through a place; answers where to go on if the page ends in it. The position is empty at its beginning.
    async fn place(
        &mut self,
        partition: Partition,
        place: &Place,
        mut from: Option<Position>,
    ) -> Result<Option<Position>, ClientError> {
        loop {
            let wanted = self.filter.limit - self.page.instances.len();
            if wanted == 0 || self.left == 0 {
                return Ok(Some(from.unwrap_or(Position(String::new()))));
            }
            let limit = wanted.max(PIECE).min(self.left);
            let scan = self
                .store
                .scan(partition, place, from.as_ref(), limit)
                .await?;
            // An empty piece is work too.
            self.left = self.left.saturating_sub(scan.found.len().max(1));
            if let Some(full) = self.show(partition, place, scan.found).await? {
                return Ok(Some(full));
            }
            match scan.next {
                Some(next) => from = Some(next),
                None => return Ok(None),
            }
        }
    }

    /// Shows what was found; answers where to go on if the page is full before all is shown.
    async fn show(
        &mut self,
        partition: Partition,
        place: &Place,
        mut found: Vec<Found>,
    ) -> Result<Option<Position>, ClientError> {
        found.retain(|found| found.id.as_str().starts_with(&self.filter.id_prefix));
        let ids: BTreeSet<&InstanceId> = found.iter().map(|found| &found.id).collect();
        let ids: Vec<InstanceId> = ids.into_iter().cloned().collect();
        let summaries = self.store.summaries(partition, &ids).await?;
        for id in summaries.unreadable {
            if !self.page.unreadable.contains(&id) {
                self.page.unreadable.push(id);
            }
        }
        let summaries = summaries.found.into_iter().map(|s| (s.id.clone(), s));
        let mut summaries: BTreeMap<InstanceId, Summary> = summaries.collect();
        for found in found {
            let Some(summary) = summaries.get(&found.id) else {
                continue;
            };
            if !stands_for(&found, place, summary) || !self.filter.accepts(summary) {
                continue;
            }
            let shown = self.page.instances.iter().any(|s| s.id == found.id);
            if let (false, Some(summary)) = (shown, summaries.remove(&found.id)) {
                self.page.instances.push(summary);
            }
            if self.page.instances.len() == self.filter.limit {
                return Ok(Some(found.next));
            }
        }
        Ok(None)
    }
}

/// In which order places are walked: that in which instances mostly move.
fn rank(place: &Place) -> (u8, Place) {
    let rank = match place {
        Place::Delayed => 0,
        Place::Ready(_) => 1,
        Place::Running => 2,
        Place::Waiting => 3,
        Place::Paused => 4,
        Place::Done(_) => 5,
    };
    (rank, place.clone())
}

/// Whether this trace is the one of its instance that is shown: an instance leaves one for each open task.
fn stands_for(found: &Found, place: &Place, summary: &Summary) -> bool {
    if found.tail.is_some_and(|tail| tail != summary.run.tail()) {
        return false;
    }
    match place {
        Place::Done(status) => summary.status == *status,
        _ if summary.status.is_terminal() => false,
        // One that is paused stands among the paused, wherever its tasks stand too.
        _ if summary.status == Status::Paused => *place == Place::Paused,
        Place::Paused => false,
        Place::Waiting => summary
            .leading()
            .is_none_or(|(_, state)| state == TaskState::Waiting),
        Place::Delayed | Place::Ready(_) | Place::Running => match summary.leading() {
            Some((task, state)) => state != TaskState::Waiting && found.task.as_ref() == Some(task),
            None => false,
        },
    }
}
