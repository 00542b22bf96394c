use std::collections::{BTreeMap, BTreeSet};

use super::{FollowUp, Next, decide::enter};
use crate::{
    ids::{InputRef, TaskName, ValueField},
    workflow::{Graph, Node, NodeId, NodeKind, Source},
};

/// Where a dead instance begins again. Default: at the tasks that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RetryFrom {
    /// At the tasks that failed.
    #[default]
    Failed,
    /// At this task, whose result is taken back with all that came of it; what failed elsewhere begins again too.
    Task(TaskName),
    /// At the first nodes, as if nothing had been done.
    Start,
}

/// How a node stood when its instance died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its result is stored.
    Completed,
    /// It failed for good.
    Failed,
    /// It was under way.
    Open,
    /// An earlier retry took its result back, and it was not reached since.
    Cleared,
}

/// What the engine has to know of a dead instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dead {
    /// The nodes that were reached.
    pub nodes: BTreeMap<TaskName, Standing>,
    /// The values that are stored, with their lengths in bytes.
    pub values: BTreeMap<ValueField, usize>,
    /// Who arrived at which join, in order.
    pub arrived: BTreeMap<TaskName, Vec<TaskName>>,
}

/// What a retry does; a store applies it in one transition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetryPlan {
    /// Begins again, failures and crashes forgotten: ready or after a delay. `open` + 1 for each.
    pub again: Vec<FollowUp>,
    /// Was under way when the instance died, and goes on with the attempts it has left. `open` + 1 for each.
    pub go_on: Vec<Next>,
    /// Is taken back: records and results. How often it was claimed is kept, so that no fence comes twice.
    pub clear: BTreeSet<TaskName>,
    /// Joins that nodes arrived at which are taken back, with those who have still arrived.
    pub joins: BTreeMap<TaskName, Vec<TaskName>>,
}

/// A retry names a task that was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReached {
    /// What was named.
    pub task: TaskName,
    /// Those that can be named.
    pub reached: Vec<TaskName>,
}

/// How a dead instance of this graph begins again.
///
/// # Errors
/// [`NotReached`] when the task to begin at has not been reached or is none of the graph.
pub fn retry(graph: &Graph, dead: &Dead, from: &RetryFrom) -> Result<RetryPlan, NotReached> {
    let standing = |node: &Node| dead.nodes.get(&node.name).copied();
    let reached = |node: &Node| standing(node).is_some_and(|s| s != Standing::Cleared);
    let named: Vec<NodeId> = match from {
        RetryFrom::Failed => Vec::new(),
        RetryFrom::Start => graph.entry().to_vec(),
        RetryFrom::Task(task) => {
            let node = graph.find(task).filter(|id| reached(graph.node(*id)));
            vec![node.ok_or_else(|| NotReached {
                task: task.clone(),
                reached: names(graph.nodes().iter().filter(|node| reached(node))),
            })?]
        }
    };
    let mut below = downstream(graph, &named);
    let mut again = named.clone();
    again.extend(graph.ids().filter(|id| {
        let failed = standing(graph.node(*id)) == Some(Standing::Failed);
        failed && !below.contains(id) && !named.contains(id)
    }));
    below.extend(downstream(graph, &again));
    again.retain(|id| !below.contains(id));
    let open = graph.ids().filter(|id| {
        let open = standing(graph.node(*id)) == Some(Standing::Open);
        open && !below.contains(id) && !again.contains(id)
    });
    let mut taken_back = below.clone();
    taken_back.extend(&again);
    Ok(RetryPlan {
        go_on: open.map(|id| goes_on(graph, &dead.values, id)).collect(),
        joins: joins(graph, dead, &below, &taken_back),
        clear: below
            .iter()
            .map(|id| graph.node(*id).name.clone())
            .collect(),
        again: again
            .iter()
            .map(|id| begin(graph, dead, *id, named.contains(id)))
            .collect(),
    })
}

fn names<'a>(nodes: impl Iterator<Item = &'a Node>) -> Vec<TaskName> {
    nodes.map(|node| node.name.clone()).collect()
}

/// All nodes behind these, without these unless one is behind another.
fn downstream(graph: &Graph, from: &[NodeId]) -> BTreeSet<NodeId> {
    let mut below = BTreeSet::new();
    let mut todo: Vec<NodeId> = from.to_vec();
    while let Some(id) = todo.pop() {
        for next in &graph.node(id).next {
            if below.insert(*next) {
                todo.push(*next);
            }
        }
    }
    below
}

