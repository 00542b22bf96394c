//! What listings read.

use std::collections::VecDeque;

use super::{
    call::later,
    scored::{Expiring, Scored},
    state::{Instance, Share, State},
};
use crate::{
    ids::{InstanceId, Ticket},
    store::{
        Announcement, DefinitionRecord, Finished, Found, ListRecord, Place, Position, Scan,
        StartMeta, StoreError, Summaries, Summary, WorkerRecord,
    },
    time::{Timestamp, millis},
};

/// A worker that parked longer ago is not there any more.
const PARKED_FOR: i64 = 15_000;

pub(super) fn scan(
    share: &Share,
    place: &Place,
    from: Option<&Position>,
    limit: usize,
) -> Result<Scan, StoreError> {
    let from = from.map(|position| position.0.as_str());
    match place {
        Place::Delayed => Ok(after(tickets(&share.delayed), from, limit)),
        Place::Running => Ok(after(tickets(&share.running), from, limit)),
        Place::Waiting => Ok(after(share.waiting.iter().map(instance), from, limit)),
        Place::Paused => Ok(after(share.paused.iter().map(instance), from, limit)),
        Place::Ready(list) => from_the_tail(share.ready.get(list), from, limit),
        Place::Done(status) => newest(share.done.get(status), from, limit),
    }
}

fn instance(id: &InstanceId) -> Found {
    Found::instance(id.clone(), id.to_string())
}

fn tickets<S: Ord + Copy>(set: &Scored<S, Ticket>) -> impl Iterator<Item = Found> {
    let found = |ticket: &Ticket| Found::ticket(ticket.clone(), ticket.to_string());
    set.iter().map(move |(_, ticket)| found(ticket))
}

/// Members of a set by their text, behind the last one seen.
fn after(members: impl Iterator<Item = Found>, last: Option<&str>, limit: usize) -> Scan {
    let mut found: Vec<Found> = members
        .filter(|found| last.is_none_or(|last| found.next.0.as_str() > last))
        .collect();
    found.sort_by(|a, b| a.next.0.cmp(&b.next.0));
    let more = found.len() > limit;
    found.truncate(limit);
    Scan {
        next: found.last().filter(|_| more).map(|f| f.next.clone()),
        found,
    }
}

/// Entries of a list from its tail: what is taken from its head shifts nothing.
fn from_the_tail(
    entries: Option<&VecDeque<Ticket>>,
    from: Option<&str>,
    limit: usize,
) -> Result<Scan, StoreError> {
    let (offset, last) = match from {
        Some(text) => Position::counted(text)?,
        None => (0, ""),
    };
    let entries = entries.into_iter().flat_map(|entries| entries.iter().rev());
    let entries = entries.enumerate().skip(offset);
    // What was put behind the last one seen has pushed it on.
    let seen = entries
        .clone()
        .take(limit)
        .position(|(_, t)| t.entry() == last);
    let entries = entries.skip(seen.map_or(0, |at| at + 1)).take(limit);
    let found = |(at, ticket): (usize, &Ticket)| {
        Found::ticket(ticket.clone(), format!("{at} {}", ticket.entry()))
    };
    Ok(full(entries.map(found).collect(), limit))
}

/// Finished instances from the newest, behind the last one seen.
fn newest(
    done: Option<&VecDeque<Finished>>,
    from: Option<&str>,
    limit: usize,
) -> Result<Scan, StoreError> {
    let last = match from {
        Some(text) => Some(Finished::parse(text).ok_or_else(|| Position::refused(text))?),
        None => None,
    };
    let done = done.into_iter().flat_map(|done| done.iter().rev());
    let skip = last.as_ref().map_or(0, |last| {
        let seen = done.clone().position(|f| f == last);
        let newer = || done.clone().take_while(|f| f.at > last.at).count();
        seen.map_or_else(newer, |at| at + 1)
    });
    let found = |f: &Finished| Found::finished(f.clone(), f.to_string());
    Ok(full(
        done.skip(skip).take(limit).map(found).collect(),
        limit,
    ))
}

/// A piece that goes on if it is as long as it may be.
fn full(found: Vec<Found>, limit: usize) -> Scan {
    Scan {
        next: found
            .last()
            .filter(|_| found.len() == limit)
            .map(|f| f.next.clone()),
        found,
    }
}

pub(super) fn summaries(share: &Share, ids: &[InstanceId]) -> Summaries {
    let mut summaries = Summaries::default();
    for id in ids {
        match share.instances.get(id) {
            None => {}
            Some(instance) if instance.check(id).is_err() => summaries.unreadable.push(id.clone()),
            Some(instance) => summaries.found.push(instance.summary(id)),
        }
    }
    summaries
}

impl Instance {
    fn summary(&self, id: &InstanceId) -> Summary {
        let open = self
            .tasks
            .iter()
            .filter(|(_, record)| record.state.is_open());
        Summary {
            id: id.clone(),
            run: self.run,
            status: self.status,
            workflow: self.workflow.clone(),
            definition: self.definition,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            meta: StartMeta::lenient(self.meta.as_deref()),
            tasks: open
                .map(|(task, record)| (task.clone(), record.clone()))
                .collect(),
            error: self.error.clone(),
        }
    }
}

pub(super) fn lists(share: &Share, now: Timestamp) -> Vec<ListRecord> {
    let record = |(list, entries): (&_, &VecDeque<Ticket>)| {
        let head = entries.front();
        let instance = head.and_then(|ticket| share.instances.get(&ticket.id));
        let idle = share.idle.get(list).into_iter().flat_map(Scored::iter);
        let since = now.as_millis() - PARKED_FOR;
        ListRecord {
            list: list.clone(),
            ready: entries.len(),
            head: head.map(|ticket| (ticket.id.clone(), ticket.task.clone())),
            head_created_at: instance.filter(|i| !i.is_foreign()).map(|i| i.created_at),
            parked: idle.filter(|(at, _)| at.as_millis() >= since).count(),
        }
    };
    share.ready.iter().map(record).collect()
}

pub(super) fn announce(state: &mut State, said: Announcement, now: Timestamp) {
    state.workers.retain(|_, worker| worker.get(now).is_some());
    state.workers.remove(&said.id);
    if said.ttl.is_zero() {
        return;
    }
    let record = WorkerRecord {
        id: said.id.clone(),
        host: said.host,
        pid: said.pid,
        definitions: said.definitions,
        queues: said.queues,
        slots: said.slots,
        busy: said.busy,
        draining: said.draining,
        started_at: later(now, -millis(said.uptime)),
        seen_at: now,
    };
    let until = now.plus(said.ttl);
    state.workers.insert(said.id, Expiring::new(record, until));
}

pub(super) fn workers(state: &State, now: Timestamp) -> Vec<WorkerRecord> {
    let alive = state.workers.values().filter_map(|worker| worker.get(now));
    alive.take(WorkerRecord::MOST).cloned().collect()
}

pub(super) fn definitions(state: &State) -> Vec<DefinitionRecord> {
    let record = |(workflow, hash): &(_, _)| DefinitionRecord {
        current: state.workflows.get(workflow) == Some(hash),
        workflow: workflow.clone(),
        hash: *hash,
    };
    state.published.iter().map(record).collect()
}
