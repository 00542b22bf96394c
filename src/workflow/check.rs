//! What must hold of a graph: rules that a user can break, and wiring that only a broken record can.

use std::{collections::HashSet, time::Duration};

use super::{
    BuildError, BuildErrors, GraphError, MAX_BRANCHES, MAX_DURATION, MAX_NODES, MIN_DURATION,
    NodeKind, Wiring,
    raw::{RawGraph, RawNode, RawValue},
};
use crate::ids::{IdError, MAX_NAME, QueueName, SignalName, TaskName, WorkflowName, shorten};

/// The names of a raw graph, checked.
pub(super) struct Names {
    pub(super) workflow: WorkflowName,
    pub(super) queue: Option<QueueName>,
    pub(super) nodes: Vec<NodeNames>,
}

/// The names of one node.
pub(super) struct NodeNames {
    pub(super) name: TaskName,
    pub(super) queue: Option<QueueName>,
    pub(super) signal: Option<SignalName>,
}

/// Finds every mistake that a user of a builder can make.
pub(super) fn rules(raw: &RawGraph) -> Result<Names, BuildErrors> {
    let mut errors = Vec::new();
    let workflow = keep(WorkflowName::new(&raw.name), &mut errors);
    let queue = queue(raw.queue.as_deref(), &mut errors);
    match raw.nodes.len() {
        0 => errors.push(BuildError::Empty),
        given if given > MAX_NODES => errors.push(BuildError::Nodes { given }),
        _ => {}
    }
    let mut seen = HashSet::new();
    let mut nodes = Vec::new();
    for node in &raw.nodes {
        if !seen.insert(&node.name) {
            let node = node.name.clone();
            errors.push(BuildError::Duplicate { node });
        }
        let name = keep(node_name(&node.name), &mut errors);
        let queue = self::queue(node.queue.as_deref(), &mut errors);
        let signal = signal(node, name.as_ref(), &mut errors);
        nodes.extend(name.map(|name| NodeNames {
            name,
            queue,
            signal,
        }));
        tuning(node, &mut errors);
    }
    match workflow {
        Some(workflow) if errors.is_empty() => Ok(Names {
            workflow,
            queue,
            nodes,
        }),
        _ => Err(BuildErrors {
            workflow: shorten(&raw.name),
            errors,
        }),
    }
}

fn keep<T>(result: Result<T, IdError>, errors: &mut Vec<BuildError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(error.into());
            None
        }
    }
}

fn queue(name: Option<&str>, errors: &mut Vec<BuildError>) -> Option<QueueName> {
    name.and_then(|name| keep(QueueName::new(name), errors))
}

/// What a node waits for, if it waits: a signal of its own name unless it says another.
fn signal(
    node: &RawNode,
    name: Option<&TaskName>,
    errors: &mut Vec<BuildError>,
) -> Option<SignalName> {
    let NodeKind::Wait(_) = node.kind else {
        return None;
    };
    match &node.signal {
        Some(signal) => keep(SignalName::new(signal), errors),
        None => name.cloned().map(SignalName::from),
    }
}

/// The name of a node in a graph; a task inside a loop gets its `#<iteration>` only when it runs.
fn node_name(name: &str) -> Result<TaskName, IdError> {
    if name.contains('#') {
        return Err(IdError::Name {
            kind: "task name",
            value: shorten(name),
            max: MAX_NAME,
        });
    }
    TaskName::new(name)
}

fn tuning(node: &RawNode, errors: &mut Vec<BuildError>) {
    let name = || shorten(&node.name);
    let branches = node.branches.len();
    if matches!(node.kind, NodeKind::Join { .. }) && !(1..=MAX_BRANCHES).contains(&branches) {
        errors.push(BuildError::Branches {
            join: name(),
            given: branches,
        });
    }
    if node.retry.attempts() == 0 {
        errors.push(BuildError::Attempts { node: name() });
    }
    if !(0.0..=1.0).contains(&node.retry.jitter_part()) {
        errors.push(BuildError::Jitter {
            node: name(),
            given: node.retry.jitter_part(),
        });
    }
    for (what, given) in durations(node) {
        if !(MIN_DURATION..=MAX_DURATION).contains(&given) {
            errors.push(BuildError::Duration {
                node: name(),
                what,
                given,
            });
        }
    }
}

