//! The engine on random workflows: whatever order tasks complete in, and however often they fail before, each instance
//! ends once, with the value that the definition says.

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    time::Duration,
};

use proptest::prelude::*;
use tenure::{
    codec,
    engine::{Attempt, Decision, Failure, FollowUp, Limits, Next, Outcome, Wait, begin, decide},
    ids::{InputRef, ListName, QueueName, TaskName, ValueField},
    task::{ErrorKind, Retry, TaskError},
    workflow::{
        AnyWorkflow, Anywhere, BehindWait, BuildErrors, Chain, Graph, MAX_DURATION, NodeId,
        NodeKind, RetryPolicy, Source, Workflow,
    },
};

const SECOND: Duration = Duration::from_secs(1);

/// One piece of a chain; a chain is any number of them.
#[derive(Debug, Clone)]
enum Piece {
    Task,
    Delay,
    Wait,
    Fork(Vec<Vec<Piece>>),
}

fn chain() -> impl Strategy<Value = Vec<Piece>> {
    let leaf = prop_oneof![
        3 => Just(Piece::Task),
        1 => Just(Piece::Delay),
        1 => Just(Piece::Wait),
    ];
    let leaves = prop::collection::vec(leaf.clone(), 0..4);
    leaves.prop_recursive(3, 30, 4, move |inner| {
        let fork = prop::collection::vec(inner, 1..4).prop_map(Piece::Fork);
        prop::collection::vec(prop_oneof![2 => leaf.clone(), 1 => fork], 0..4)
    })
}

fn workflow() -> impl Strategy<Value = Vec<Piece>> {
    chain().prop_filter("has nodes", |pieces| !pieces.is_empty())
}

async fn same(n: u64) -> Result<u64, TaskError> {
    Ok(n)
}

async fn sum(list: Vec<u64>) -> Result<u64, TaskError> {
    Ok(list.iter().sum())
}

type Open = Chain<u64, u64, Anywhere>;

fn grow(chain: Open, pieces: &[Piece], count: &Cell<usize>) -> Open {
    let name = || {
        count.set(count.get() + 1);
        format!("n{}", count.get())
    };
    pieces.iter().fold(chain, |chain, piece| match piece {
        Piece::Task => chain.task(name(), same).anywhere(),
        Piece::Delay => chain.delay(name(), SECOND).anywhere(),
        Piece::Wait => chain.await_signal::<u64>(name()).anywhere(),
        Piece::Fork(branches) => chain
            .fork_each(branches, |pieces, b| grow(b.anywhere(), pieces, count))
            .join(name(), sum)
            .anywhere(),
    })
}

fn build(pieces: &[Piece]) -> Result<Workflow<u64, u64>, BuildErrors> {
    let start = Workflow::builder("random").anywhere();
    grow(start, pieces, &Cell::new(0)).build()
}

/// What the value behind these pieces is, said without a graph: each task adds its name and what it got.
fn expected(value: &str, pieces: &[Piece], count: &Cell<usize>) -> String {
    pieces.iter().fold(value.to_owned(), |value, piece| {
        let next = || {
            count.set(count.get() + 1);
            count.get()
        };
        match piece {
            Piece::Delay => {
                next();
                value
            }
            Piece::Task => result(&format!("n{}", next()), &[value]),
            Piece::Wait => result(&format!("n{}", next()), &[]),
            Piece::Fork(branches) => {
                let values: Vec<_> = branches
                    .iter()
                    .map(|pieces| expected(&value, pieces, count))
                    .collect();
                count.set(count.get() + 1);
                result(&format!("n{}", count.get()), &values)
            }
        }
    })
}

/// Short whatever the inputs, different when they are.
fn result(task: &str, inputs: &[String]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    let cut = hasher.finish();
    format!("{task}:{:x}", cut >> (cut % 40))
}

/// An instance whose store is a few maps: it applies what the engine decides and checks what must always hold.
struct Instance<'a> {
    graph: &'a Graph,
    values: HashMap<ValueField, String>,
    live: Vec<(NodeId, InputRef)>,
    open: usize,
    arrived: HashMap<TaskName, u16>,
    failures: HashMap<NodeId, u32>,
    done: HashSet<NodeId>,
    result: Option<ValueField>,
}

