//! Many tasks, many signals, at random.

use std::{collections::HashSet, time::Duration};

use tenure::store::Status;
use tokio::time::sleep;

use crate::{
    crew::Process,
    job::{Act, FAN, Job, Kind},
    ledger::Phase,
    program::Setup,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_millis(400);
/// A crash budget that no amount of kills uses up.
const UNBOUNDED: u32 = 1_000_000;

// case 16
pub(super) async fn every_task_finishes_over_fifty_kills() {
    const KILLS: usize = 50;
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::Two], TTL);
    setup.concurrency = 8;
    let work = || Act::Sleep(fastrand::u64(0..60));
    let handles = world
        .start_many(Kind::Two, "x", 250, UNBOUNDED, |_| {
            Job::default().act("a", work()).act("b", work())
        })
        .await;
    let mut workers: Vec<Process> = (0..3).map(|_| world.spawn(&setup)).collect();
    for kill in 0..KILLS {
        let victim = kill % workers.len();
        // Some die as soon as they have begun, between a claim and the first heartbeat.
        workers[victim].up().await;
        sleep(Duration::from_millis(fastrand::u64(0..40))).await;
        workers[victim].kill();
        workers[victim] = world.spawn(&setup);
    }
    world.all_completed(&handles).await;
    let begun = world.ledger.count(Phase::Begin);
    assert!(begun >= 500, "{begun} executions of 500 tasks");
}

// case 15
pub(super) async fn frozen_workers_leave_each_instance_in_one_index() {
    const ROUNDS: usize = 60;
    let world = World::new().await;
    let setup = world.setup(&[Kind::Stubborn], TTL);
    let workers = [
        world.worker(&setup).await,
        world.worker(&setup).await,
        world.worker(&setup).await,
    ];
    let handles = world
        .start_many(Kind::Stubborn, "x", 1000, UNBOUNDED, |i| {
            let job = Job::default().act("a", Act::Sleep(fastrand::u64(0..100)));
            if i % 10 == 0 {
                job.act_until(1, "a", Act::Fail)
            } else {
                job
            }
        })
        .await;
    let mut frozen: [bool; 3] = [false; 3];
    for _ in 0..ROUNDS {
        let chosen = fastrand::usize(..workers.len());
        if frozen[chosen] {
            workers[chosen].thaw();
        } else {
            workers[chosen].freeze();
        }
        frozen[chosen] = !frozen[chosen];
        sleep(Duration::from_millis(fastrand::u64(0..150))).await;
    }
    for worker in &workers {
        worker.thaw();
    }
    world.all_completed(&handles).await;
    for worker in workers {
        worker.shut_down().await;
    }
    world.indexed_once(&handles).await;
    world.nothing_left().await;
}

// case 51
pub(super) async fn a_graph_of_every_shape_completes_exactly_when_all_its_nodes_have() {
    let world = World::new().await;
    let setup = world.setup(&[Kind::Mesh], TTL);
    let mut workers: Vec<Process> = (0..3).map(|_| world.spawn(&setup)).collect();
    let handles = world
        .start_many(Kind::Mesh, "x", 60, UNBOUNDED, |_| {
            ["a", "b", "c", "d", "e"]
                .iter()
                .fold(Job::default(), |job, task| {
                    let job = job.act(task, Act::Sleep(fastrand::u64(0..30)));
                    if fastrand::u8(..5) == 0 && *task != "e" && *task != "d" {
                        job.act_until(1, task, Act::Fail)
                    } else {
                        job
                    }
                })
        })
        .await;
    workers[0].up().await;
    workers[0].kill();
    wait::until("all are over, and none before its last node", async || {
        let mut over = 0;
        for handle in &handles {
            let key = format!("{{tenure:0}}:instance:{}", handle.id());
            let (status, open, last): (String, Option<i64>, Option<String>) =
                world.redis(&["HMGET", &key, "status", "open", "task:e"]);
            let done = last.is_some_and(|record| record.starts_with("completed "));
            assert_eq!(
                status == Status::Completed.as_str(),
                done,
                "{}",
                handle.id()
            );
            // One token is not written down.
            assert_eq!(open == Some(0), done, "{}", handle.id());
            over += usize::from(done);
        }
        over == handles.len()
    })
    .await;
    world.all_completed(&handles).await;
    for handle in &handles {
        let names: HashSet<String> = world
            .snapshot(handle)
            .await
            .tasks
            .keys()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names.len(), 6, "five tasks and a delay: {names:?}");
        let trail: HashSet<String> = handle
            .result()
            .await
            .expect("the result")
            .trail
            .into_iter()
            .map(|m| m.task)
            .collect();
        assert_eq!(trail.len(), 5, "{trail:?}");
    }
}

// case 56
pub(super) async fn a_fan_of_a_hundred_survives_its_worker() {
    let world = World::new().await;
    let setup = Setup {
        concurrency: FAN,
        ..world.setup(&[Kind::Fan], TTL)
    };
    let mut first = world.worker(&setup).await;
    let held = |i: usize| (format!("w-{i}"), Act::Gate(world.gate("never")));
    let job = (0..FAN).map(held).fold(Job::default(), |job, (task, act)| {
        job.act_until(1, &task, act)
    });
    let handle = world.start(Kind::Fan, "x", job).await;
    wait::until("all branches have begun", async || {
        world.ledger.count(Phase::Begin) == FAN + 1
    })
    .await;
    first.kill();
    let _second = world.worker(&setup).await;

    world.completed(&handle).await;
    let snapshot = world.snapshot(&handle).await;
    for (task, record) in &snapshot.tasks {
        let crashes = u32::from(task.as_str().starts_with("w-"));
        assert_eq!(
            (record.failures, record.crashes),
            (0, crashes),
            "{task}: one kill is one crash of each"
        );
    }
}
