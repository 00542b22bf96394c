//! Each promise as a function over what is known of one instance, or over the whole ledger.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Digest, History, Line, Rule, Violation,
    check::{Case, Found},
};
use crate::{
    codec,
    ids::{InstanceId, TaskName, ValueField},
    store::{ErrorKind, Status, TaskRecord, TaskState},
    workflow::{Graph, Node, NodeKind, Source},
};

/// No attempt is given out to two, none begins twice, none begins that was not given out.
pub(super) fn attempts(history: &History, found: &mut Found) {
    let mut claims = BTreeMap::new();
    let mut begun = BTreeSet::new();
    for line in history.lines() {
        let what = match line {
            Line::Claimed {
                worker,
                run,
                task,
                attempt,
                nonce,
                ..
            } => {
                let first = claims
                    .entry((run, task, attempt))
                    .or_insert((worker, nonce));
                (*first != (worker, nonce))
                    .then(|| format!("attempt {attempt} of {task} was given to {first:?} and to {worker} with {nonce}"))
            }
            Line::Began {
                run, task, attempt, ..
            } => (!begun.insert((run, task, attempt)))
                .then(|| format!("attempt {attempt} of {task} began twice")),
            _ => None,
        };
        found.extend(what.map(|what| Violation {
            rule: Rule::AttemptsGrow,
            id: Some(line.id().clone()),
            what,
        }));
    }
}

/// Of all attempts of a task the completion of one is stored.
pub(super) fn stored_once(history: &History, found: &mut Found) {
    let mut stored = BTreeMap::new();
    for line in history.lines() {
        if let Line::Stored {
            id,
            run,
            task,
            attempt,
        } = line
        {
            let first = *stored.entry((run, task)).or_insert(attempt);
            if first != attempt {
                found.push(Violation {
                    rule: Rule::OneResult,
                    id: Some(id.clone()),
                    what: format!("{task} was completed by attempts {first} and {attempt}"),
                });
            }
        }
    }
}

/// A run ends once, and nobody is told otherwise.
pub(super) fn ends(history: &History, found: &mut Found) {
    let (mut over, mut told) = (BTreeMap::new(), BTreeMap::new());
    let retried: BTreeSet<_> = history
        .lines()
        .iter()
        .filter(|line| matches!(line, Line::Retried { .. }))
        .map(Line::run)
        .collect();
    for line in history.lines() {
        let what = match line {
            // It was dead for a while.
            Line::Retried { run, .. } => {
                over.remove(run);
                None
            }
            Line::Told { run, status, .. }
                if *status == Status::Failed && retried.contains(run) =>
            {
                None
            }
            Line::Over { run, status, .. } => over
                .insert(run, status)
                .map(|before| format!("run {run} ended as {before}, then as {status}")),
            Line::Told {
                run,
                status,
                result,
                ..
            } => {
                let first = *told.entry(run).or_insert((status, result));
                (first != (status, result)).then(|| {
                    format!("run {run} was told to be {first:?}, then {status} {result:?}")
                })
            }
            _ => None,
        };
        found.extend(what.map(|what| Violation {
            rule: Rule::OneEnd,
            id: Some(line.id().clone()),
            what,
        }));
    }
}

/// An id of which a start was acknowledged has an instance, unless it ended and its retention passed.
pub(super) fn gone(id: &InstanceId, lines: &[&Line], found: &mut Found) {
    let acknowledged = lines
        .iter()
        .filter(|line| matches!(line, Line::Started { .. }));
    let is_over = |line: &&&Line| {
        let ended = |other: &&Line| matches!(other, Line::Over { run, .. } if *run == line.run());
        lines.iter().any(ended)
    };
    let lost = acknowledged.filter(|line| !is_over(line));
    found.extend(lost.map(|line| Violation {
        rule: Rule::StartKept,
        id: Some(id.clone()),
        what: format!("run {} was acknowledged and is gone", line.run()),
    }));
}

/// The run of every acknowledged start is the one stored, or one that was replaced.
pub(super) fn starts(case: &Case, found: &mut Found) {
    let acknowledged: Vec<_> = case
        .lines
        .iter()
        .filter(|line| matches!(line, Line::Started { .. }))
        .map(|line| line.run())
        .collect();
    let replaced = &case.snapshot.replaced;
    // Only the last 8 are remembered.
    let forgotten = replaced.len() >= 8;
    for run in acknowledged {
        if run != case.run() && !replaced.contains(&run) && !forgotten {
            let what = format!("run {run} was acknowledged; stored is {}", case.run());
            found.push(case.violation(Rule::StartKept, what));
        }
    }
}