impl<'a> Instance<'a> {
    fn start(graph: &'a Graph, input: &str) -> Self {
        let mut instance = Self {
            graph,
            values: HashMap::from([(ValueField::Input, input.to_owned())]),
            live: Vec::new(),
            open: 0,
            arrived: HashMap::new(),
            failures: HashMap::new(),
            done: HashSet::new(),
            result: None,
        };
        let first = begin(graph, input.len());
        assert!(!first.is_empty());
        for follow_up in first {
            let begins = matches!(follow_up, FollowUp::Ready(_) | FollowUp::After { .. });
            assert!(begins, "an instance begins with {follow_up:?}");
            instance.apply(follow_up);
        }
        instance
    }

    fn apply(&mut self, follow_up: FollowUp) {
        match follow_up {
            FollowUp::Ready(next) => self.queue(next),
            FollowUp::After { next, delay } => {
                assert_eq!(delay, SECOND);
                self.queue(next);
            }
            FollowUp::Arrive { next, need, total } => {
                let arrived = self.arrived.entry(next.task.clone()).or_default();
                *arrived += 1;
                assert!(*arrived <= total, "{} has too many arrivals", next.task);
                if *arrived == need {
                    self.queue(next);
                }
            }
            FollowUp::Wait { next, wait } => self.wait(next, &wait),
            FollowUp::End { result } => {
                assert!(self.values.contains_key(&result));
                assert_eq!(self.result.replace(result), None, "two ends");
            }
        }
    }

    /// The signal is there at once, or a little later: for the engine that is the same.
    fn wait(&mut self, next: Next, wait: &Wait) {
        assert_eq!(wait.signal.as_str(), next.task.as_str());
        assert_eq!(wait.timeout, None);
        let node = self.graph.find(&next.task).expect("a node of the graph");
        let input = self.signalled(node);
        self.queue(Next { input, ..next });
    }

    /// Where the value of a node is that has its signal.
    fn signalled(&mut self, node: NodeId) -> InputRef {
        let here = self.graph.node(node);
        let value = result(here.name.as_str(), &[]);
        let len = value.len();
        self.values.insert(here.value(), value);
        InputRef::Field {
            field: here.value(),
            len,
        }
    }

    fn queue(&mut self, next: Next) {
        let node = self.graph.find(&next.task).expect("a node of the graph");
        assert_eq!(next.list, self.graph.list(node));
        self.open += 1;
        self.live.push((node, next.input));
    }

    /// What the node gets; all of it must be there.
    fn inputs(&self, node: NodeId, input: &InputRef) -> Vec<String> {
        if input.is_of(&self.graph.node(node).value()) {
            return Vec::new();
        }
        match (input, self.graph.input_of(node)) {
            (InputRef::Field { field, len }, Source::Value(source)) => {
                assert_eq!(field, source);
                let value = &self.values[field];
                assert_eq!(value.len(), *len);
                vec![value.clone()]
            }
            (InputRef::Join, Source::Branches(fields)) => {
                assert_eq!(fields, self.graph.join_sources(node));
                fields
                    .iter()
                    .map(|field| self.values[field].clone())
                    .collect()
            }
            (input, source) => panic!("{input:?} for {source:?}"),
        }
    }

