//! From what was seen to why: decides, and reads nothing.

use std::time::Duration;

use tenure::{
    Status,
    ids::{DefinitionHash, TaskName},
    store::{TaskRecord, TaskState, WorkerRecord},
    workflow::NodeKind,
};

use super::{
    gather::{Evidence, Standing},
    reason::{Answered, Reason},
};

/// Why, from what was seen.
pub(super) fn explain(seen: &Evidence) -> Answered {
    let header = &seen.picture.snapshot.header;
    let control = header.control.as_ref();
    let (by, reason) = control.map_or((None, None), |c| (c.actor.clone(), c.reason.clone()));
    let reasons = match header.status {
        Status::Completed => vec![Reason::Completed {
            at: seen.picture.snapshot.finished_at,
        }],
        Status::Failed => vec![Reason::Dead {
            error: header.error.clone(),
        }],
        Status::Paused => vec![Reason::Paused {
            by,
            reason,
            open: open(seen).map(|(task, _)| task.clone()).collect(),
            parked: seen.parked.len(),
        }],
        Status::Running => live(seen),
        status => vec![Reason::Ended { status, by, reason }],
    };
    Answered {
        now: Some(seen.picture.now),
        reasons,
        facts: super::tell::facts(seen),
    }
}

fn open(seen: &Evidence) -> impl Iterator<Item = (&TaskName, &TaskRecord)> {
    let tasks = seen.picture.snapshot.tasks.iter();
    tasks.filter(|(_, record)| record.state.is_open())
}

fn live(seen: &Evidence) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = open(seen)
        .map(|(task, record)| of_task(seen, task, record))
        .collect();
    reasons.sort_by_key(Reason::rank);
    if reasons.is_empty() {
        reasons.push(Reason::Damaged {
            what: "it is running, and none of its tasks is open".to_owned(),
        });
    }
    reasons
}

fn of_task(seen: &Evidence, task: &TaskName, record: &TaskRecord) -> Reason {
    match record.state {
        TaskState::Ready => ready(seen, task),
        TaskState::Running => running(seen, task, record),
        TaskState::Waiting => waiting(seen, task),
        _ => delayed(seen, task, record),
    }
}

/// Whether a worker can run what stands in a list, if it has a slot.
fn can_run(worker: &WorkerRecord, definition: DefinitionHash) -> bool {
    worker
        .definitions
        .iter()
        .any(|(_, hash)| *hash == definition)
}

fn ready(seen: &Evidence, task: &TaskName) -> Reason {
    let Some(Standing { list, ahead, whole }) = seen.ready.get(task) else {
        return lost(task, "its ready list");
    };
    if ahead.is_none() && *whole {
        return lost(task, &format!("ready:{list}"));
    }
    let header = &seen.picture.snapshot.header;
    let able = |worker: &&WorkerRecord| can_run(worker, list.definition);
    let able: Vec<&WorkerRecord> = seen.workers.iter().filter(able).collect();
    if able.is_empty() {
        let named = seen.workers.iter().flat_map(|worker| &worker.definitions);
        let mut others: Vec<DefinitionHash> = named
            .filter(|(workflow, _)| *workflow == header.workflow)
            .map(|(_, hash)| *hash)
            .collect();
        others.sort_unstable();
        others.dedup();
        return Reason::NoWorker {
            task: task.clone(),
            workflow: header.workflow.to_string(),
            definition: list.definition,
            workers: seen.workers.len(),
            others,
        };
    }
    let workers = able.len();
    let serving = able.into_iter().filter(|w| w.queues.contains(&list.queue));
    let serving: Vec<&WorkerRecord> = serving.collect();
    if serving.is_empty() {
        return Reason::NoQueue {
            task: task.clone(),
            queue: list.queue.clone(),
            workers,
        };
    }
    let workers = serving.len();
    let taking: Vec<_> = serving.into_iter().filter(|w| !w.draining).collect();
    if taking.is_empty() {
        let task = task.clone();
        return Reason::Draining { task, workers };
    }
    let slots = taking.iter().map(|worker| worker.slots).sum();
    let free = taking.iter().map(|w| w.slots.saturating_sub(w.busy)).sum();
    let (task, ahead) = (task.clone(), *ahead);
    if free == 0 {
        Reason::Busy {
            task,
            ahead,
            slots,
            workers: taking.len(),
        }
    } else {
        Reason::Ready { task, ahead, free }
    }
}

fn lost(task: &TaskName, place: &str) -> Reason {
    Reason::Lost {
        task: task.clone(),
        place: place.to_owned(),
    }
}

fn running(seen: &Evidence, task: &TaskName, record: &TaskRecord) -> Reason {
    let (task, worker) = (task.clone(), record.worker.clone());
    let Some((_, until)) = seen.picture.claims.get(&task).and_then(Option::as_ref) else {
        return Reason::Expired {
            task,
            worker,
            workers: seen.workers.len(),
        };
    };
    let heard = worker.as_ref().and_then(|worker| seen.heard.get(worker));
    let heard = heard.copied().flatten();
    let until = *until;
    if heard.is_none_or(|presence| presence.is_overdue()) {
        return Reason::Silent {
            task,
            worker,
            heard: heard.map(|presence| presence.heard),
            until,
        };
    }
    Reason::Running {
        task,
        worker,
        attempt: record.attempt,
        until,
        heard: heard.map(|presence| presence.heard),
        deadline: record.deadline,
    }
}

fn waiting(seen: &Evidence, task: &TaskName) -> Reason {
    let snapshot = &seen.picture.snapshot;
    let Some(wait) = snapshot.waits.iter().find(|wait| wait.task == *task) else {
        return lost(task, "the waits of its snapshot");
    };
    Reason::Signal {
        task: task.clone(),
        signal: wait.signal.clone(),
        timeout: seen.picture.due.get(task).copied(),
        early: snapshot
            .early
            .iter()
            .map(|early| early.name.clone())
            .collect(),
    }
}

fn delayed(seen: &Evidence, task: &TaskName, record: &TaskRecord) -> Reason {
    let picture = &seen.picture;
    let Some(due) = picture.due.get(task).copied() else {
        return if picture.all_timers {
            lost(task, "delayed")
        } else {
            Reason::Delayed { task: task.clone() }
        };
    };
    let task = task.clone();
    if picture.now.since(due) > Duration::from_secs(5) {
        let workers = seen.workers.len();
        return Reason::Overdue { task, due, workers };
    }
    if record.failures == 0 {
        return Reason::Timer { task, due };
    }
    let graph = picture.graph.as_ref().ok();
    let node = graph.and_then(|graph| Some(graph.node(graph.find(&task)?)));
    let runs = node.filter(|node| !matches!(node.kind, NodeKind::Delay(_)));
    Reason::Retry {
        due,
        failures: record.failures,
        of: runs.map(|node| node.retry.attempts()),
        error: picture.errors.iter().rfind(|e| e.task == task).cloned(),
        task,
    }
}
