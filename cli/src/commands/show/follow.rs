//! What changes about an instance, until it is over.

use std::time::Duration;

use serde::Serialize;
use tenure::{
    Client, Handle, Status,
    client::Events,
    ids::TaskName,
    store::{ErrorRecord, Snapshot, TaskRecord},
    workflow::{Graph, NodeId},
};

use super::picture::Picture;
use crate::{
    answer::{Answer, line},
    exit::Exit,
    moment,
    text::cut,
};

/// How often it is looked at. That it is over is told at once.
const LOOK: Duration = Duration::from_millis(500);

/// One change.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Change {
    /// When it was seen.
    at: String,
    /// `None`: of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    from: Option<&'static str>,
    to: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How the command ends when an instance is over.
pub(super) fn exit(picture: &Picture) -> Exit {
    match picture.snapshot.header.status {
        Status::Completed => Exit::Done,
        _ => Exit::Failed,
    }
}

/// Tells changes until it is over.
pub(super) async fn changes(
    client: &Client,
    handle: &Handle,
    mut events: Events,
    first: &Picture,
    answer: Answer,
) -> anyhow::Result<()> {
    let mut known = first.snapshot.clone();
    while !known.header.status.is_terminal() {
        // A change of status, or time to look: either is a reason.
        if tokio::time::timeout(LOOK, events.next())
            .await
            .is_ok_and(|event| event.is_none())
        {
            tokio::time::sleep(LOOK).await;
        }
        let snapshot = handle.snapshot().await?;
        let now = moment::at(client.now().await?);
        let errors = match failures(&snapshot) > failures(&known) {
            true => client.store().errors(handle.id()).await?,
            false => Vec::new(),
        };
        for change in compare(&first.graph, (&known, &snapshot), &errors, &now) {
            change.tell(&first.id, answer)?;
        }
        known = snapshot;
    }
    Ok(())
}

fn failures(snapshot: &Snapshot) -> u64 {
    let tasks = snapshot.tasks.values();
    tasks
        .map(|task| u64::from(task.failures) + u64::from(task.crashes))
        .sum()
}

/// What is different: tasks as the definition orders them, the instance last.
fn compare(
    graph: &Result<Graph, String>,
    (old, new): (&Snapshot, &Snapshot),
    errors: &[ErrorRecord],
    at: &str,
) -> Vec<Change> {
    let is_other = |(task, record): &(&TaskName, &TaskRecord)| {
        let known = old.tasks.get(*task);
        known.is_none_or(|known| known.state != record.state || known.attempt != record.attempt)
    };
    let mut tasks: Vec<_> = new.tasks.iter().filter(is_other).collect();
    if let Ok(graph) = graph {
        tasks.sort_by_key(|(task, _)| graph.find(task).map_or(usize::MAX, NodeId::index));
    }
    let mut changes: Vec<Change> = tasks
        .into_iter()
        .map(|(task, record)| {
            let known = old.tasks.get(task);
            let failed_before = known.map_or(0, |known| known.failures);
            let error = (record.failures > failed_before)
                .then(|| errors.iter().find(|error| error.task == *task))
                .flatten();
            Change {
                at: at.to_owned(),
                task: Some(task.to_string()),
                from: known.map(|known| known.state.as_str()),
                to: record.state.as_str(),
                attempt: (record.attempt > 0).then_some(record.attempt),
                worker: record.worker.as_ref().map(ToString::to_string),
                error: error.map(|error| error.message.clone()),
            }
        })
        .collect();
    let (from, to) = (old.header.status, new.header.status);
    if from != to {
        changes.push(Change {
            at: at.to_owned(),
            task: None,
            from: Some(from.as_str()),
            to: to.as_str(),
            attempt: None,
            worker: None,
            error: new.header.error.as_ref().map(|error| error.message.clone()),
        });
    }
    changes
}

impl Change {
    fn tell(&self, id: &str, answer: Answer) -> anyhow::Result<()> {
        if answer.json {
            return line(&serde_json::to_string(self)?);
        }
        let task = self.task.as_deref().unwrap_or(id);
        let mut text = format!(
            "{}  {task}  {} → {}",
            self.at,
            self.from.unwrap_or("new"),
            self.to
        );
        if let Some(attempt) = self.attempt.filter(|attempt| *attempt > 1) {
            text += &format!(", attempt {attempt}");
        }
        if let Some(error) = &self.error {
            text += &format!(": {}", cut(error, 200));
        }
        line(&text)
    }
}
