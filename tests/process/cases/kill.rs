//! SIGKILL, and claim keys that vanish.

use std::time::Duration;

use tenure::{
    Reaper,
    store::{Status, TaskState},
};
use tokio_util::sync::CancellationToken;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::{World, claim_key},
};

const TTL: Duration = Duration::from_secs(1);

// case 8
pub(super) async fn a_killed_workers_task_is_taken_over_soon_whatever_its_timeout() {
    let world = World::new().await;
    let mut first = world.worker_of(Kind::Hour, TTL).await;
    let gate = Act::Gate(world.gate("gate"));
    let handle = world
        .start(Kind::Hour, "x", Job::default().act_until(1, "a", gate))
        .await;
    world.begun("x", "a", 1).await;
    let _second = world.worker_of(Kind::Hour, TTL).await;
    first.kill();

    let again = world.begun("x", "a", 2).await;
    assert_ne!(again.pid, first.pid());
    world.completed(&handle).await;
    let record = world.record(&handle, "a").await;
    assert_eq!((record.attempt, record.failures, record.crashes), (2, 0, 1));
}

// case 6
pub(super) async fn a_worker_recovers_tasks_that_it_cannot_run_itself() {
    let world = World::new().await;
    let mut owner = world.worker_of(Kind::Hour, TTL).await;
    let gate = Act::Gate(world.gate("gate"));
    let handle = world
        .start(Kind::Hour, "x", Job::default().act_until(1, "a", gate))
        .await;
    world.begun("x", "a", 1).await;
    owner.kill();
    let _stranger = world.worker_of(Kind::Other, TTL).await;

    wait::until("the task is ready again", async || {
        world.record(&handle, "a").await.state == TaskState::Ready
    })
    .await;
    let record = world.record(&handle, "a").await;
    assert_eq!((record.attempt, record.failures, record.crashes), (1, 0, 1));
    assert_eq!(handle.status().await.expect("the status"), Status::Running);

    let _able = world.worker_of(Kind::Hour, TTL).await;
    world.completed(&handle).await;
    assert_eq!(world.executions("x", "a"), 2);
}

// case 7
pub(super) async fn a_claim_key_deleted_by_hand_frees_the_task_of_a_dead_worker() {
    let world = World::new().await;
    // Without the deletion the claim would hold for five minutes.
    let long = Duration::from_secs(300);
    let mut first = world.worker_of(Kind::One, long).await;
    let gate = Act::Gate(world.gate("gate"));
    let handle = world
        .start(Kind::One, "x", Job::default().act_until(1, "a", gate))
        .await;
    world.begun("x", "a", 1).await;
    first.kill();
    let _second = world.worker_of(Kind::One, long).await;
    assert_eq!(world.redis::<u32>(&["DEL", &claim_key("x", "a")]), 1);

    // A worker waits for the heartbeats of others when it has just come; a reaper that has been there for long does not.
    let reaper = Reaper::builder(world.store.clone())
        .interval(Duration::from_millis(100))
        .build()
        .expect("a reaper");
    let stop = CancellationToken::new();
    let rounds = tokio::spawn({
        let stop = stop.clone();
        async move { reaper.run(stop).await }
    });
    world.completed(&handle).await;
    assert_eq!(world.executions("x", "a"), 2);
    stop.cancel();
    rounds.await.expect("the reaper ends");
}

// case 7
pub(super) async fn a_claim_key_deleted_by_hand_costs_a_living_worker_nothing() {
    let world = World::new().await;
    let ttl = Duration::from_millis(1500);
    let _first = world.worker_of(Kind::One, ttl).await;
    let gate = Act::Gate(world.gate("gate"));
    let handle = world
        .start(Kind::One, "x", Job::default().act("a", gate))
        .await;
    world.begun("x", "a", 1).await;
    let _second = world.worker_of(Kind::One, ttl).await;

    for _ in 0..4 {
        assert_eq!(world.redis::<u32>(&["DEL", &claim_key("x", "a")]), 1);
        wait::until("a heartbeat sets the key again", async || {
            world.has_claim_key("x", "a")
        })
        .await;
    }
    world.open("gate");
    world.completed(&handle).await;
    world.nothing_ran_twice();
    assert_eq!(world.ledger.count(Phase::Drop), 0);
}
