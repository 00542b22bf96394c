//! How it is said: a sentence, what it was seen from, and what can be done.

use std::fmt::Write as _;

use serde::Serialize;
use tenure::{InstanceId, Status, ids::WorkerId, time::Timestamp};

use super::{
    gather::Evidence,
    reason::{Answered, Reason},
};
use crate::{
    moment::{at, span},
    text::{count, cut},
};

/// The answer, for programs too.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    id: String,
    /// The word of the reason.
    reason: &'static str,
    /// One sentence.
    because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// The other open tasks.
    others: Vec<Other>,
    /// What was seen.
    seen: Vec<Fact>,
    /// Commands that may help.
    #[serde(rename = "try")]
    commands: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Other {
    task: String,
    reason: &'static str,
    because: String,
}

#[derive(Debug, Serialize)]
struct Fact {
    what: String,
    is: String,
}

impl Told {
    pub(super) fn of(id: &InstanceId, answered: &Answered) -> Self {
        let now = answered.now;
        let reason = answered.first();
        let others = answered.others().iter().map(|reason| Other {
            task: task(reason).unwrap_or_default(),
            reason: reason.word(),
            because: sentence("it", reason, now),
        });
        let facts = answered.facts.iter().cloned();
        Self {
            id: id.to_string(),
            reason: reason.word(),
            because: sentence(id.as_str(), reason, now),
            task: task(reason),
            others: others.collect(),
            seen: facts.map(|(what, is)| Fact { what, is }).collect(),
            commands: commands(id, reason),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.because);
        if !self.others.is_empty() {
            text.push_str("\nbesides:\n");
        }
        for other in &self.others {
            // Writing to a string does not fail.
            writeln!(text, "  {}: {}", other.task, other.because).ok();
        }
        if !self.seen.is_empty() {
            text.push_str("\nseen:\n");
        }
        let width = self.seen.iter().map(|fact| fact.what.len()).max();
        let width = width.unwrap_or(0);
        for Fact { what, is } in &self.seen {
            writeln!(text, "  {what:width$}  {is}").ok();
        }
        if !self.commands.is_empty() {
            text.push_str("\ntry:\n");
        }
        for command in &self.commands {
            writeln!(text, "  {command}").ok();
        }
        text
    }
}

fn task(reason: &Reason) -> Option<String> {
    use Reason as R;
    match reason {
        R::Lost { task, .. }
        | R::NoWorker { task, .. }
        | R::NoQueue { task, .. }
        | R::Draining { task, .. }
        | R::Busy { task, .. }
        | R::Ready { task, .. }
        | R::Running { task, .. }
        | R::Silent { task, .. }
        | R::Expired { task, .. }
        | R::Retry { task, .. }
        | R::Timer { task, .. }
        | R::Overdue { task, .. }
        | R::Delayed { task }
        | R::Signal { task, .. } => Some(task.to_string()),
        R::Damaged { .. }
        | R::Completed { .. }
        | R::Dead { .. }
        | R::Ended { .. }
        | R::Paused { .. } => None,
    }
}

/// `in 5m` or `5m ago`.
fn from_now(time: Timestamp, now: Option<Timestamp>) -> String {
    match now {
        Some(now) if time > now => format!("in {}", span(time.since(now))),
        Some(now) => format!("{} ago", span(now.since(time))),
        None => format!("at {}", at(time)),
    }
}

fn by(who: Option<&String>) -> String {
    who.map_or_else(|| "somebody".to_owned(), Clone::clone)
}

fn because(reason: Option<&String>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {}", cut(reason, 200)))
}

fn worker(worker: Option<&WorkerId>) -> String {
    worker.map_or_else(
        || "an unknown worker".to_owned(),
        |id| format!("worker {id}"),
    )
}

fn ahead(ahead: Option<usize>) -> String {
    match ahead {
        Some(0) => "it is next".to_owned(),
        Some(1) => "1 task is ahead of it".to_owned(),
        Some(n) => format!("{n} tasks are ahead of it"),
        None => "more than 10000 tasks are ahead of it".to_owned(),
    }
}

fn workers(number: usize) -> String {
    count(number, "worker", "workers")
}

