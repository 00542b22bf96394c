//! Redis goes away, or says nothing.

use std::time::Duration;

use tenure::Handle;
use tenure_test_support::RedisServer;
use tokio::time::sleep;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::World,
};

const TASKS: usize = 10;

/// Ten tasks that are under way in one worker, while another one idles.
async fn busy(world: &World, ttl: Duration) -> (Vec<Handle<Job>>, [crate::crew::Process; 2]) {
    let first = world.worker_of(Kind::Once, ttl).await;
    let handles = world
        .start_many(Kind::Once, "x", TASKS, 0, |_| {
            Job::default().act("a", Act::Gate(world.gate("gate")))
        })
        .await;
    wait::until("all have begun", async || {
        world.ledger.count(Phase::Begin) == TASKS
    })
    .await;
    let second = world.worker_of(Kind::Once, ttl).await;
    (handles, [first, second])
}

async fn all_went_through(
    world: &World,
    handles: &[Handle<Job>],
    workers: [crate::crew::Process; 2],
) {
    world.open("gate");
    world.all_completed(handles).await;
    world.nothing_ran_twice();
    assert_eq!(
        world.ledger.count(Phase::Drop),
        0,
        "a handler was interrupted"
    );
    for handle in handles {
        let record = world.record(handle, "a").await;
        assert_eq!((record.attempt, record.failures, record.crashes), (1, 0, 0));
    }
    for worker in workers {
        worker.shut_down().await;
    }
}

// case 25
pub(super) async fn tasks_outlive_a_short_absence_of_redis() {
    let mut world = World::on(RedisServer::durable()).await;
    let (handles, workers) = busy(&world, Duration::from_secs(10)).await;
    world.server.stop();
    sleep(Duration::from_secs(3)).await;
    world.server.restart();
    all_went_through(&world, &handles, workers).await;
}

// case 25
pub(super) async fn a_silent_redis_interrupts_no_task() {
    let world = World::new().await;
    let (handles, workers) = busy(&world, Duration::from_secs(10)).await;
    world.server.freeze();
    sleep(Duration::from_secs(3)).await;
    world.server.resume();
    all_went_through(&world, &handles, workers).await;
}

// case 57
pub(super) async fn tasks_outlive_an_absence_of_twice_their_ttl() {
    let ttl = Duration::from_millis(1500);
    let mut world = World::on(RedisServer::durable()).await;
    let (handles, workers) = busy(&world, ttl).await;
    world.server.stop();
    sleep(ttl * 2).await;
    world.server.restart();
    // Long enough for a reaper that does not wait for heartbeats to take the tasks away.
    sleep(ttl * 2).await;
    all_went_through(&world, &handles, workers).await;
}

// case 57
pub(super) async fn tasks_outlive_a_silence_of_twice_their_ttl() {
    let ttl = Duration::from_millis(1500);
    let world = World::new().await;
    let (handles, workers) = busy(&world, ttl).await;
    world.server.freeze();
    sleep(ttl * 2).await;
    world.server.resume();
    sleep(ttl * 2).await;
    all_went_through(&world, &handles, workers).await;
}

// case 22
pub(super) async fn cut_connections_lose_no_start_and_no_task() {
    let world = World::new().await;
    let setup = world.setup(&[Kind::Two], Duration::from_secs(5));
    let workers = [world.worker(&setup).await, world.worker(&setup).await];
    let mut handles = Vec::new();
    for i in 0..20 {
        for j in 0..5 {
            handles.push(
                world
                    .start(
                        Kind::Two,
                        &format!("x-{i}-{j}"),
                        Job::default().act("a", Act::Sleep(5)),
                    )
                    .await,
            );
        }
        world.redis::<u32>(&["CLIENT", "KILL", "TYPE", "normal"]);
        // The very next call of the producer.
        let next = world
            .client
            .start(&world.workflow(Kind::Two), Job::default())
            .id(format!("next-{i}"))
            .await;
        match next {
            Ok(handle) => handles.push(handle),
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
    world.all_completed(&handles).await;
    world.nothing_ran_twice();
    for worker in workers {
        worker.shut_down().await;
    }
}