/// Live tokens are open tasks.
pub(super) fn open(case: &Case, found: &mut Found) {
    let snapshot = case.snapshot;
    let open = snapshot.open_tasks();
    if !snapshot.tokens_are_counted() {
        let what = format!(
            "it is {} with {} live tokens and {open} open tasks: {:?}",
            snapshot.header.status, snapshot.open, snapshot.tasks
        );
        found.push(case.violation(Rule::OpenCounted, what));
    }
    let finished = snapshot.finished_at.is_some();
    if finished != snapshot.header.status.is_terminal() {
        let what = format!("it is {} and finished: {finished}", snapshot.header.status);
        found.push(case.violation(Rule::OneEnd, what));
    }
}

/// Branches arrive once, and the join fires once.
pub(super) fn joins(case: &Case, found: &mut Found) {
    for (join, record) in &case.snapshot.joins {
        let distinct: BTreeSet<_> = record.who.iter().collect();
        let reached = case.snapshot.tasks.contains_key(join);
        let fits = distinct.len() == record.who.len()
            && usize::from(record.arrived) == record.who.len()
            && record.arrived <= record.total
            && record.fired == (record.arrived >= record.need)
            && record.fired == reached;
        let done = |task: &TaskName| {
            let state = case.snapshot.tasks.get(task).map(|record| record.state);
            state == Some(TaskState::Completed)
        };
        let by_graph = case
            .graph
            .is_none_or(|graph| expects(graph, join, record.need, record.total));
        if !fits || !by_graph || !record.who.iter().all(done) {
            let what = format!("join {join} is {record:?}, reached: {reached}");
            found.push(case.violation(Rule::JoinOnce, what));
        }
    }
}

fn expects(graph: &Graph, join: &TaskName, need: u16, total: u16) -> bool {
    let node = graph.find(join).map(|id| graph.node(id));
    node.is_some_and(|node| node.kind == NodeKind::Join { need, total })
}

/// Failures, crashes and attempts within their bounds.
pub(super) fn budget(case: &Case, found: &mut Found) {
    for (task, record) in &case.snapshot.tasks {
        let failed = u32::from(record.state == TaskState::Failed);
        let most_attempts = node(case, task).map(|node| node.retry.attempts());
        let counted = record.failures.saturating_add(record.crashes);
        let fits = record.crashes <= case.snapshot.max_crashes.saturating_add(failed)
            && most_attempts.is_none_or(|most| record.failures < most + failed)
            && counted <= record.attempt;
        if !fits {
            let what = format!(
                "{task} is {record}, with {most_attempts:?} attempts and {} crashes allowed",
                case.snapshot.max_crashes
            );
            found.push(case.violation(Rule::WithinBudget, what));
        }
    }
    for line in case.lines {
        if let Line::Claimed {
            run, task, attempt, ..
        } = line
            && *run == case.run()
        {
            let stored = case
                .snapshot
                .tasks
                .get(task)
                .map_or(0, |record| record.attempt);
            if *attempt > stored {
                let what = format!("attempt {attempt} of {task} was given out; stored is {stored}");
                found.push(case.violation(Rule::AttemptsGrow, what));
            }
        }
    }
}

fn node<'a>(case: &Case<'a>, task: &TaskName) -> Option<&'a Node> {
    let graph = case.graph?;
    graph.find(task).map(|id| graph.node(id))
}

