//! An instance for people.

use tenure::{
    Status,
    ids::ValueField,
    store::{Control, Header},
    workflow::{Graph, Late, Node, NodeKind},
};

use super::{
    picture::{Content, Payload, Picture},
    tasks,
    tree::{self, Branch},
};
use crate::{
    moment,
    text::{Columns, count, cut, size},
};

/// Characters of a payload that are shown without being asked for.
const SHORT: usize = 160;

/// All of it.
pub(super) fn render(picture: &Picture, full: bool) -> String {
    let mut lines = vec![sentence(picture), String::new()];
    lines.extend(facts(picture, full));
    lines.extend(["".to_owned(), "tasks".to_owned()]);
    lines.extend(indented(tasks::render(picture, full)));
    if full {
        lines.extend(outputs(picture));
    }
    lines.extend(["".to_owned(), "graph".to_owned()]);
    lines.extend(indented(match &picture.graph {
        Ok(graph) => nodes(picture, graph),
        Err(why) => vec![format!("not known: {why}")],
    }));
    lines.join("\n")
}

/// How it ended, at the end of what was followed.
pub(super) fn ending(picture: &Picture, full: bool) -> String {
    let mut lines = vec![sentence(picture)];
    lines.extend(picture.result().map(|result| shown(result, full)));
    lines.join("\n")
}

/// How it is, in one sentence.
fn sentence(picture: &Picture) -> String {
    let (snapshot, header) = (&picture.snapshot, &picture.snapshot.header);
    let id = &picture.id;
    let since = |time| moment::span(picture.now.since(time));
    let took = snapshot.finished_at.map_or_else(String::new, |end| {
        format!(
            " {} ago, after {}",
            since(end),
            moment::span(end.since(snapshot.created_at))
        )
    });
    let age = since(snapshot.created_at);
    match header.status {
        Status::Running => format!("`{id}` is running, started {age} ago"),
        Status::Paused => format!("`{id}` is paused{}, started {age} ago", because(header)),
        Status::Failed => format!("`{id}` failed{took}{}", error(header)),
        status => format!("`{id}` {}{took}{}", ended(status), because(header)),
    }
}

/// By whom it was steered last, and why; nothing if nobody has said so.
fn because(header: &Header) -> String {
    let control = header.control.as_ref();
    let is_of_status =
        control.is_some_and(|c| c.control != Control::Resume && c.control != Control::Retry);
    let (Some(control), true) = (control, is_of_status) else {
        return String::new();
    };
    let by = control.actor.iter().map(|who| format!(" by {who}"));
    let why = control
        .reason
        .iter()
        .map(|why| format!(" ({})", cut(why, 100)));
    by.chain(why).collect()
}

fn error(header: &Header) -> String {
    let error = header.error.as_ref();
    error.map_or_else(String::new, |error| {
        format!(": {}, in {}", cut(&error.message, 100), error.task)
    })
}

fn ended(status: Status) -> &'static str {
    match status {
        Status::Cancelled => "was cancelled",
        Status::Terminated => "was terminated",
        other => other.as_str(),
    }
}

/// What is known of it, one thing in a line.
fn facts(picture: &Picture, full: bool) -> Vec<String> {
    let (snapshot, header) = (&picture.snapshot, &picture.snapshot.header);
    let mut facts: Vec<(&str, String)> = vec![
        (
            "workflow",
            format!("{}, definition {}", header.workflow, header.definition),
        ),
        ("queue", snapshot.queue.to_string()),
        ("run", header.run.to_string()),
    ];
    let by = picture.meta.created_by.as_ref();
    let by = by.map_or_else(String::new, |who| format!(" by {who}"));
    facts.push((
        "started",
        format!("{}{by}", moment::at(snapshot.created_at)),
    ));
    let after = |time: tenure::time::Timestamp| {
        let after = moment::span(time.since(snapshot.created_at));
        format!("{} (after {after})", moment::at(time))
    };
    facts.extend(snapshot.started_at.map(|time| ("first task", after(time))));
    facts.extend(snapshot.finished_at.map(|time| ("over", after(time))));
    if !picture.meta.labels.is_empty() {
        let labels = picture.meta.labels.iter().map(|(k, v)| format!("{k}={v}"));
        facts.push(("labels", labels.collect::<Vec<_>>().join(" ")));
    }
    facts.extend(history(picture));
    facts.extend(picture.input().map(|input| ("input", shown(input, full))));
    facts.extend(
        picture
            .result()
            .map(|result| ("result", shown(result, full))),
    );
    for (field, payload) in &picture.values {
        match field {
            ValueField::Progress(task) => {
                facts.push(("progress", format!("{task}: {}", shown(payload, full))));
            }
            ValueField::Shared(key) => {
                facts.push(("set", format!("{key}: {}", shown(payload, full))));
            }
            ValueField::Input | ValueField::Output(_) => {}
        }
    }
    let rows: Vec<[String; 2]> = facts
        .into_iter()
        .map(|(what, text)| [what.to_owned(), text.replace('\n', "\n              ")])
        .collect();
    indented(Columns::with([10, 0]).rows(&rows))
}

