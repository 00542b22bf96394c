//! What is shown of one row when it is chosen.

use tenure::{Client, store::Snapshot, time::Timestamp};

use super::model::{Detail, Worker};
use crate::{commands::queues::Queue, moment};

/// Of a ready list: what the row had no place for.
pub(super) fn queue(queue: &Queue) -> Detail {
    let mut lines = vec![
        format!("workflow    {}", queue.workflow),
        format!("definition  {}", queue.definition),
        format!("ready       {}", queue.ready),
        format!(
            "workers     {}, of which {} are parked",
            queue.workers, queue.parked
        ),
    ];
    if let Some((id, task)) = &queue.head {
        let age = queue.oldest.map(moment::span).unwrap_or_default();
        lines.push(format!("at its head {id}, task {task}, started {age} ago"));
    }
    if queue.is_alone() {
        lines.push(String::new());
        lines.push("No worker has this definition and serves this queue: start one.".to_owned());
    }
    Detail {
        title: format!("queue {}", queue.queue),
        lines,
    }
}

/// Of a worker.
pub(super) fn worker(worker: &Worker) -> Detail {
    let draining = if worker.draining { ", draining" } else { "" };
    let mut lines = vec![
        format!("process    {}", worker.process),
        format!(
            "busy       {} of {} slots{draining}",
            worker.busy, worker.slots
        ),
        format!("up         {}", moment::span(worker.up)),
        format!("seen       {} ago", moment::span(worker.seen)),
        format!("queues     {}", worker.queues.join(" ")),
    ];
    let names = worker.workflows.iter().enumerate();
    lines.extend(names.map(|(at, name)| match at {
        0 => format!("workflows  {name}"),
        _ => format!("           {name}"),
    }));
    Detail {
        title: format!("worker {}", worker.id),
        lines,
    }
}

/// Of an instance, with one read.
pub(super) async fn instance(client: &Client, id: String) -> Detail {
    let read = async {
        let snapshot = client.handle(&id).await?.snapshot().await?;
        Ok::<_, tenure::ClientError>((snapshot, client.now().await?))
    };
    let lines = match read.await {
        Ok((snapshot, now)) => lines(&snapshot, now),
        Err(error) => vec![error.to_string()],
    };
    Detail {
        title: format!("instance {id}"),
        lines,
    }
}

fn lines(snapshot: &Snapshot, now: Timestamp) -> Vec<String> {
    let header = &snapshot.header;
    let ago = |time: Timestamp| format!("{} ago", moment::span(now.since(time)));
    let mut lines = vec![
        format!("workflow  {} ({})", header.workflow, header.definition),
        format!("status    {}", header.status),
        format!("started   {}", ago(snapshot.created_at)),
    ];
    lines.extend(
        snapshot
            .finished_at
            .map(|at| format!("ended     {}", ago(at))),
    );
    lines.push("tasks".to_owned());
    lines.extend(snapshot.tasks.iter().map(|(task, record)| {
        format!(
            "  {task}  {}, attempt {}, {} failures, {} crashes",
            record.state, record.attempt, record.failures, record.crashes
        )
    }));
    if let Some(error) = &header.error {
        lines.push(String::new());
        lines.push(format!(
            "error in {}, attempt {}",
            error.task, error.attempt
        ));
        lines.extend(error.message.lines().map(ToOwned::to_owned));
    }
    lines
}