    /// Works off one live node.
    fn step(&mut self, choice: usize, fails: bool) {
        let (node, input) = self.live.swap_remove(choice % self.live.len());
        let inputs = self.inputs(node, &input);
        let here = self.graph.node(node);
        let failures = self.failures.entry(node).or_default();
        let attempt = Attempt {
            failures: *failures,
            input: input.clone(),
            overall_left: None,
        };
        let outcome = match here.kind {
            NodeKind::Delay(_) | NodeKind::Wait(_) => Outcome::Passed,
            _ if fails && *failures + 1 < here.retry.attempts() => {
                *failures += 1;
                Outcome::Failed(failure(ErrorKind::Error, Retry::Policy))
            }
            _ => {
                let value = result(here.name.as_str(), &inputs);
                let len = value.len();
                self.values.insert(here.value(), value);
                Outcome::Completed { len }
            }
        };
        match decide(self.graph, node, &attempt, &outcome, 0.5) {
            Decision::Completed { follow_ups } => {
                assert!(self.done.insert(node), "{} ran twice", here.name);
                self.open -= 1;
                for follow_up in follow_ups {
                    self.apply(follow_up);
                }
            }
            Decision::Wait(wait) => {
                assert_eq!(wait.signal.as_str(), here.name.as_str());
                let input = self.signalled(node);
                self.live.push((node, input));
            }
            Decision::Retry { after, .. } => {
                assert!(after >= SECOND);
                self.live.push((node, input));
            }
            Decision::Failed { failure } | Decision::Paused { failure } => panic!("{failure:?}"),
        }
    }

    /// To the end, in the order of these choices; what the instance results in.
    fn run(mut self, choices: &[(usize, bool)]) -> String {
        let mut choices = choices.iter().cycle();
        while !self.live.is_empty() {
            assert_eq!(self.open, self.live.len());
            let &(choice, fails) = choices.next().expect("at least one choice");
            self.step(choice, fails);
        }
        assert_eq!(self.open, 0);
        assert_eq!(self.done.len(), self.graph.nodes().len(), "all are reached");
        self.values[&self.result.expect("an end")].clone()
    }
}

fn failure(kind: ErrorKind, retry: Retry) -> Failure {
    Failure {
        kind,
        message: "no".into(),
        retry,
    }
}

fn choices() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((any::<usize>(), prop::bool::weighted(0.2)), 1..60)
}

