//! What listings read: pieces of places and batches of fields, with plain commands.

use std::collections::HashMap;

use redis::Cmd;

use super::{Inner, snapshot::created_at};
use crate::{
    error::StoreError,
    ids::{DefinitionHash, InstanceId, ListName, Partition, Ticket, WorkerId, WorkflowName},
    store::{DefinitionRecord, Finished, Found, ListRecord, Place, Position, Scan, WorkerRecord},
    time::Timestamp,
};

/// The longest piece of a place.
const MOST: usize = 1_000;
/// A worker that parked longer ago, in milliseconds, is not there any more.
const PARKED_FOR: i64 = 15_000;

impl Inner {
    pub(super) async fn scan(
        &self,
        partition: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        let keys = self.keys_of(partition)?;
        let limit = limit.clamp(1, MOST);
        let from = from.map(|position| position.0.as_str());
        let scan = match place {
            Place::Delayed => self.set("ZSCAN", keys.delayed(), from, limit).await,
            Place::Running => self.set("ZSCAN", keys.running(), from, limit).await,
            Place::Waiting => self.set("SSCAN", keys.waiting(), from, limit).await,
            Place::Paused => self.set("SSCAN", keys.paused(), from, limit).await,
            Place::Ready(list) => self.entries(keys.ready(list), list, from, limit).await,
            Place::Done(status) => self.newest(keys.done(status.as_str()), from, limit).await,
        };
        scan.map(|scan| scan.cut(limit))
    }

    /// A set by its cursor. Of the members that one cursor gives those behind the last one seen, by their text, so that a
    /// piece may end anywhere: members that stay are given again by the same cursor with the same count. With a larger
    /// count it would give more, and some of these would count as seen.
    async fn set(
        &self,
        command: &'static str,
        key: String,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        let at = match from {
            Some(text) => InSet::parse(text).ok_or_else(|| Position::refused(text))?,
            None => InSet::default(),
        };
        let (cursor, count) = (at.cursor, at.count.unwrap_or(limit));
        let mut cmd = redis::cmd(command);
        cmd.arg(key).arg(cursor).arg("COUNT").arg(count);
        let (next, members): (u64, Vec<String>) = self.command("scan", &cmd).await?;
        let step = if command == "ZSCAN" { 2 } else { 1 };
        let mut members: Vec<String> = members.into_iter().step_by(step).collect();
        members.retain(|member| member.as_str() > at.last);
        members.sort_unstable();
        members.dedup();
        let position = |member: &String| format!("{cursor} {count} {member}");
        let next = if members.len() > limit {
            members.truncate(limit);
            members.last().map(position)
        } else {
            (next != 0).then(|| next.to_string())
        };
        let found = |member: &String| found(command, member, position(member));
        Ok(Scan {
            found: members.iter().filter_map(found).collect(),
            next: next.map(Position),
        })
    }

    /// A ready list from its tail: what is taken from its head shifts nothing.
    async fn entries(
        &self,
        key: String,
        list: &ListName,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        let (offset, last) = match from {
            Some(text) => Position::counted(text)?,
            None => (0, ""),
        };
        // The last one seen is read again: what was put behind it has pushed it on.
        let limit = limit + usize::from(from.is_some());
        let entries: Vec<String> = self.command("scan", &backwards(key, offset, limit)).await?;
        let position = |at: usize, entry: &str| format!("{} {entry}", offset + at);
        let found = |(at, entry): (usize, &String)| {
            let ticket = format!("{list}\0{entry}").parse().ok()?;
            Some(Found::ticket(ticket, position(at, entry)))
        };
        let seen = entries.iter().rev().position(|entry| entry == last);
        let rest = entries.iter().rev().enumerate();
        let next = entries.first().filter(|_| entries.len() == limit);
        Ok(Scan {
            found: rest
                .skip(seen.map_or(0, |at| at + 1))
                .filter_map(found)
                .collect(),
            next: next.map(|entry| Position(position(limit - 1, entry))),
        })
    }