/// What was done to it, and what went wrong.
fn history(picture: &Picture) -> Vec<(&'static str, String)> {
    let (snapshot, header) = (&picture.snapshot, &picture.snapshot.header);
    let mut facts = Vec::new();
    if snapshot.retries > 0 {
        let times = count(snapshot.retries as usize, "time", "times");
        facts.push(("retried", format!("{times} as a whole")));
    }
    if !snapshot.replaced.is_empty() {
        let runs = count(snapshot.replaced.len(), "earlier run", "earlier runs");
        facts.push(("replaces", format!("{runs} of this id")));
    }
    if let Some(control) = &header.control {
        let mut text = control.control.as_str().to_owned();
        text.extend(control.actor.iter().map(|who| format!(" by {who}")));
        text.extend(control.reason.iter().map(|why| format!(": {why}")));
        facts.push(("steered", text));
    }
    if let Some(error) = &header.error {
        facts.push((
            "error",
            format!(
                "in {}, attempt {}: {}",
                error.task, error.attempt, error.message
            ),
        ));
    }
    let early = snapshot.early.iter().map(|signal| signal.name.as_str());
    let early: Vec<&str> = early.collect();
    if !early.is_empty() {
        facts.push((
            "signals",
            format!("kept until a node waits for them: {}", early.join(", ")),
        ));
    }
    facts
}

fn outputs(picture: &Picture) -> Vec<String> {
    let outputs = picture
        .values
        .iter()
        .filter_map(|(field, payload)| match field {
            ValueField::Output(task) => Some([task.to_string(), shown(payload, true)]),
            ValueField::Input | ValueField::Progress(_) | ValueField::Shared(_) => None,
        });
    let rows: Vec<[String; 2]> = outputs.collect();
    let mut lines = vec![String::new(), "results".to_owned()];
    lines.extend(indented(Columns::default().rows(&rows)));
    lines
}

fn shown(payload: &Payload, full: bool) -> String {
    let size = size(payload.bytes);
    match &payload.content {
        Content::Value(value) if full => value.to_string(),
        Content::Value(value) => {
            let text = value.to_string();
            match text.chars().count() > SHORT {
                true => format!("{} ({size}: --full shows all)", cut(&text, SHORT)),
                false => text,
            }
        }
        Content::Unreadable(why) => format!("{size} that cannot be read: {why}"),
        Content::NotRead => format!("{size}: --full shows it"),
    }
}

fn nodes(picture: &Picture, graph: &Graph) -> Vec<String> {
    let rows: Vec<[String; 3]> = tree::draw(graph)
        .into_iter()
        .map(|Branch { prefix, node }| {
            let node = graph.node(node);
            let record = picture.snapshot.tasks.get(&node.name);
            let state = record.map_or("-", |record| record.state.as_str());
            [
                format!("{prefix}{}", node.name),
                state.to_owned(),
                what(picture, node),
            ]
        })
        .collect();
    Columns::default().rows(&rows)
}

/// What a node does, if it is no plain task.
fn what(picture: &Picture, node: &Node) -> String {
    let mut text = match node.kind {
        NodeKind::Join { need, total } => join(picture, node, need, total),
        NodeKind::Delay(by) => format!("delay of {}", moment::span(by)),
        NodeKind::Wait(late) => wait(node, late),
        _ => String::new(),
    };
    if let Some(queue) = &node.queue {
        let gap = if text.is_empty() { "" } else { ", " };
        text += &format!("{gap}in queue {queue}");
    }
    text
}

fn join(picture: &Picture, node: &Node, need: u16, total: u16) -> String {
    let branches = match need == total {
        true => format!("join of {total}"),
        false => format!("join of the first {need} of {total}"),
    };
    match picture.snapshot.joins.get(&node.name) {
        Some(join) if join.fired => branches,
        Some(join) if join.failed > 0 => {
            format!(
                "{branches}, {} arrived, {} failed",
                join.arrived, join.failed
            )
        }
        Some(join) => format!("{branches}, {} arrived", join.arrived),
        None => branches,
    }
}

fn wait(node: &Node, late: Late) -> String {
    let signal = node.signal.as_ref().map(ToString::to_string);
    let signal = signal.unwrap_or_else(|| node.name.to_string());
    let then = match late {
        Late::Fail => "fails",
        Late::GoOn => "goes on without",
    };
    match node.limits.timeout {
        Some(limit) => format!(
            "wait for signal {signal}, {then} after {}",
            moment::span(limit)
        ),
        None => format!("wait for signal {signal}"),
    }
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("  {line}")).collect()
}