/// Replaces one number of a stored graph.
fn disturb(value: &mut serde_json::Value, place: &mut usize, number: u64) {
    match value {
        serde_json::Value::Number(_) if *place == 0 => {
            *value = number.into();
            *place = usize::MAX;
        }
        serde_json::Value::Number(_) => *place -= 1,
        serde_json::Value::Array(list) => list.iter_mut().for_each(|v| disturb(v, place, number)),
        serde_json::Value::Object(map) => map.values_mut().for_each(|v| disturb(v, place, number)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    // case 51
    #[test]
    fn an_instance_is_complete_exactly_when_every_node_is_done_whatever_the_order(
        pieces in workflow(), one in choices(), other in choices(),
    ) {
        let workflow = build(&pieces).unwrap();
        let graph = workflow.graph();
        let value = expected("start", &pieces, &Cell::new(0));
        prop_assert_eq!(&Instance::start(graph, "start").run(&one), &value);
        prop_assert_eq!(&Instance::start(graph, "start").run(&other), &value);
    }

    #[test]
    fn a_graph_comes_back_from_its_bytes_as_it_was(pieces in workflow()) {
        let workflow = build(&pieces).unwrap();
        let bytes = workflow.graph().to_bytes().unwrap();
        let read = Graph::from_bytes(&bytes).unwrap();
        prop_assert_eq!(read.hash(), workflow.hash());
        prop_assert_eq!(&read, &**workflow.graph());
    }

    #[test]
    fn a_disturbed_record_is_refused_or_still_runs_to_its_end(
        pieces in workflow(), place in 0_usize..400, number in 0_u64..8, order in choices(),
    ) {
        let bytes = build(&pieces).unwrap().graph().to_bytes().unwrap();
        let mut stored: serde_json::Value = codec::decode(&bytes).unwrap();
        let numbers = count(&stored);
        disturb(&mut stored["entry"], &mut (place % numbers), number);
        disturb(&mut stored["nodes"], &mut (place % numbers), number);
        if let Ok(graph) = Graph::from_bytes(&codec::encode(&stored).unwrap()) {
            // Numbers of policies may have changed; those of edges, joins and branches decide whether this ends.
            let same_delays = graph.nodes().iter().all(|node| match node.kind {
                NodeKind::Delay(length) => length == SECOND,
                _ => node.retry == RetryPolicy::default(),
            });
            if same_delays {
                Instance::start(&graph, "start").run(&order);
            }
        }
    }
}

fn count(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Number(_) => 1,
        serde_json::Value::Array(list) => list.iter().map(count).sum(),
        serde_json::Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

fn one_task(policy: RetryPolicy) -> Workflow<u64, u64> {
    let chain = Workflow::builder("one").task("a", same).retry(policy);
    chain.build().unwrap()
}

fn after_failure(
    policy: RetryPolicy,
    before: u32,
    left: Option<Duration>,
    failure: Failure,
) -> Decision {
    let workflow = one_task(policy);
    let attempt = Attempt {
        failures: before,
        input: InputRef::Field {
            field: ValueField::Input,
            len: 1,
        },
        overall_left: left,
    };
    let node = workflow.graph().entry()[0];
    decide(
        workflow.graph(),
        node,
        &attempt,
        &Outcome::Failed(failure),
        0.0,
    )
}

fn wait(decision: &Decision) -> Option<Duration> {
    match decision {
        Decision::Retry { after, .. } => Some(*after),
        Decision::Failed { .. } | Decision::Paused { .. } => None,
        Decision::Completed { .. } | Decision::Wait(_) => {
            panic!("a failed task goes on: {decision:?}")
        }
    }
}

#[test]
fn a_task_is_retried_until_its_failures_reach_max_attempts() {
    // W35 to W37
    let policy = RetryPolicy::exponential(SECOND).max_attempts(3);
    for kind in [ErrorKind::Error, ErrorKind::Panic, ErrorKind::Timeout] {
        let at = |before| {
            let failure = failure(kind, Retry::Policy);
            wait(&after_failure(policy.clone(), before, None, failure))
        };
        assert_eq!(
            [at(0), at(1), at(2)],
            [Some(SECOND), Some(2 * SECOND), None]
        );
        assert_eq!(at(u32::MAX), None);
    }
}

#[test]
fn no_retry_means_that_the_first_failure_is_the_last() {
    let failure = failure(ErrorKind::Error, Retry::Policy);
    let decision = after_failure(RetryPolicy::none(), 0, None, failure.clone());
    assert_eq!(decision, Decision::Failed { failure });
}

#[test]
fn permanent_errors_and_missed_deadlines_are_not_retried() {
    for (kind, retry) in [
        (ErrorKind::Permanent, Retry::Never),
        (ErrorKind::Permanent, Retry::Policy),
        (ErrorKind::Deadline, Retry::Policy),
        (ErrorKind::Deadline, Retry::After(SECOND)),
        (ErrorKind::Error, Retry::Never),
    ] {
        let failure = failure(kind, retry);
        let decision = after_failure(RetryPolicy::default(), 0, None, failure.clone());
        assert_eq!(decision, Decision::Failed { failure });
    }
}

#[test]
fn a_handler_chooses_when_it_is_retried_but_not_how_often() {
    let policy = RetryPolicy::exponential(SECOND).max_attempts(2);
    let at = |before, after| {
        let failure = failure(ErrorKind::Error, Retry::After(after));
        wait(&after_failure(policy.clone(), before, None, failure))
    };
    assert_eq!(at(0, 77 * SECOND), Some(77 * SECOND));
    assert_eq!(at(0, Duration::ZERO), Some(Duration::ZERO));
    assert_eq!(at(0, Duration::MAX), Some(MAX_DURATION));
    assert_eq!(at(1, 77 * SECOND), None);
}

#[test]
fn a_retry_that_would_begin_after_the_deadline_fails_at_once_and_keeps_the_message() {
    let policy = RetryPolicy::fixed(10 * SECOND);
    let at = |left, retry| {
        let failure = failure(ErrorKind::Error, retry);
        after_failure(policy.clone(), 0, Some(left), failure)
    };
    assert_eq!(wait(&at(11 * SECOND, Retry::Policy)), Some(10 * SECOND));
    for (left, retry) in [
        (10 * SECOND, Retry::Policy),
        (Duration::ZERO, Retry::Policy),
        (11 * SECOND, Retry::After(12 * SECOND)),
        (Duration::ZERO, Retry::After(Duration::ZERO)),
    ] {
        let Decision::Failed { failure } = at(left, retry) else {
            panic!("retried after the deadline");
        };
        assert_eq!(failure.kind, ErrorKind::Deadline);
        assert!(failure.message.starts_with("no; "), "{}", failure.message);
        assert!(failure.message.contains("deadline"), "{}", failure.message);
    }
    // Out of attempts anyway: that is the reason then.
    let failure = failure(ErrorKind::Error, Retry::Policy);
    let last = after_failure(policy.max_attempts(1), 0, Some(SECOND), failure.clone());
    assert_eq!(last, Decision::Failed { failure });
}

#[test]
fn follow_ups_carry_list_limits_and_the_length_of_the_input() {
    let workflow = Workflow::builder("w")
        .queue("slow")
        .task("a", same)
        .delay("d", SECOND)
        .task("b", same)
        .queue("fast")
        .timeout(2 * SECOND)
        .build()
        .unwrap();
    let graph = workflow.graph();
    let list = |queue| ListName {
        queue: QueueName::new(queue).unwrap(),
        definition: graph.hash(),
    };
    let task = |name| TaskName::new(name).unwrap();
    let input = |field, len| InputRef::Field { field, len };
    let a = Next {
        task: task("a"),
        list: list("slow"),
        input: input(ValueField::Input, 5),
        limits: Limits::NONE,
    };
    assert_eq!(begin(graph, 5), [FollowUp::Ready(a.clone())]);

    let settle = |name, input: &InputRef, outcome| {
        let attempt = Attempt {
            failures: 0,
            input: input.clone(),
            overall_left: None,
        };
        let node = graph.find(&task(name)).unwrap();
        match decide(graph, node, &attempt, &outcome, 0.0) {
            Decision::Completed { follow_ups } => follow_ups,
            other => panic!("{other:?}"),
        }
    };
    let d = Next {
        task: task("d"),
        list: list("slow"),
        input: input(ValueField::Output(task("a")), 7),
        limits: Limits::NONE,
    };
    let after = FollowUp::After {
        next: d.clone(),
        delay: SECOND,
    };
    assert_eq!(
        settle("a", &a.input, Outcome::Completed { len: 7 }),
        [after]
    );
    let b = Next {
        task: task("b"),
        list: list("fast"),
        input: d.input.clone(),
        limits: Limits {
            timeout: Some(2 * SECOND),
            deadline: None,
        },
    };
    assert_eq!(
        settle("d", &d.input, Outcome::Passed),
        [FollowUp::Ready(b.clone())]
    );
    let end = FollowUp::End {
        result: ValueField::Output(task("b")),
    };
    assert_eq!(settle("b", &b.input, Outcome::Completed { len: 1 }), [end]);
}

#[test]
fn a_workflow_that_ends_in_a_delay_ends_with_the_value_in_front_of_it() {
    // case 49
    let workflow = Workflow::builder("w").task("a", same).delay("d", SECOND);
    let workflow = workflow.build().unwrap();
    let value = Instance::start(workflow.graph(), "in").run(&[(0, false)]);
    assert_eq!(value, result("a", &["in".to_owned()]));
}

#[test]
fn an_outcome_that_a_node_cannot_have_fails_it_for_good() {
    let workflow = Workflow::builder("w").task("a", same).delay("d", SECOND);
    let workflow = workflow.build().unwrap();
    let attempt = Attempt {
        failures: 0,
        input: InputRef::Join,
        overall_left: None,
    };
    for (node, outcome) in [("a", Outcome::Passed), ("d", Outcome::Completed { len: 1 })] {
        let id = workflow
            .graph()
            .find(&TaskName::new(node).unwrap())
            .unwrap();
        let Decision::Failed { failure } = decide(workflow.graph(), id, &attempt, &outcome, 0.0)
        else {
            panic!("{node} went on");
        };
        assert_eq!(failure.kind, ErrorKind::Permanent);
        assert!(failure.message.contains(node));
    }
}

fn waiting() -> Chain<u64, u64, BehindWait> {
    let chain = Workflow::builder("waits").task("a", same);
    chain.await_signal("b")
}

fn reached(workflow: &AnyWorkflow, outcome: &Outcome, input: InputRef) -> Decision {
    let graph = workflow.graph();
    let node = graph.find(&TaskName::new("b").unwrap()).unwrap();
    let attempt = Attempt {
        failures: 0,
        input,
        overall_left: None,
    };
    decide(graph, node, &attempt, outcome, 0.5)
}

fn output(task: &str, len: usize) -> InputRef {
    InputRef::Field {
        field: ValueField::Output(TaskName::new(task).unwrap()),
        len,
    }
}

#[test]
fn a_node_waits_when_it_is_reached_and_goes_on_when_its_signal_is_there() {
    let timed = waiting().signal("go").timeout(SECOND);
    let workflow = timed.task("c", same).build().unwrap().erase();
    let wait = Wait {
        signal: "go".parse().unwrap(),
        timeout: Some(SECOND),
    };
    let decision = reached(&workflow, &Outcome::Passed, output("a", 3));
    assert_eq!(decision, Decision::Wait(wait));
    let decision = reached(&workflow, &Outcome::Passed, output("b", 7));
    let Decision::Completed { follow_ups } = decision else {
        panic!("{decision:?}");
    };
    let [FollowUp::Ready(next)] = &follow_ups[..] else {
        panic!("{follow_ups:?}");
    };
    assert_eq!((next.task.as_str(), &next.input), ("c", &output("b", 7)));
}

#[test]
fn a_signal_that_does_not_come_in_time_fails_the_instance_or_is_done_without() {
    let fails = waiting().timeout(SECOND).build().unwrap().erase();
    let decision = reached(&fails, &Outcome::Late, output("b", 0));
    let Decision::Failed { failure } = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(failure.kind, ErrorKind::Timeout);
    assert_eq!(failure.message, "no signal `b` came within 1s");
    let goes_on = waiting().or_none_after(SECOND).build().unwrap();
    let decision = reached(&goes_on.erase(), &Outcome::Late, output("b", 0));
    let result = ValueField::Output(TaskName::new("b").unwrap());
    let follow_ups = vec![FollowUp::End { result }];
    assert_eq!(decision, Decision::Completed { follow_ups });
}

#[test]
fn an_instance_that_begins_with_a_wait_is_entered_by_an_engine() {
    let workflow: Workflow<u64, u64> = Workflow::builder("w").await_signal("b").build().unwrap();
    let [FollowUp::Ready(next)] = &begin(workflow.graph(), 4)[..] else {
        panic!("one node, ready");
    };
    let input = InputRef::Field {
        field: ValueField::Input,
        len: 4,
    };
    assert_eq!((next.task.as_str(), &next.input), ("b", &input));
    let decision = reached(&workflow.erase(), &Outcome::Passed, input);
    assert!(matches!(decision, Decision::Wait(_)), "{decision:?}");
}

#[test]
fn the_signal_and_what_happens_without_it_are_part_of_the_definition_and_the_time_is_not() {
    let hash = |chain: Chain<u64, u64, BehindWait>| chain.build().unwrap().hash();
    let plain = hash(waiting());
    assert_eq!(plain, hash(waiting().timeout(SECOND)));
    assert_eq!(plain, hash(waiting().signal("b")));
    assert_ne!(plain, hash(waiting().signal("c")));
    let goes_on = waiting().or_none_after(SECOND).build().unwrap();
    assert_ne!(plain, goes_on.hash());
    let limits = goes_on.graph().limits();
    assert!(limits.is_empty(), "the time of a wait bounds no attempt");
    let read = Graph::from_bytes(&goes_on.graph().to_bytes().unwrap()).unwrap();
    assert_eq!(&read, &**goes_on.graph());
}

#[test]
fn a_wait_with_a_wrong_signal_or_time_is_refused_by_the_builder() {
    let built = waiting().signal("no name").timeout(Duration::ZERO).build();
    let errors = built.map(drop).expect_err("a refusal").to_string();
    assert!(errors.contains("signal name"), "{errors}");
    assert!(errors.contains("timeout of `b` is 0ns"), "{errors}");
}