/// Who stays arrived at the joins behind what is taken back. A join that itself begins again keeps its branches.
fn joins(
    graph: &Graph,
    dead: &Dead,
    below: &BTreeSet<NodeId>,
    taken_back: &BTreeSet<NodeId>,
) -> BTreeMap<TaskName, Vec<TaskName>> {
    let gone = |task: &TaskName| graph.find(task).is_some_and(|id| taken_back.contains(&id));
    below
        .iter()
        .map(|id| &graph.node(*id).name)
        .filter_map(|join| {
            let arrived = dead.arrived.get(join)?;
            let stay = arrived.iter().filter(|task| !gone(task));
            Some((join.clone(), stay.cloned().collect()))
        })
        .collect()
}

/// The lengths of the values that are stored.
type Values = BTreeMap<ValueField, usize>;

fn input(graph: &Graph, values: &Values, id: NodeId) -> InputRef {
    match graph.input_of(id) {
        Source::Value(field) => InputRef::Field {
            field: field.clone(),
            len: values.get(field).copied().unwrap_or(0),
        },
        Source::Branches(_) => InputRef::Join,
    }
}

fn next(graph: &Graph, id: NodeId, input: InputRef) -> Next {
    let node = graph.node(id);
    Next {
        task: node.name.clone(),
        list: graph.list(id),
        input,
        limits: node.limits,
    }
}

/// A node that goes on. One that waited waits anew, unless its signal is there.
pub(crate) fn goes_on(graph: &Graph, values: &Values, id: NodeId) -> Next {
    let node = graph.node(id);
    let signal = values.get(&node.value());
    let input = match (node.kind, signal) {
        (NodeKind::Wait(_), Some(len)) => InputRef::Field {
            field: node.value(),
            len: *len,
        },
        _ => input(graph, values, id),
    };
    next(graph, id, input)
}

