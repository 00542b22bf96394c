use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    ids::{ListName, QueueName, TaskName, ValueField},
    task::{TaskContext, TaskError},
};

const SECOND: Duration = Duration::from_secs(1);

async fn same(n: u64) -> Result<u64, TaskError> {
    Ok(n)
}

async fn text(_ctx: TaskContext, n: u64) -> Result<String, TaskError> {
    Ok(n.to_string())
}

async fn both((n, text): (u64, String)) -> Result<String, TaskError> {
    Ok(format!("{n}{text}"))
}

async fn three((a, b, c): (u64, u64, u64)) -> Result<u64, TaskError> {
    Ok(a + b + c)
}

async fn sum(list: Vec<u64>) -> Result<u64, TaskError> {
    Ok(list.into_iter().sum())
}

fn out(task: &str) -> ValueField {
    ValueField::Output(TaskName::new(task).unwrap())
}

fn id(graph: &Graph, node: &str) -> NodeId {
    graph.find(&TaskName::new(node).unwrap()).unwrap()
}

fn next<'a>(graph: &'a Graph, node: &str) -> Vec<&'a str> {
    names(graph, &graph.node(id(graph, node)).next)
}

fn names<'a>(graph: &'a Graph, ids: &[NodeId]) -> Vec<&'a str> {
    ids.iter().map(|&id| graph.node(id).name.as_str()).collect()
}

fn join(need: u16) -> NodeKind {
    NodeKind::Join { need, total: need }
}

fn checkout() -> Workflow<u64, String> {
    Workflow::builder("checkout")
        .task("reserve", same)
        .fork(|f| {
            f.branch(|b| b.task("ship", same).delay("transit", SECOND))
                .branch(|b| b.task("mail", text))
        })
        .join("close", both)
        .build()
        .unwrap()
}

#[test]
fn a_chain_with_a_fork_becomes_a_flat_graph() {
    let workflow = checkout();
    let graph = workflow.graph();
    assert_eq!(names(graph, graph.entry()), ["reserve"]);
    assert_eq!(next(graph, "reserve"), ["ship", "mail"]);
    assert_eq!(next(graph, "ship"), ["transit"]);
    assert_eq!(next(graph, "transit"), ["close"]);
    assert_eq!(next(graph, "mail"), ["close"]);
    assert_eq!(next(graph, "close"), [""; 0]);
    assert_eq!(graph.node(id(graph, "close")).kind, join(2));
    assert_eq!(
        graph.join_sources(id(graph, "close")),
        [out("ship"), out("mail")],
        "a delay passes on what was there before it"
    );
    assert_eq!(*graph.result(), out("close"));
    assert!(graph.find(&TaskName::new("none").unwrap()).is_none());
}

#[test]
fn a_fork_can_stand_at_the_start_and_be_all_there_is() {
    let workflow = Workflow::builder::<u64>("start")
        .fork(|f| {
            f.branch(|b| b.task("a", same))
                .branch(|b| b.task("b", text))
        })
        .join("j", both)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(names(graph, graph.entry()), ["a", "b"]);
    assert_eq!(
        *graph.input_of(id(graph, "a")),
        Source::Value(ValueField::Input)
    );
}

#[test]
fn a_branch_without_nodes_brings_the_value_in_front_of_the_fork_and_is_not_waited_for() {
    let workflow = Workflow::builder("empty")
        .task("a", same)
        .fork(|f| f.branch(|b| b).branch(|b| b.task("b", text)))
        .join("j", both)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(next(graph, "a"), ["b"]);
    assert_eq!(graph.node(id(graph, "j")).kind, join(1));
    assert_eq!(graph.join_sources(id(graph, "j")), [out("a"), out("b")]);

    let workflow = Workflow::builder::<u64>("empties")
        .fork_each(0..3, |_, b| b)
        .join("j", sum)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(names(graph, graph.entry()), ["j"]);
    assert_eq!(graph.node(id(graph, "j")).kind, join(1));
    assert_eq!(
        graph.join_sources(id(graph, "j")),
        vec![ValueField::Input; 3]
    );
}

