//! Evidence made by hand, and the reason that follows from it.

use std::{collections::BTreeMap, time::Duration};

use tenure::{
    Status,
    ids::{
        DefinitionHash, ListName, QueueName, RunId, SignalName, TaskName, WorkerId, WorkflowName,
    },
    store::{
        EarlySignal, Header, Presence, Snapshot, StartMeta, TaskRecord, TaskState, WaitRecord,
        WorkerRecord,
    },
    time::Timestamp,
};

use super::{
    explain::explain,
    gather::{Evidence, Standing},
    reason::{Answered, Reason},
};
use crate::commands::show::picture::Picture;

const NOW: i64 = 1_000_000;

fn definition(number: u8) -> DefinitionHash {
    DefinitionHash::from_digest([number; 8])
}

fn task(name: &str) -> TaskName {
    TaskName::new(name).expect("a name")
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

fn workflow() -> WorkflowName {
    WorkflowName::new("flow").expect("a name")
}

fn later(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

fn snapshot(tasks: BTreeMap<TaskName, TaskRecord>) -> Snapshot {
    Snapshot {
        header: Header {
            run: RunId::unique(),
            status: Status::Running,
            workflow: workflow(),
            definition: definition(1),
            result: None,
            error: None,
            control: None,
        },
        queue: queue("default"),
        created_at: later(-60_000),
        started_at: None,
        finished_at: None,
        open: 1,
        max_crashes: 3,
        retries: 0,
        replaced: Vec::new(),
        meta: None,
        tasks,
        joins: BTreeMap::new(),
        waits: Vec::new(),
        early: Vec::new(),
        signals: Vec::new(),
        values: BTreeMap::new(),
    }
}

/// An instance with these open tasks, and nothing else.
fn seen(tasks: &[(&str, TaskState)]) -> Evidence {
    let records = tasks.iter();
    let records = records.map(|(name, state)| (task(name), TaskRecord::fresh(*state)));
    Evidence {
        picture: Picture {
            id: "x".to_owned(),
            now: later(0),
            snapshot: snapshot(records.collect()),
            meta: StartMeta::default(),
            errors: Vec::new(),
            graph: Err("not published".to_owned()),
            values: BTreeMap::new(),
            due: BTreeMap::new(),
            all_timers: true,
            claims: BTreeMap::new(),
        },
        ready: BTreeMap::new(),
        heard: BTreeMap::new(),
        workers: Vec::new(),
        parked: Vec::new(),
    }
}

fn worker(name: &str, has: u8) -> WorkerRecord {
    WorkerRecord {
        id: WorkerId::new(name).expect("an id"),
        host: "host".to_owned(),
        pid: 1,
        definitions: vec![(workflow(), definition(has))],
        queues: vec![queue("default")],
        slots: 2,
        busy: 0,
        draining: false,
        started_at: later(-1),
        seen_at: later(0),
    }
}

/// A ready task, `ahead` of which so many stand, and these workers.
fn ready(ahead: Option<usize>, whole: bool, workers: Vec<WorkerRecord>) -> Evidence {
    let mut seen = seen(&[("a", TaskState::Ready)]);
    let list = ListName {
        queue: queue("default"),
        definition: definition(1),
    };
    seen.ready
        .insert(task("a"), Standing { list, ahead, whole });
    seen.workers = workers;
    seen
}

fn first(seen: &Evidence) -> Reason {
    explain(seen).first().clone()
}

/// A running task with this claim and this heartbeat of its worker.
fn running(claim: Option<i64>, heard: Option<u64>) -> Evidence {
    let mut seen = seen(&[("a", TaskState::Running)]);
    let id = WorkerId::new("w").expect("an id");
    let record = seen.picture.snapshot.tasks.get_mut(&task("a"));
    record.expect("it is there").worker = Some(id.clone());
    let claim = claim.map(|left| (id.clone(), later(left)));
    seen.picture.claims.insert(task("a"), claim);
    let presence = heard.map(|heard| Presence {
        ttl: Duration::from_secs(30),
        heard: Duration::from_secs(heard),
    });
    seen.heard.insert(id, presence);
    seen
}

#[test]
fn versions_that_workers_have_instead_are_named_once_each() {
    let workers = vec![worker("v", 2), worker("w", 3), worker("x", 2)];
    let expected = Reason::NoWorker {
        task: task("a"),
        workflow: "flow".to_owned(),
        definition: definition(1),
        workers: 3,
        others: vec![definition(2), definition(3)],
    };
    assert_eq!(first(&ready(Some(0), true, workers)), expected);
}

#[test]
fn workers_of_other_queues_and_those_that_drain_do_not_count() {
    let mut elsewhere = worker("v", 1);
    elsewhere.queues = vec![queue("other")];
    let said = first(&ready(Some(0), true, vec![elsewhere.clone()]));
    assert_eq!(said.word(), "no-worker-for-queue");
    let mut drains = worker("w", 1);
    drains.draining = true;
    let said = first(&ready(Some(0), true, vec![elsewhere, drains.clone()]));
    assert!(
        matches!(said, Reason::Draining { workers: 1, .. }),
        "{said:?}"
    );
    let said = first(&ready(Some(0), true, vec![drains, worker("x", 1)]));
    assert!(matches!(said, Reason::Ready { free: 2, .. }), "{said:?}");
}

#[test]
fn slots_are_those_of_the_workers_that_could() {
    let mut busy = worker("v", 1);
    busy.busy = 2;
    let said = first(&ready(Some(7), true, vec![busy, worker("w", 2)]));
    let expected = Reason::Busy {
        task: task("a"),
        ahead: Some(7),
        slots: 2,
        workers: 1,
    };
    assert_eq!(said, expected);
}

#[test]
fn an_entry_is_lost_only_if_the_whole_list_was_looked_at() {
    let lost = explain(&ready(None, true, vec![worker("v", 1)]));
    assert_eq!(lost.first().word(), "lost");
    assert!(lost.is_doubtful(), "it may have moved meanwhile");
    assert!(lost.first().needs_somebody());
    let deep = first(&ready(None, false, vec![worker("v", 1)]));
    assert!(
        matches!(deep, Reason::Ready { ahead: None, .. }),
        "{deep:?}"
    );
}

#[test]
fn a_claim_tells_a_worker_that_lives_from_one_that_is_silent() {
    assert_eq!(first(&running(Some(9_000), Some(3))).word(), "running");
    assert_eq!(
        first(&running(Some(9_000), Some(16))).word(),
        "worker-silent"
    );
    assert_eq!(first(&running(Some(9_000), None)).word(), "worker-silent");
    let expired = explain(&running(None, None));
    assert!(
        matches!(expired.first(), Reason::Expired { workers: 0, .. }),
        "{expired:?}"
    );
    assert!(expired.is_doubtful(), "it may have been settled meanwhile");
}

#[test]
fn timers_are_waited_for_retried_overdue_or_lost() {
    let delayed = |due: Option<i64>, failures: u32, all: bool| {
        let mut seen = seen(&[("a", TaskState::Delayed)]);
        let record = seen.picture.snapshot.tasks.get_mut(&task("a"));
        record.expect("it is there").failures = failures;
        seen.picture.due = due.map(|due| (task("a"), later(due))).into_iter().collect();
        seen.picture.all_timers = all;
        first(&seen).word()
    };
    assert_eq!(delayed(Some(60_000), 0, true), "timer");
    assert_eq!(delayed(Some(60_000), 2, true), "retry");
    assert_eq!(delayed(Some(-5_000), 0, true), "timer");
    assert_eq!(delayed(Some(-5_001), 0, true), "timer-overdue");
    assert_eq!(delayed(None, 0, false), "delayed");
    assert_eq!(delayed(None, 0, true), "lost");
}

#[test]
fn a_signal_that_is_waited_for_names_those_that_came_instead() {
    let mut seen = seen(&[("a", TaskState::Waiting)]);
    assert_eq!(first(&seen).word(), "lost");
    let signal = |name: &str| SignalName::new(name).expect("a name");
    seen.picture.snapshot.waits.push(WaitRecord {
        signal: signal("approval"),
        task: task("a"),
        list: ListName {
            queue: queue("default"),
            definition: definition(1),
        },
    });
    seen.picture.snapshot.early.push(EarlySignal {
        name: signal("aproval"),
        id: "s-1".parse().expect("an id"),
        len: 1,
    });
    let expected = Reason::Signal {
        task: task("a"),
        signal: signal("approval"),
        timeout: None,
        early: vec![signal("aproval")],
    };
    assert_eq!(first(&seen), expected);
}

#[test]
fn what_holds_up_most_is_said_first() {
    let mut seen = running(Some(9_000), Some(3));
    let tasks = &mut seen.picture.snapshot.tasks;
    tasks.insert(task("b"), TaskRecord::fresh(TaskState::Delayed));
    tasks.insert(task("c"), TaskRecord::fresh(TaskState::Waiting));
    seen.picture.due.insert(task("b"), later(60_000));
    let words = |answered: &Answered| {
        let others = answered.others().iter().map(Reason::word);
        let all = std::iter::once(answered.first().word()).chain(others);
        all.collect::<Vec<_>>()
    };
    assert_eq!(words(&explain(&seen)), ["lost", "timer", "running"]);
}

#[test]
fn what_runs_without_an_open_task_is_damaged() {
    assert_eq!(first(&seen(&[])).word(), "damaged");
    assert_eq!(
        first(&seen(&[("a", TaskState::Completed)])).word(),
        "damaged"
    );
    let mut over = seen(&[]);
    over.picture.snapshot.header.status = Status::Completed;
    assert_eq!(first(&over).word(), "completed");
}