/// One sentence about `who`.
fn sentence(who: &str, reason: &Reason, now: Option<Timestamp>) -> String {
    use Reason as R;
    match reason {
        R::Damaged { what } => format!("{who} is damaged: {what}."),
        R::Lost { task, place } => format!(
            "{who} has lost its place: task `{task}` is open, and nothing stands for it in {place}, so no worker will find it."
        ),
        R::Completed { at } => match at {
            Some(at) => format!("{who} completed {}.", from_now(*at, now)),
            None => format!("{who} has completed."),
        },
        R::Dead { error: Some(e) } => format!(
            "{who} is dead since {} (attempt {} of task `{}`): {}",
            from_now(e.time(), now),
            e.attempt,
            e.task,
            cut(&e.message, 300)
        ),
        R::Dead { error: None } => format!("{who} is dead; no error is stored."),
        R::Ended {
            status,
            by: who_did,
            reason,
        } => {
            let did = by(who_did.as_ref());
            format!("{who} was {status} by {did}{}.", because(reason.as_ref()))
        }
        R::Paused {
            by: who_did,
            reason,
            ..
        } => format!(
            "{who} is paused by {}{}; nothing of it is claimed until somebody resumes it.",
            by(who_did.as_ref()),
            because(reason.as_ref())
        ),
        R::Retry {
            task,
            due,
            failures,
            of,
            error,
        } => retry(
            who,
            task.as_str(),
            (*due, now),
            (*failures, *of),
            error.as_ref().map(|e| e.message.as_str()),
        ),
        R::Timer { task, due } => {
            format!(
                "{who} waits for a timer: `{task}` is due {}.",
                from_now(*due, now)
            )
        }
        R::Overdue {
            task,
            due,
            workers: n,
        } => format!(
            "{who} has a timer that should have fired: `{task}` was due {}, and {}.",
            from_now(*due, now),
            if *n == 0 {
                "no worker is there that keeps timers".to_owned()
            } else {
                format!("{} should keep timers", workers(*n))
            }
        ),
        R::Delayed { task } => format!(
            "{who} waits for a timer or a retry of `{task}`, behind more than 1000 others that are due before it."
        ),
        R::Signal {
            task,
            signal,
            timeout,
            ..
        } => {
            let until = timeout.map_or_else(
                || ", without a time limit".to_owned(),
                |due| format!("; its patience ends {}", from_now(due, now)),
            );
            format!("{who} waits for signal `{signal}` at `{task}`{until}.")
        }
        _ => about_workers(who, reason, now),
    }
}

fn retry(
    who: &str,
    task: &str,
    (due, now): (Timestamp, Option<Timestamp>),
    (failures, of): (u32, Option<u32>),
    error: Option<&str>,
) -> String {
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let error = error.map_or_else(String::new, |e| format!(": {}", cut(e, 200)));
    let due = from_now(due, now);
    format!("{who} waits for a retry of `{task}` {due}; attempt {failures}{of} failed{error}")
}

/// Those reasons that are about who runs a task.
fn about_workers(who: &str, reason: &Reason, now: Option<Timestamp>) -> String {
    use Reason as R;
    match reason {
        R::NoWorker {
            task,
            workflow,
            definition,
            workers: n,
            others,
        } => {
            let who_is = match (n, others.len()) {
                (0, _) => "no worker is there at all".to_owned(),
                (n, 0) => format!("none of the {} has workflow `{workflow}`", workers(*n)),
                _ => {
                    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
                    let others = others.join(", ");
                    format!("the workers have another version of it, {others}")
                }
            };
            format!(
                "{who} waits for a worker that has `{workflow}` in version {definition}: task `{task}` is ready, and {who_is}."
            )
        }
        R::NoQueue {
            task,
            queue,
            workers: n,
        } => format!(
            "{who} waits for a worker of queue `{queue}`: task `{task}` is ready, and the {} that could run it serve other queues.",
            workers(*n)
        ),
        R::Draining { task, workers: n } => format!(
            "{who} waits for a worker: task `{task}` is ready, and the {} that could run it only finish what they have.",
            workers(*n)
        ),
        R::Busy {
            task,
            ahead: before,
            slots,
            workers: n,
        } => format!(
            "{who} waits for a free slot: task `{task}` is ready, all {slots} slots of {} are busy, and {}.",
            workers(*n),
            ahead(*before)
        ),
        R::Ready {
            task,
            ahead: before,
            free,
        } => format!(
            "{who} is about to go on: task `{task}` is ready, {}, and {} free.",
            ahead(*before),
            count(*free, "slot is", "slots are")
        ),
        R::Running {
            task,
            worker: w,
            until,
            attempt,
            ..
        } => format!(
            "{who} is running: {} has task `{task}` (attempt {attempt}) and sends heartbeats; its claim holds for {} without another.",
            worker(w.as_ref()),
            now.map_or_else(|| at(*until), |now| span(until.since(now)))
        ),
        R::Silent {
            task,
            worker: w,
            heard,
            until,
        } => format!(
            "{who} waits for its claim to expire: {} has task `{task}`, and {}; another worker takes over {}.",
            worker(w.as_ref()),
            heard.map_or_else(
                || "is not heard of any more".to_owned(),
                |heard| format!("was last heard of {} ago", span(heard))
            ),
            from_now(*until, now)
        ),
        R::Expired {
            task,
            worker: w,
            workers: n,
        } => format!(
            "{who} waits to be taken over: the claim of {} on task `{task}` has expired, and {}.",
            worker(w.as_ref()),
            if *n == 0 {
                "no worker is there that would take over".to_owned()
            } else {
                "a keeper makes it ready again within seconds".to_owned()
            }
        ),
        _ => who.to_owned(),
    }
}