#[test]
fn forks_nest_and_each_join_takes_its_own_branches() {
    let workflow = Workflow::builder("nest")
        .task("a", same)
        .fork(|f| {
            f.branch(|b| {
                b.delay("d", SECOND)
                    .fork_each(["x", "y"], |key, b| b.task(key, same))
                    .join("inner", sum)
            })
            .branch(|b| b)
            .branch(|b| b.task("z", same))
        })
        .join("outer", three)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(next(graph, "a"), ["d", "z"]);
    assert_eq!(next(graph, "d"), ["x", "y"]);
    assert_eq!(next(graph, "inner"), ["outer"]);
    assert_eq!(*graph.input_of(id(graph, "x")), Source::Value(out("a")));
    assert_eq!(graph.join_sources(id(graph, "inner")), [out("x"), out("y")]);
    let outer = id(graph, "outer");
    assert_eq!(
        graph.join_sources(outer),
        [out("inner"), out("a"), out("z")]
    );
    assert_eq!(graph.node(outer).kind, join(2));
}

#[test]
fn a_workflow_can_begin_with_a_delay_end_in_one_or_be_one() {
    let workflow = Workflow::builder("late")
        .delay("before", SECOND)
        .task("a", same)
        .delay("after", SECOND)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(names(graph, graph.entry()), ["before"]);
    assert_eq!(*graph.result(), out("a"));
    let nothing = Workflow::builder::<u64>("nothing").delay("only", SECOND);
    assert_eq!(
        *nothing.build().unwrap().graph().result(),
        ValueField::Input
    );
}

#[test]
fn only_nodes_with_code_have_a_handler() {
    let workflow = checkout();
    let with: Vec<_> = ["reserve", "ship", "transit", "mail", "close"]
        .into_iter()
        .filter(|node| workflow.handler(id(workflow.graph(), node)).is_some())
        .collect();
    assert_eq!(with, ["reserve", "ship", "mail", "close"]);
}

#[tokio::test]
async fn handlers_stand_at_their_nodes_whatever_the_branches() {
    let workflow = checkout().erase();
    let run = |node, input| {
        let node = id(workflow.graph(), node);
        let handler = Arc::clone(workflow.handler(node).unwrap());
        async move {
            let ctx = TaskContext::for_test("t").unwrap();
            handler.run(ctx, input).await.unwrap()
        }
    };
    let mailed = run("mail", crate::codec::encode(&7_u64).unwrap()).await;
    assert_eq!(crate::codec::decode::<String>(&mailed).unwrap(), "7");
    let met = crate::codec::join(&[crate::codec::encode(&8_u64).unwrap(), mailed]);
    let closed = run("close", met).await;
    assert_eq!(crate::codec::decode::<String>(&closed).unwrap(), "87");
}

#[tokio::test]
async fn a_workflow_known_by_structure_sends_all_tasks_to_one_handler() {
    // W05
    async fn any(ctx: TaskContext, _: u64) -> Result<String, TaskError> {
        Ok(ctx.task().to_string())
    }
    let graph = Arc::clone(checkout().graph());
    let workflow = AnyWorkflow::external(graph, &crate::task::erase(any));
    assert!(workflow.handler(id(workflow.graph(), "transit")).is_none());
    let handler = workflow.handler(id(workflow.graph(), "mail")).unwrap();
    let input = crate::codec::encode(&1_u64).unwrap();
    let output = handler
        .run(TaskContext::for_test("mail").unwrap(), input)
        .await
        .unwrap();
    assert_eq!(crate::codec::decode::<String>(&output).unwrap(), "mail");
}

