//! An instance for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tenure::{
    store::{ErrorKind, ErrorRecord, TaskRecord},
    time::Timestamp,
    workflow::{Graph, NodeKind},
};

use super::picture::{Content, Payload, Picture};
use crate::moment;

/// An instance. What is not there is left out.
#[derive(Debug, Serialize)]
pub(super) struct Instance<'a> {
    id: &'a str,
    run: String,
    status: &'static str,
    workflow: String,
    definition: String,
    queue: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
    max_crashes: u32,
    retries: u32,
    replaced: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<Control<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    tasks: Vec<Task<'a>>,
    joins: BTreeMap<String, Join>,
    waits: Vec<Wait>,
    early_signals: Vec<Early>,
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<Vec<Node>>,
    /// All stored payloads, by their fields.
    values: BTreeMap<String, Stored<'a>>,
}

#[derive(Debug, Serialize)]
struct Control<'a> {
    what: &'static str,
    by: Option<&'a str>,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Failure<'a> {
    at: String,
    task: String,
    attempt: u32,
    kind: ErrorKind,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
}

#[derive(Debug, Serialize)]
struct Task<'a> {
    task: String,
    state: &'static str,
    attempt: u32,
    failures: u32,
    crashes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    /// Until when the claim holds without a heartbeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    errors: Vec<Failure<'a>>,
}

#[derive(Debug, Serialize)]
struct Join {
    arrived: u16,
    failed: u16,
    need: u16,
    total: u16,
    fired: bool,
}

#[derive(Debug, Serialize)]
struct Wait {
    task: String,
    signal: String,
}

#[derive(Debug, Serialize)]
struct Early {
    signal: String,
    id: String,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct Node {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Stored<'a> {
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<&'a str>,
}

impl<'a> Instance<'a> {
    pub(super) fn of(picture: &'a Picture) -> Self {
        let (snapshot, header) = (&picture.snapshot, &picture.snapshot.header);
        Self {
            id: &picture.id,
            run: header.run.to_string(),
            status: header.status.as_str(),
            workflow: header.workflow.to_string(),
            definition: header.definition.to_string(),
            queue: snapshot.queue.to_string(),
            created_at: moment::at(snapshot.created_at),
            started_at: snapshot.started_at.map(moment::at),
            finished_at: snapshot.finished_at.map(moment::at),
            created_by: picture.meta.created_by.as_deref(),
            labels: &picture.meta.labels,
            max_crashes: snapshot.max_crashes,
            retries: snapshot.retries,
            replaced: snapshot.replaced.iter().map(ToString::to_string).collect(),
            control: header.control.as_ref().map(|control| Control {
                what: control.control.as_str(),
                by: control.actor.as_deref(),
                reason: control.reason.as_deref(),
            }),
            error: header.error.as_ref().map(failure),
            input: picture.input().and_then(value),
            result: picture.result().and_then(value),
            tasks: tasks(picture),
            joins: joins(picture),
            waits: waits(picture),
            early_signals: early(picture),
            graph: picture
                .graph
                .as_ref()
                .ok()
                .map(|graph| nodes(graph, picture)),
            values: picture
                .values
                .iter()
                .map(|(f, p)| (f.to_string(), stored(p)))
                .collect(),
        }
    }
}

fn value(payload: &Payload) -> Option<&Value> {
    match &payload.content {
        Content::Value(value) => Some(value),
        Content::Unreadable(_) | Content::NotRead => None,
    }
}

fn stored(payload: &Payload) -> Stored<'_> {
    Stored {
        bytes: payload.bytes,
        value: value(payload),
        unreadable: match &payload.content {
            Content::Unreadable(why) => Some(why),
            Content::Value(_) | Content::NotRead => None,
        },
    }
}

fn failure(error: &ErrorRecord) -> Failure<'_> {
    Failure {
        at: moment::at(error.time()),
        task: error.task.to_string(),
        attempt: error.attempt,
        kind: error.kind,
        message: &error.message,
        worker: error.worker.as_ref().map(ToString::to_string),
    }
}

fn tasks(picture: &Picture) -> Vec<Task<'_>> {
    let tasks = picture.tasks().into_iter();
    let tasks = tasks.filter_map(|name| Some((name, picture.snapshot.tasks.get(name)?)));
    tasks
        .map(|(name, record): (_, &TaskRecord)| Task {
            task: name.to_string(),
            state: record.state.as_str(),
            attempt: record.attempt,
            failures: record.failures,
            crashes: record.crashes,
            worker: record.worker.as_ref().map(ToString::to_string),
            deadline: record.deadline.map(moment::at),
            claimed_until: until(picture.claims.get(name).and_then(Option::as_ref)),
            due_at: picture.due.get(name).copied().map(moment::at),
            errors: picture
                .errors
                .iter()
                .filter(|e| e.task == *name)
                .map(failure)
                .collect(),
        })
        .collect()
}

fn until<T>(claim: Option<&(T, Timestamp)>) -> Option<String> {
    claim.map(|(_, until)| moment::at(*until))
}

fn joins(picture: &Picture) -> BTreeMap<String, Join> {
    let joins = picture.snapshot.joins.iter();
    joins
        .map(|(name, join)| {
            let told = Join {
                arrived: join.arrived,
                failed: join.failed,
                need: join.need,
                total: join.total,
                fired: join.fired,
            };
            (name.to_string(), told)
        })
        .collect()
}

fn waits(picture: &Picture) -> Vec<Wait> {
    let waits = picture.snapshot.waits.iter();
    waits
        .map(|wait| Wait {
            task: wait.task.to_string(),
            signal: wait.signal.to_string(),
        })
        .collect()
}

fn early(picture: &Picture) -> Vec<Early> {
    let early = picture.snapshot.early.iter();
    early
        .map(|signal| Early {
            signal: signal.name.to_string(),
            id: signal.id.to_string(),
            bytes: signal.len,
        })
        .collect()
}

fn nodes(graph: &Graph, picture: &Picture) -> Vec<Node> {
    let nodes = graph.nodes().iter();
    nodes
        .map(|node| Node {
            name: node.name.to_string(),
            kind: match node.kind {
                NodeKind::Task => "task",
                NodeKind::Join { .. } => "join",
                NodeKind::Delay(_) => "delay",
                NodeKind::Wait(_) => "wait",
                _ => "other",
            },
            signal: node.signal.as_ref().map(ToString::to_string),
            state: picture
                .snapshot
                .tasks
                .get(&node.name)
                .map(|record| record.state.as_str()),
            next: node
                .next
                .iter()
                .map(|id| graph.node(*id).name.to_string())
                .collect(),
        })
        .collect()
}