/// What may help.
fn commands(id: &InstanceId, reason: &Reason) -> Vec<String> {
    use Reason as R;
    let list: &[&str] = match reason {
        R::Damaged { .. } | R::Lost { .. } => &["tenure doctor --fix", "tenure keys {id}"],
        R::Completed { .. } => &["tenure result {id}"],
        R::Dead { .. } => &["tenure show {id}", "tenure retry {id}"],
        R::Ended { status, .. } if *status == Status::Running => &[],
        R::Ended { .. } => &["tenure show {id}"],
        R::Paused { .. } => &["tenure resume {id}"],
        R::NoWorker { .. } | R::NoQueue { .. } | R::Draining { .. } => {
            &["tenure workers", "tenure definitions"]
        }
        R::Busy { .. } | R::Ready { .. } => &["tenure queues", "tenure workers"],
        R::Running { .. } => &["tenure show {id} --follow", "tenure workers"],
        R::Silent { .. } => &["tenure workers"],
        R::Expired { workers: 0, .. } | R::Overdue { workers: 0, .. } => {
            &["tenure workers", "tenure reap"]
        }
        R::Expired { .. } | R::Overdue { .. } => &["tenure doctor", "tenure workers"],
        R::Retry { .. } | R::Timer { .. } | R::Delayed { .. } => &["tenure show {id}"],
        R::Signal { signal, .. } => {
            return vec![format!("tenure signal {id} {signal} --payload JSON")];
        }
    };
    list.iter()
        .map(|c| c.replace("{id}", id.as_str()))
        .collect()
}

/// What else was seen, in a line each.
pub(super) fn facts(seen: &Evidence) -> Vec<(String, String)> {
    let picture = &seen.picture;
    let (snapshot, header, now) = (&picture.snapshot, &picture.snapshot.header, picture.now);
    let mut facts = Vec::new();
    let mut say = |what: &str, is: String| facts.push((what.to_owned(), is));
    say(
        "workflow",
        format!("{} {}", header.workflow, header.definition),
    );
    say("status", header.status.to_string());
    let started = snapshot.created_at;
    say(
        "started",
        format!("{} ({})", at(started), from_now(started, Some(now))),
    );
    for (task, standing) in &seen.ready {
        let ahead = standing
            .ahead
            .map_or_else(|| "not met".to_owned(), |n| format!("{n} ahead of it"));
        say(
            &format!("list of {task}"),
            format!("{}: {ahead}", standing.list),
        );
    }
    for (task, claim) in &picture.claims {
        let is = claim.as_ref().map_or_else(
            || "expired, or deleted".to_owned(),
            |(worker, until)| {
                format!(
                    "of {worker}, until {} ({})",
                    at(*until),
                    from_now(*until, Some(now))
                )
            },
        );
        say(&format!("claim of {task}"), is);
    }
    for (worker, presence) in &seen.heard {
        let is = presence.map_or_else(
            || "none that still holds".to_owned(),
            |p| {
                format!(
                    "{} ago; it sends one every {}",
                    span(p.heard),
                    span(p.ttl / 3)
                )
            },
        );
        say(&format!("heartbeat of {worker}"), is);
    }
    for (task, due) in &picture.due {
        say(
            &format!("timer of {task}"),
            format!("{} ({})", at(*due), from_now(*due, Some(now))),
        );
    }
    for (task, join) in &snapshot.joins {
        let join = format!("{} of {} branches have arrived", join.arrived, join.total);
        say(&format!("join {task}"), join);
    }
    for early in &snapshot.early {
        say("early signal", early.name.to_string());
    }
    if !seen.parked.is_empty() {
        let parked: Vec<String> = seen.parked.iter().map(ToString::to_string).collect();
        say("parked", parked.join(" "));
    }
    if let Some(error) = picture.errors.last() {
        let message = cut(&error.message, 100);
        say(
            "last error",
            format!(
                "{} ({}): {message}",
                error.task,
                from_now(error.time(), Some(now))
            ),
        );
    }
    let busy: usize = seen.workers.iter().map(|worker| worker.busy).sum();
    let slots: usize = seen.workers.iter().map(|worker| worker.slots).sum();
    let is = format!(
        "{}, {busy} of {slots} slots busy",
        workers(seen.workers.len())
    );
    say("workers", is);
    facts
}