#[test]
fn policies_stand_at_the_task_in_front_of_them() {
    let policy = RetryPolicy::fixed(SECOND).max_attempts(3);
    let workflow = Workflow::builder("tuned")
        .queue("slow")
        .task("a", same)
        .retry(policy.clone())
        .timeout(SECOND)
        .task("b", same)
        .deadline(2 * SECOND)
        .queue("fast")
        .delay("d", SECOND)
        .task("c", same)
        .build()
        .unwrap();
    let graph = workflow.graph();
    let node = |name| graph.node(id(graph, name));
    assert_eq!(node("a").retry, policy);
    assert_eq!(node("b").retry, RetryPolicy::default());
    let timeout = Limits {
        timeout: Some(SECOND),
        deadline: None,
    };
    let deadline = Limits {
        timeout: None,
        deadline: Some(2 * SECOND),
    };
    let list = |queue| ListName {
        queue: QueueName::new(queue).unwrap(),
        definition: graph.hash(),
    };
    assert_eq!(graph.lists(), [list("slow"), list("fast")]);
    let list_of = |name| graph.list(id(graph, name));
    assert_eq!(
        ["a", "b", "d", "c"].map(list_of),
        ["slow", "fast", "slow", "slow"].map(list)
    );
    let limits = graph.limits();
    assert_eq!(limits.len(), 2);
    assert_eq!(limits[&list("slow")][&node("a").name], timeout);
    assert_eq!(limits[&list("fast")][&node("b").name], deadline);
}

