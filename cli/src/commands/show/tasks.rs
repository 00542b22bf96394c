//! The tasks of an instance under each other, with what happened to each.

use tenure::{
    ids::TaskName,
    store::{ErrorRecord, TaskRecord, TaskState},
    time::Timestamp,
};

use super::picture::Picture;
use crate::{moment, text::Columns};

/// Lines of an error that are shown without being asked for.
const LINES: usize = 3;

/// A table of tasks; the errors of each stand under it.
pub(super) fn render(picture: &Picture, full: bool) -> Vec<String> {
    let head = [
        "TASK", "STATE", "ATTEMPTS", "FAILURES", "CRASHES", "WORKER", "",
    ];
    let names = picture.tasks();
    let rows = names.iter().filter_map(|task| {
        let record = picture.snapshot.tasks.get(*task)?;
        Some(row(picture, task, record))
    });
    let rows: Vec<[String; 7]> = std::iter::once(head.map(str::to_owned))
        .chain(rows)
        .collect();
    let mut lines = Columns::default().rows(&rows).into_iter();
    let mut text: Vec<String> = lines.next().into_iter().collect();
    for (task, line) in names.into_iter().zip(lines) {
        text.push(line);
        let errors = picture.errors.iter().filter(|error| error.task == *task);
        text.extend(errors.flat_map(|error| failed(error, full)));
    }
    text
}

fn row(picture: &Picture, task: &TaskName, record: &TaskRecord) -> [String; 7] {
    let number = |number: u32| match number {
        0 => String::new(),
        _ => number.to_string(),
    };
    let worker = record.worker.as_ref();
    [
        task.to_string(),
        record.state.to_string(),
        number(record.attempt),
        number(record.failures),
        number(record.crashes),
        worker.map(ToString::to_string).unwrap_or_default(),
        note(picture, task, record),
    ]
}

/// What is to come.
fn note(picture: &Picture, task: &TaskName, record: &TaskRecord) -> String {
    let mut notes = Vec::new();
    let ahead = |time: Timestamp| ahead(picture.now, time);
    match record.state {
        TaskState::Running => match picture.claims.get(task) {
            Some(Some((_, until))) => notes.push(format!("claimed for another {}", ahead(*until))),
            Some(None) => notes.push("its claim has expired".to_owned()),
            None => {}
        },
        TaskState::Delayed => match picture.due.get(task) {
            Some(due) if *due > picture.now => notes.push(format!("due in {}", ahead(*due))),
            Some(_) => notes.push("due now".to_owned()),
            None => {}
        },
        TaskState::Waiting => {
            let wait = picture
                .snapshot
                .waits
                .iter()
                .find(|wait| wait.task == *task);
            notes.extend(wait.map(|wait| format!("waits for signal {}", wait.signal)));
            notes.extend(
                picture
                    .due
                    .get(task)
                    .map(|due| format!("for another {}", ahead(*due))),
            );
        }
        TaskState::Ready
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Closed
        | TaskState::Cleared => {}
    }
    if let (Some(deadline), TaskState::Running) = (record.deadline, record.state) {
        notes.push(format!("to be done in {}", ahead(deadline)));
    }
    notes.join(", ")
}

fn ahead(now: Timestamp, time: Timestamp) -> String {
    moment::span(time.since(now))
}

fn failed(error: &ErrorRecord, full: bool) -> Vec<String> {
    let mut message = error.message.lines();
    let first = message.next().unwrap_or_default();
    let mut lines = vec![format!(
        "  {}  attempt {}: {first}",
        moment::at(error.time()),
        error.attempt
    )];
    let rest: Vec<&str> = message.collect();
    let shown = if full {
        rest.len()
    } else {
        rest.len().min(LINES - 1)
    };
    lines.extend(rest[..shown].iter().map(|line| format!("    {line}")));
    if shown < rest.len() {
        lines.push(format!("    … {} more lines: --full", rest.len() - shown));
    }
    lines
}
