//! The promise about time: nothing begins before its delay is over.

use std::time::Duration;

use super::{
    Line, Rule,
    check::{Case, Found},
};
use crate::{
    ids::TaskName,
    time::Timestamp,
    workflow::{Graph, Node, NodeKind},
};

/// Delays of the graph, and delays between attempts.
pub(super) fn early(case: &Case, tolerance: Duration, found: &mut Found) {
    let Some(graph) = case.graph else { return };
    for line in case.lines {
        let Line::Began {
            at,
            run,
            task,
            attempt,
            failures,
            ..
        } = line
        else {
            continue;
        };
        if *run != case.run() {
            continue;
        }
        let not_before = [
            after_delays(case, graph, task),
            after_failure(case, graph, task, (*attempt, *failures)),
        ];
        let earliest = not_before.into_iter().flatten().max();
        if let Some(earliest) = earliest.filter(|earliest| at.plus(tolerance) < *earliest) {
            let early = earliest.since(*at);
            let what = format!("attempt {attempt} of {task} began {early:?} too early");
            found.push(case.violation(Rule::NeverEarly, what));
        }
    }
}

/// When a task behind delays may begin: their durations after the attempt before them ended.
fn after_delays(case: &Case, graph: &Graph, task: &TaskName) -> Option<Timestamp> {
    let mut delay = Duration::ZERO;
    let mut node = before(graph, task)?;
    while let NodeKind::Delay(by) = node.kind {
        delay += by;
        node = before(graph, &node.name)?;
    }
    if delay.is_zero() {
        return None;
    }
    let attempt = case.snapshot.tasks.get(&node.name)?.attempt;
    case.lines.iter().find_map(|line| match line {
        Line::Ended {
            at,
            run,
            task: of,
            attempt: by,
            ..
        } if (*run, of, *by) == (case.run(), &node.name, attempt) => Some(at.plus(delay)),
        _ => None,
    })
}

/// The only node before one that is no join.
fn before<'a>(graph: &'a Graph, task: &TaskName) -> Option<&'a Node> {
    let id = graph.find(task)?;
    let joins = !graph.join_sources(id).is_empty();
    let mut nodes = graph.nodes().iter();
    nodes.find(|node| !joins && node.next.contains(&id))
}

/// When a task that failed may begin again: its wait, at the shortest, after the attempt that failed began. If failures
/// grew from one attempt to the next, the first of the two is the one that failed.
fn after_failure(
    case: &Case,
    graph: &Graph,
    task: &TaskName,
    (attempt, failures): (u32, u32),
) -> Option<Timestamp> {
    let failed = (attempt.checked_sub(1)?, failures.checked_sub(1)?);
    let policy = &graph.node(graph.find(task)?).retry;
    let began = case.lines.iter().find_map(|line| match line {
        Line::Began {
            at,
            run,
            task: of,
            attempt,
            failures,
            ..
        } if (*run, of, (*attempt, *failures)) == (case.run(), task, failed) => Some(*at),
        _ => None,
    })?;
    let asked = case.lines.iter().find_map(|line| match line {
        Line::Ended {
            run,
            task: of,
            attempt,
            wait,
            ..
        } if (*run, of, *attempt) == (case.run(), task, failed.0) => *wait,
        _ => None,
    });
    let least = policy.delay(failures, 0.0);
    Some(began.plus(asked.map_or(least, |asked| asked.min(least))))
}