    /// Finished instances, the newest first, behind the last one seen. Those that ended since then have shifted it: it
    /// stands where it stood, or further from the tail.
    async fn newest(
        &self,
        key: String,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        let (mut offset, mut last) = (0, None);
        if let Some(text) = from {
            let (at, entry) = Position::counted(text)?;
            let entry = Finished::parse(entry).ok_or_else(|| Position::refused(text))?;
            offset = self.first_not_newer(&key, at, &entry).await?;
            last = Some(entry);
        }
        let limit = limit + usize::from(from.is_some());
        let entries: Vec<String> = self.command("scan", &backwards(key, offset, limit)).await?;
        let found = |(at, entry): (usize, &String)| {
            let finished = Finished::parse(entry)?;
            let next = format!("{} {finished}", offset + at);
            Some((finished.clone(), Found::finished(finished, next)))
        };
        let mut done: Vec<_> = entries.iter().rev().enumerate().filter_map(found).collect();
        let next = done.last().filter(|_| entries.len() == limit);
        let next = next.map(|(_, found)| found.next.clone());
        let seen = last.and_then(|last| done.iter().position(|(f, _)| *f == last));
        let rest = done.split_off(seen.map_or(0, |at| at + 1));
        Ok(Scan {
            found: rest.into_iter().map(|(_, found)| found).collect(),
            next,
        })
    }

    /// How far from the tail the first entry stands that ended no later than another, from where that stood before.
    async fn first_not_newer(
        &self,
        key: &str,
        from: usize,
        last: &Finished,
    ) -> Result<usize, StoreError> {
        let (mut newer, mut at, mut step) = (from, from, 1_usize);
        while self.is_newer(key, at, last).await? {
            newer = at + 1;
            at += step;
            step *= 2;
        }
        while newer < at {
            let middle = newer + (at - newer) / 2;
            if self.is_newer(key, middle, last).await? {
                newer = middle + 1;
            } else {
                at = middle;
            }
        }
        Ok(at)
    }

    /// Whether the entry at a distance from the tail ended later than another; not when there is none.
    async fn is_newer(&self, key: &str, at: usize, last: &Finished) -> Result<bool, StoreError> {
        let mut cmd = redis::cmd("LINDEX");
        cmd.arg(key).arg(-from_tail(at));
        let entry: Option<String> = self.command("scan", &cmd).await?;
        let entry = entry.and_then(|entry| Finished::parse(&entry));
        Ok(entry.is_some_and(|entry| entry.at > last.at))
    }

    pub(super) async fn lists(&self, partition: Partition) -> Result<Vec<ListRecord>, StoreError> {
        let keys = self.keys_of(partition)?;
        let mut cmd = redis::cmd("SMEMBERS");
        cmd.arg(keys.lists());
        let names: Vec<String> = self.command("lists", &cmd).await?;
        let mut lists: Vec<ListName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        lists.sort();
        let now = self.now().await?.as_millis();
        let mut pipe = redis::pipe();
        for list in &lists {
            let since = now - PARKED_FOR;
            pipe.cmd("LLEN").arg(keys.ready(list));
            pipe.cmd("LINDEX").arg(keys.ready(list)).arg(0);
            pipe.cmd("ZCOUNT")
                .arg(keys.idle(list))
                .arg(since)
                .arg("+inf");
        }
        let mut records = Vec::new();
        if !lists.is_empty() {
            let replies: Vec<redis::Value> = self.pipeline("lists", &pipe).await?;
            for (list, reply) in lists.into_iter().zip(replies.chunks(3)) {
                records.push(list_record(list, reply)?);
            }
        }
        self.date_heads(partition, &mut records).await?;
        Ok(records)
    }

    /// When the instances at the heads of lists were started.
    async fn date_heads(
        &self,
        partition: Partition,
        records: &mut [ListRecord],
    ) -> Result<(), StoreError> {
        let keys = self.keys_of(partition)?;
        let mut heads: Vec<_> = records
            .iter_mut()
            .filter(|record| record.head.is_some())
            .collect();
        if heads.is_empty() {
            return Ok(());
        }
        let mut pipe = redis::pipe();
        pipe.ignore_errors();
        for record in &heads {
            if let Some((id, _)) = &record.head {
                pipe.cmd("HGET").arg(keys.instance(id)).arg("about");
            }
        }
        let abouts: Vec<redis::Value> = self.pipeline("lists", &pipe).await?;
        for (record, about) in heads.iter_mut().zip(abouts) {
            // A key of another type is no instance.
            let about: Option<String> = redis::from_redis_value(about).ok().flatten();
            record.head_created_at = about.as_deref().and_then(created_at);
        }
        Ok(())
    }