#[test]
fn every_mistake_is_reported_at_once_with_what_is_allowed() {
    let year = Duration::from_secs(365 * 24 * 3600);
    let errors = Workflow::builder("no spaces")
        .queue("a/b")
        .task("a", same)
        .timeout(Duration::ZERO)
        .deadline(11 * year)
        .retry(RetryPolicy::fixed(SECOND).max_attempts(0).jitter(1.5))
        .task("a", same)
        .retry(RetryPolicy::exponential(Duration::ZERO))
        .task("loop#1", same)
        .queue("")
        .delay("d", Duration::from_micros(1))
        .fork(|f| f)
        .join("none", |_: ()| async { Ok::<_, TaskError>(1_u64) })
        .fork_each(0.., |_, b| b)
        .join("many", sum)
        .build()
        .unwrap_err();
    let text = errors.to_string();
    for part in [
        "workflow `no spaces` cannot be built: ",
        "`no spaces` is not a valid workflow name",
        "`a/b` is not a valid queue name: it must be 1 to 64 characters",
        "the timeout of `a` is 0ns: 1ms to 3650 days are allowed",
        "the deadline of `a` is 346896000s",
        "the max_attempts of `a` is 0: at least 1",
        "the jitter of `a` is 1.5: 0 to 1",
        "`a` names more than one node",
        "the initial delay of retries of `a` is 0ns",
        "`loop#1` is not a valid task name",
        "`` is not a valid queue name",
        "the length of `d` is 1µs",
        "the fork that ends in `none` has no branches: 1 to 256",
        "the fork that ends in `many` has more than 256 branches",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(errors.errors().len(), 13, "{text}");
}

#[test]
fn an_empty_workflow_and_a_huge_one_are_refused() {
    let empty = Workflow::builder::<u64>("empty").build().unwrap_err();
    assert_eq!(empty.errors(), [BuildError::Empty]);
    let chain = Workflow::builder("huge").task("first", same).anywhere();
    let chain = (1..=MAX_NODES).fold(chain, |chain, i| {
        chain.task(format!("t{i}"), same).anywhere()
    });
    let huge = chain.build().unwrap_err();
    assert_eq!(huge.errors(), [BuildError::Nodes { given: 1001 }]);
}

#[test]
fn bounds_themselves_are_allowed() {
    let chain = Workflow::builder::<u64>("wide")
        .fork_each(0..MAX_BRANCHES, |i, b| {
            b.delay(format!("d{i}"), MAX_DURATION)
        })
        .join("j", sum)
        .timeout(MIN_DURATION);
    assert_eq!(chain.build().unwrap().graph().nodes().len(), 257);
}

#[test]
fn definition_hashes_stay_what_they_are() {
    // What is stored in Redis is found by these: a change here strands running instances.
    assert_eq!(checkout().hash().as_str(), "e6242988a1f175b3");
    let one = Workflow::builder("one").task("a", same).build().unwrap();
    assert_eq!(one.hash().as_str(), "5405586d72f0af8a");
    let fork = Workflow::builder::<u64>("one")
        .fork_each(["a", "b"], |key, b| b.task(key, same))
        .join("c", sum)
        .build()
        .unwrap();
    assert_eq!(fork.hash().as_str(), "db31e00910dd27e9");
}

#[test]
fn tuning_does_not_change_the_hash() {
    let plain = Workflow::builder("w").task("a", same).delay("d", SECOND);
    let tuned = Workflow::builder("w")
        .queue("q")
        .task("a", same)
        .retry(RetryPolicy::none())
        .timeout(SECOND)
        .deadline(SECOND)
        .queue("r")
        .delay("d", 2 * SECOND);
    assert_eq!(plain.build().unwrap().hash(), tuned.build().unwrap().hash());
}

#[test]
fn structure_changes_the_hash() {
    let chain = |name: &str| Workflow::builder(name).task("a", same);
    let each = |keys: &[&str]| {
        let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
        chain("w").fork_each(keys, |key, b| match key.as_str() {
            "" => b.anywhere(),
            _ => b.task(key, same).anywhere(),
        })
    };
    let hashes = [
        chain("w").build(),
        chain("v").build(),
        Workflow::builder("w").task("b", same).build(),
        chain("w").task("b", same).build(),
        chain("w").delay("b", SECOND).build(),
        each(&["b", "c"]).join("j", sum).build(),
        each(&["c", "b"]).join("j", sum).build(),
        each(&["b", "c", ""]).join("j", sum).build(),
        each(&["b", "", "c"]).join("j", sum).build(),
        each(&["b", "c"]).join("k", sum).build(),
        each(&["b", "c"]).join("j", sum).task("k", same).build(),
    ]
    .map(|workflow| workflow.unwrap().hash());
    let distinct: std::collections::HashSet<_> = hashes.iter().collect();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn a_graph_of_another_format_or_none_is_a_typed_error() {
    let bytes = checkout().graph().to_bytes().unwrap();
    let mut stored: serde_json::Value = crate::codec::decode(&bytes).unwrap();
    stored["v"] = 2.into();
    stored["nodes"] = "from the future".into();
    let newer = crate::codec::encode(&stored).unwrap();
    assert!(matches!(
        Graph::from_bytes(&newer),
        Err(GraphError::Version {
            found: 2,
            supported: 1
        })
    ));
    for cut in 0..bytes.len() {
        assert!(matches!(
            Graph::from_bytes(&bytes[..cut]),
            Err(GraphError::Unreadable(_))
        ));
    }
}

#[test]
fn fields_that_a_later_version_may_add_are_passed_over() {
    let graph = Arc::clone(checkout().graph());
    let bytes = graph.to_bytes().unwrap();
    let mut stored: serde_json::Value = crate::codec::decode(&bytes).unwrap();
    stored["labels"] = "new".into();
    let bytes = crate::codec::encode(&stored).unwrap();
    assert_eq!(Graph::from_bytes(&bytes).unwrap(), *graph);
}

#[test]
fn a_stored_graph_that_no_builder_makes_is_refused_with_the_reason() {
    let bytes = checkout().graph().to_bytes().unwrap();
    let with = |path: &str, value: serde_json::Value| {
        let mut stored: serde_json::Value = crate::codec::decode(&bytes).unwrap();
        *stored.pointer_mut(path).unwrap() = value;
        let error = Graph::from_bytes(&crate::codec::encode(&stored).unwrap());
        match error.unwrap_err() {
            GraphError::Wiring { node, problem } => (node, problem),
            error => panic!("{path}: {error}"),
        }
    };
    use serde_json::json;
    // 0 reserve → 1 ship → 2 transit → 4 close, 0 → 3 mail → 4
    assert_eq!(with("/entry", json!([9])), (9, Wiring::Missing));
    assert_eq!(with("/entry", json!([])), (0, Wiring::Unreachable));
    assert_eq!(with("/entry", json!([0, 1])), (1, Wiring::ManyInputs));
    assert_eq!(with("/entry", json!([0, 4])), (4, Wiring::Count));
    assert_eq!(with("/nodes/1/next", json!([5])), (5, Wiring::Missing));
    assert_eq!(with("/nodes/1/next", json!([1])), (1, Wiring::Backwards));
    assert_eq!(with("/nodes/2/next", json!([0])), (2, Wiring::Backwards));
    assert_eq!(with("/nodes/3/next", json!([4, 4])), (3, Wiring::Twice));
    assert_eq!(with("/nodes/3/next", json!([])), (4, Wiring::Count));
    assert_eq!(with("/nodes/0/next", json!([3])), (1, Wiring::Unreachable));
    let late = json!({"join": {"need": 1, "total": 2}});
    assert_eq!(with("/nodes/4/kind", late), (4, Wiring::Count));
    let value = |i: u32| json!({ "output": i });
    let swapped = |a, b| json!([value(a), value(b)]);
    assert_eq!(
        with("/nodes/4/branches", swapped(1, 2)),
        (4, Wiring::Values)
    );
    assert_eq!(
        with("/nodes/4/branches", swapped(1, 77)),
        (4, Wiring::Values)
    );
    let more = |i| json!([value(1), value(3), value(i)]);
    assert_eq!(with("/nodes/4/branches", more(4)), (4, Wiring::Values));
    assert_eq!(with("/nodes/4/branches", more(2)), (4, Wiring::Values));
    assert_eq!(with("/nodes/4/branches", more(9)), (4, Wiring::Values));
    assert_eq!(
        with("/nodes/1/branches", swapped(0, 0)),
        (1, Wiring::Values)
    );
}

#[test]
fn a_graph_with_two_ends_is_refused() {
    let two = Workflow::builder("two").task("a", same).task("b", same);
    let bytes = two.build().unwrap().graph().to_bytes().unwrap();
    let mut stored: serde_json::Value = crate::codec::decode(&bytes).unwrap();
    stored["entry"] = serde_json::json!([0, 1]);
    stored["nodes"][0]["next"] = serde_json::json!([]);
    assert!(matches!(
        Graph::from_bytes(&crate::codec::encode(&stored).unwrap()),
        Err(GraphError::Wiring {
            node: 1,
            problem: Wiring::ManyEnds
        })
    ));
}

#[test]
fn a_chain_made_elsewhere_can_be_a_branch_and_keeps_its_queue() {
    let elsewhere = Workflow::builder("mails").queue("mail").task("mail", same);
    let workflow = Workflow::builder("w")
        .task("a", same)
        .fork(|f| f.branch(|_| elsewhere).branch(|b| b.task("b", text)))
        .join("j", both)
        .build()
        .unwrap();
    let graph = workflow.graph();
    assert_eq!(graph.list(id(graph, "mail")).queue.as_str(), "mail");
    assert_eq!(graph.list(id(graph, "b")).queue.as_str(), "default");
    assert_eq!(next(graph, "a"), ["mail", "b"]);
}

#[test]
fn a_reference_knows_only_the_name() {
    let reference = WorkflowRef::<u64, String>::new("checkout").unwrap();
    let workflow = checkout();
    assert_eq!(Startable::name(&reference), Startable::name(&workflow));
    assert!(Startable::graph(&reference).is_none());
    assert_eq!(Startable::graph(&workflow).unwrap().hash(), workflow.hash());
    WorkflowRef::<u64, String>::new("no spaces").unwrap_err();
}