/// Stored results come from the attempts that are stored, and successors saw them.
pub(super) fn results(case: &Case, found: &mut Found) {
    let Some(graph) = case.graph else { return };
    let known = |task: &TaskName| {
        case.lines
            .iter()
            .any(|line| line.run() == case.run() && line.task() == Some(task))
    };
    for (task, record) in &case.snapshot.tasks {
        let has_handler = node(case, task).is_some_and(Node::has_handler);
        if record.state != TaskState::Completed || !has_handler || !known(task) {
            continue;
        }
        let stored = case
            .values
            .get(&ValueField::Output(task.clone()))
            .map(|bytes| Digest::of_bytes(bytes));
        let made = ended(case, task, record.attempt);
        if stored.is_none() || made != Some(stored) {
            let what = format!(
                "{task} is completed by attempt {} with {stored:?}; this attempt returned {made:?}",
                record.attempt
            );
            found.push(case.violation(Rule::OneResult, what));
        }
    }
    for line in case.lines.iter().filter(|line| line.run() == case.run()) {
        if let Line::Stored { task, attempt, .. } = line {
            let record = case.snapshot.tasks.get(task);
            let kept = |r: &TaskRecord| (r.state, r.attempt) == (TaskState::Completed, *attempt);
            if !record.is_some_and(kept) {
                let what = format!("attempt {attempt} completed {task}, which is {record:?}");
                found.push(case.violation(Rule::OneResult, what));
            }
        }
    }
    for line in case.lines {
        let Line::Began {
            run,
            task,
            input,
            attempt,
            ..
        } = line
        else {
            continue;
        };
        if *run != case.run() {
            continue;
        }
        let expected = expected_input(case, graph, task);
        if expected != Some(*input) {
            let what =
                format!("attempt {attempt} of {task} was given {input}; stored is {expected:?}");
            found.push(case.violation(Rule::OneResult, what));
        }
    }
}

/// What an attempt returned; `None` if it never ended.
fn ended(case: &Case, task: &TaskName, attempt: u32) -> Option<Option<Digest>> {
    case.lines.iter().find_map(|line| match line {
        Line::Ended {
            run,
            task: of,
            attempt: by,
            output,
            ..
        } if (*run, of, *by) == (case.run(), task, attempt) => Some(*output),
        _ => None,
    })
}

fn expected_input(case: &Case, graph: &Graph, task: &TaskName) -> Option<Digest> {
    let id = graph.find(task)?;
    match graph.input_of(id) {
        Source::Value(field) => case.values.get(field).map(|bytes| Digest::of_bytes(bytes)),
        Source::Branches(fields) => {
            let parts: Option<Vec<_>> =
                fields.iter().map(|f| case.values.get(f).cloned()).collect();
            Some(Digest::of_bytes(&codec::join(&parts?)))
        }
    }
}

/// Those who were told the end were told what is stored.
pub(super) fn told(case: &Case, found: &mut Found) {
    let header = &case.snapshot.header;
    let result = header
        .result
        .as_ref()
        .filter(|_| header.status == Status::Completed)
        .and_then(|field| case.values.get(field))
        .map(|bytes| Digest::of_bytes(bytes));
    let stored = (header.status, result);
    if header.status == Status::Completed && result.is_none() {
        let what = "it is completed without a result".to_owned();
        found.push(case.violation(Rule::OneEnd, what));
    }
    for line in case.lines.iter().filter(|line| line.run() == case.run()) {
        let heard = match line {
            // It was dead for a while.
            Line::Told { status, .. } | Line::Over { status, .. }
                if *status == Status::Failed && case.snapshot.retries > 0 =>
            {
                continue;
            }
            Line::Told { status, result, .. } => (*status, *result),
            Line::Over { status, .. } => (*status, stored.1),
            _ => continue,
        };
        if heard != stored {
            let what = format!("{heard:?} was told, stored is {stored:?}");
            found.push(case.violation(Rule::OneEnd, what));
        }
    }
}

/// A failure has a reason that the workflow allows.
pub(super) fn explained(case: &Case, found: &mut Found) {
    let header = &case.snapshot.header;
    let fits = match (header.status, &header.error) {
        (Status::Failed, Some(error)) => {
            let record = case.snapshot.tasks.get(&error.task);
            let limits = node(case, &error.task).map(|node| node.limits);
            let timed = limits.is_none_or(|limits| !limits.is_none());
            record.is_some_and(|record| {
                let by_kind = match error.kind {
                    ErrorKind::Crash => record.crashes == case.snapshot.max_crashes + 1,
                    ErrorKind::Timeout | ErrorKind::Deadline => timed && record.failures > 0,
                    ErrorKind::Error | ErrorKind::Panic | ErrorKind::Permanent => {
                        record.failures > 0
                    }
                };
                record.state == TaskState::Failed && record.attempt == error.attempt && by_kind
            })
        }
        (Status::Failed, None) => false,
        (Status::Cancelled | Status::Terminated, _) => header.control.is_some(),
        (Status::Paused, _) => header.control.is_some(),
        (Status::Running | Status::Completed, error) => error.is_none(),
    };
    if !fits {
        let what = format!(
            "it is {} because of {:?}, {:?}: {:?}",
            header.status, header.error, header.control, case.snapshot.tasks
        );
        found.push(case.violation(Rule::FailureExplained, what));
    }
}