    pub(super) async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.keys.workers())
            .arg(0)
            .arg(WorkerRecord::MOST - 1);
        let ids: Vec<String> = self.command("workers", &cmd).await?;
        let mut ids: Vec<WorkerId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        ids.sort();
        let mut workers = Vec::new();
        for ids in ids.chunks(500) {
            let mut pipe = redis::pipe();
            for id in ids {
                pipe.cmd("HGETALL").arg(self.keys.worker(id));
            }
            let records: Vec<HashMap<String, String>> = self.pipeline("workers", &pipe).await?;
            // One that has just left, or was written by another version, is not shown.
            workers.extend(
                ids.iter()
                    .zip(records)
                    .filter_map(|(id, said)| worker(id, &said)),
            );
        }
        Ok(workers)
    }

    pub(super) async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        let mut cmd = redis::cmd("SMEMBERS");
        cmd.arg(self.keys.definitions());
        let members: Vec<String> = self.command("definitions", &cmd).await?;
        let mut known: Vec<_> = members
            .iter()
            .filter_map(|member| definition(member))
            .collect();
        known.sort();
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for (workflow, _) in &known {
            pipe.cmd("GET").arg(self.keys.workflow(workflow));
        }
        let current: Vec<Option<String>> = self.pipeline("definitions", &pipe).await?;
        let record =
            |((workflow, hash), current): ((_, DefinitionHash), Option<String>)| DefinitionRecord {
                workflow,
                current: current.as_deref() == Some(hash.as_str()),
                hash,
            };
        Ok(known.into_iter().zip(current).map(record).collect())
    }
}

/// Where a look through a set goes on: `<cursor>`, or `<cursor> <count> <last member seen>` amid what a cursor gives.
#[derive(Default)]
struct InSet<'a> {
    cursor: u64,
    count: Option<usize>,
    last: &'a str,
}

impl<'a> InSet<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let cursor = parts.next()?.parse().ok()?;
        let count = parts.next().map(str::parse).transpose().ok()?;
        let last = match count {
            Some(1..=MOST) => parts.next()?,
            Some(_) => return None,
            None => "",
        };
        Some(Self {
            cursor,
            count,
            last,
        })
    }
}

fn found(command: &str, member: &str, next: String) -> Option<Found> {
    if command == "ZSCAN" {
        return Some(Found::ticket(member.parse().ok()?, next));
    }
    Some(Found::instance(InstanceId::stored(member).ok()?, next))
}

/// The index of what stands so far from the tail, without its sign.
fn from_tail(at: usize) -> isize {
    isize::try_from(at).map_or(isize::MAX, |at| at.saturating_add(1))
}

/// So many entries up to a distance from the tail.
fn backwards(key: String, offset: usize, limit: usize) -> Cmd {
    let mut cmd = redis::cmd("LRANGE");
    cmd.arg(key)
        .arg(-from_tail(offset.saturating_add(limit - 1)))
        .arg(-from_tail(offset));
    cmd
}

fn list_record(list: ListName, reply: &[redis::Value]) -> Result<ListRecord, StoreError> {
    let odd = |e: redis::ParsingError| StoreError::Protocol {
        call: "lists",
        reason: e.to_string(),
    };
    let [ready, head, parked] = reply else {
        return Err(StoreError::Protocol {
            call: "lists",
            reason: "the answer is too short".to_owned(),
        });
    };
    let head: Option<String> = redis::from_redis_value_ref(head).map_err(odd)?;
    let head = head.and_then(|entry| format!("{list}\0{entry}").parse::<Ticket>().ok());
    Ok(ListRecord {
        list,
        ready: redis::from_redis_value_ref(ready).map_err(odd)?,
        head: head.map(|ticket| (ticket.id, ticket.task)),
        head_created_at: None,
        parked: redis::from_redis_value_ref(parked).map_err(odd)?,
    })
}

/// `<name>:<hash>`
fn definition(text: &str) -> Option<(WorkflowName, DefinitionHash)> {
    let (workflow, hash) = text.split_once(':')?;
    Some((workflow.parse().ok()?, hash.parse().ok()?))
}

fn worker(id: &WorkerId, said: &HashMap<String, String>) -> Option<WorkerRecord> {
    let text = |name: &str| said.get(name).map(String::as_str);
    let time = |name: &str| Some(Timestamp::from_millis(text(name)?.parse().ok()?));
    Some(WorkerRecord {
        id: id.clone(),
        host: text("host")?.to_owned(),
        pid: text("pid")?.parse().ok()?,
        definitions: text("definitions")?
            .split_whitespace()
            .filter_map(definition)
            .collect(),
        queues: text("queues")?
            .split_whitespace()
            .filter_map(|q| q.parse().ok())
            .collect(),
        slots: text("slots")?.parse().ok()?,
        busy: text("busy")?.parse().ok()?,
        draining: text("draining")? == "1",
        started_at: time("started_at")?,
        seen_at: time("seen_at")?,
    })
}