fn durations(node: &RawNode) -> Vec<(&'static str, Duration)> {
    let mut durations = node.retry.durations();
    if let NodeKind::Delay(length) = node.kind {
        durations.push(("length", length));
    }
    durations.extend(node.limits.timeout.map(|given| ("timeout", given)));
    durations.extend(node.limits.deadline.map(|given| ("deadline", given)));
    durations
}

/// Checks that nodes are connected as a builder connects them: edges lead forward, all nodes are reached, joins wait for
/// just the branches that lead to them, and there is one end.
pub(super) fn wiring(raw: &RawGraph) -> Result<(), GraphError> {
    let wrong = |node: usize, problem| GraphError::Wiring { node, problem };
    let before = predecessors(raw)?;
    let values = raw.values();
    for (i, node) in raw.nodes.iter().enumerate() {
        let starts = raw.entry.iter().filter(|&&e| e as usize == i).count();
        let incoming = starts + before[i].len();
        if incoming == 0 {
            return Err(wrong(i, Wiring::Unreachable));
        }
        let NodeKind::Join { need, total } = node.kind else {
            if incoming > 1 {
                return Err(wrong(i, Wiring::ManyInputs));
            }
            if !node.branches.is_empty() {
                return Err(wrong(i, Wiring::Values));
            }
            continue;
        };
        // An instance begins with nodes that run, so a join at its start has nobody else to wait for.
        let total = usize::from(total);
        if usize::from(need) != total || total != incoming || (starts > 0 && total > 1) {
            return Err(wrong(i, Wiring::Count));
        }
        if !values_are_there(raw, &before, &values, i) {
            return Err(wrong(i, Wiring::Values));
        }
    }
    let ends = raw.nodes.iter().enumerate();
    let mut ends = ends.filter(|(_, node)| node.next.is_empty()).skip(1);
    ends.next()
        .map_or(Ok(()), |(i, _)| Err(wrong(i, Wiring::ManyEnds)))
}

/// The nodes before each node, once all edges are known to lead forward to nodes that exist.
fn predecessors(raw: &RawGraph) -> Result<Vec<Vec<usize>>, GraphError> {
    let mut before = vec![Vec::new(); raw.nodes.len()];
    let wrong = |node: usize, problem| Err(GraphError::Wiring { node, problem });
    let exists = |i: u32| (i as usize) < raw.nodes.len();
    if let Some(&i) = raw.entry.iter().find(|&&i| !exists(i)) {
        return wrong(i as usize, Wiring::Missing);
    }
    for (i, node) in raw.nodes.iter().enumerate() {
        for &next in &node.next {
            let next_index = next as usize;
            if !exists(next) {
                return wrong(next_index, Wiring::Missing);
            }
            if next_index <= i {
                return wrong(i, Wiring::Backwards);
            }
            if before[next_index].last() == Some(&i) {
                return wrong(i, Wiring::Twice);
            }
            before[next_index].push(i);
        }
    }
    Ok(before)
}

/// Whether a join takes the value of each branch that leads to it, and for branches without nodes the value of a node
/// that is done before any of them.
fn values_are_there(
    raw: &RawGraph,
    before: &[Vec<usize>],
    values: &[RawValue],
    join: usize,
) -> bool {
    let mut left = raw.nodes[join].branches.clone();
    for &branch in &before[join] {
        match left.iter().position(|value| *value == values[branch]) {
            Some(i) => drop(left.swap_remove(i)),
            // The one edge of a fork that has only branches without nodes brings nothing that is not among these.
            None => return false,
        }
    }
    let mut earlier = vec![false; raw.nodes.len()];
    let mut todo = before[join].clone();
    while let Some(i) = todo.pop() {
        if !std::mem::replace(&mut earlier[i], true) {
            todo.extend(&before[i]);
        }
    }
    left.iter().all(|value| match value {
        RawValue::Input => true,
        RawValue::Output(i) => {
            let i = *i as usize;
            earlier.get(i) == Some(&true) && !matches!(raw.nodes[i].kind, NodeKind::Delay(_))
        }
    })
}
