//! How it is said: a sentence, what it was seen from, and what can be done.

use std::fmt::Write as _;

use serde::Serialize;
use tenure::{InstanceId, Status};

use super::{
    gather::Evidence,
    reason::{Answered, Reason},
    sentence::{from_now, sentence, workers},
};
use crate::{
    moment::{at, span},
    text::cut,
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