/// A node that begins again: as it followed at first, but that a join's branches have met already, and that a signal
/// which is there stays, unless it is the one to take back.
fn begin(graph: &Graph, dead: &Dead, id: NodeId, is_named: bool) -> FollowUp {
    match graph.node(id).kind {
        NodeKind::Wait(_) if !is_named => FollowUp::Ready(goes_on(graph, &dead.values, id)),
        NodeKind::Join { .. } => FollowUp::Ready(next(graph, id, InputRef::Join)),
        _ => enter(graph, id, &input(graph, &dead.values, id)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Workflow, task::TaskError};

    async fn same(n: u64) -> Result<u64, TaskError> {
        Ok(n)
    }

    /// a, then `left` beside `wait` and a delay, then the join, then z.
    fn graph() -> std::sync::Arc<Graph> {
        let flow = Workflow::builder("flow")
            .task("a", same)
            .fork(|f| {
                f.branch(|b| b.task("left", same)).branch(|b| {
                    b.await_signal::<u64>("wait")
                        .delay("pause", Duration::from_secs(5))
                })
            })
            .join("join", async |(a, b): (u64, u64)| anyhow::Ok(a + b))
            .task("z", same)
            .build();
        std::sync::Arc::clone(flow.expect("a workflow").graph())
    }

    fn name(text: &str) -> TaskName {
        TaskName::new(text).expect("a name")
    }

    fn dead(nodes: &[(&str, Standing)], values: &[&str], arrived: &[&str]) -> Dead {
        let value = |v: &&str| (v.parse().expect("a field"), 3);
        let arrived: Vec<_> = arrived.iter().map(|task| name(task)).collect();
        Dead {
            nodes: nodes.iter().map(|(n, s)| (name(n), *s)).collect(),
            values: values.iter().map(value).collect(),
            arrived: (!arrived.is_empty())
                .then(|| (name("join"), arrived))
                .into_iter()
                .collect(),
        }
    }

    /// What begins again and what goes on, each with its input; what is taken back.
    fn shown(plan: &RetryPlan) -> (Vec<String>, Vec<String>, Vec<String>) {
        let one = |next: &Next| format!("{} of {}", next.task, next.input);
        let begins = |follow_up: &FollowUp| match follow_up {
            FollowUp::Ready(next) => one(next),
            FollowUp::After { next, delay } => format!("{} after {delay:?}", one(next)),
            other => panic!("{other:?}"),
        };
        (
            plan.again.iter().map(begins).collect(),
            plan.go_on.iter().map(one).collect(),
            plan.clear.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn what_failed_begins_again_and_what_was_open_goes_on() {
        use Standing::{Completed, Failed, Open};
        let nodes = [("a", Completed), ("left", Failed), ("wait", Open)];
        let values = ["input", "out:a"];
        let plan = retry(&graph(), &dead(&nodes, &values, &[]), &RetryFrom::Failed);
        let (again, go_on, clear) = shown(&plan.expect("a plan"));
        assert_eq!(again, ["left of out:a 3"]);
        assert_eq!(go_on, ["wait of out:a 3"], "it waits anew");
        assert_eq!(clear, ["join", "z"]);
        let values = ["input", "out:a", "out:wait"];
        let plan = retry(&graph(), &dead(&nodes, &values, &[]), &RetryFrom::Failed);
        let (_, go_on, _) = shown(&plan.expect("a plan"));
        assert_eq!(go_on, ["wait of out:wait 3"], "its signal is there");
    }

    // case 65
    #[test]
    fn a_branch_that_begins_again_arrives_again_and_the_others_stay() {
        use Standing::{Completed, Failed};
        let nodes = [
            ("a", Completed),
            ("left", Completed),
            ("wait", Completed),
            ("pause", Completed),
            ("join", Failed),
        ];
        let values = ["input", "out:a", "out:left", "out:wait"];
        let dead = dead(&nodes, &values, &["pause", "left"]);
        let plan = retry(&graph(), &dead, &RetryFrom::Task(name("left"))).expect("a plan");
        let (again, go_on, clear) = shown(&plan);
        assert_eq!((again, go_on.len()), (vec!["left of out:a 3".into()], 0));
        assert_eq!(clear, ["join", "z"]);
        assert_eq!(plan.joins, [(name("join"), vec![name("pause")])].into());
        // The join alone: its branches have met already.
        let plan = retry(&graph(), &dead, &RetryFrom::Failed).expect("a plan");
        assert_eq!(shown(&plan).0, ["join of @"]);
        assert!(plan.joins.is_empty());
        // A signal is taken back only by who names its wait, or the start.
        let plan = retry(&graph(), &dead, &RetryFrom::Task(name("wait"))).expect("a plan");
        let (again, _, clear) = shown(&plan);
        assert_eq!(again, ["wait of out:a 3"]);
        assert_eq!(clear, ["join", "pause", "z"]);
        let plan = retry(&graph(), &dead, &RetryFrom::Task(name("pause"))).expect("a plan");
        assert_eq!(shown(&plan).0, ["pause of out:wait 3 after 5s"]);
        let plan = retry(&graph(), &dead, &RetryFrom::Start).expect("a plan");
        assert_eq!(shown(&plan).0, ["a of input 3"]);
        assert_eq!(plan.joins, [(name("join"), Vec::new())].into());
    }

    #[test]
    fn what_fails_beside_the_task_that_is_named_begins_again_too() {
        use Standing::{Cleared, Completed, Failed, Open};
        let nodes = [
            ("a", Completed),
            ("left", Failed),
            ("wait", Completed),
            ("pause", Open),
            ("join", Cleared),
        ];
        let dead = dead(&nodes, &["input", "out:a", "out:wait"], &[]);
        let plan = retry(&graph(), &dead, &RetryFrom::Task(name("wait"))).expect("a plan");
        let (again, go_on, clear) = shown(&plan);
        assert_eq!(again, ["wait of out:a 3", "left of out:a 3"]);
        assert!(
            go_on.is_empty(),
            "what was behind the wait is not there yet"
        );
        assert_eq!(clear, ["join", "pause", "z"]);
    }

    #[test]
    fn a_task_that_was_not_reached_is_refused_with_those_that_were() {
        use Standing::{Cleared, Completed, Failed};
        let nodes = [("a", Completed), ("left", Failed), ("z", Cleared)];
        let dead = dead(&nodes, &["input", "out:a"], &[]);
        for task in ["z", "join", "nowhere"] {
            let refused = retry(&graph(), &dead, &RetryFrom::Task(name(task)));
            let refused = refused.expect_err("not reached");
            assert_eq!(refused.task, name(task));
            assert_eq!(refused.reached, [name("a"), name("left")]);
        }
    }
}
