//! SIGTERM.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::World,
};

// case 1
pub(super) async fn a_draining_worker_keeps_its_claim_until_the_commit() {
    let ttl = Duration::from_millis(1500);
    let world = World::new().await;
    let mut draining = world.worker_of(Kind::One, ttl).await;
    let handle = world
        .start(
            Kind::One,
            "x",
            Job::default().act("a", Act::Gate(world.gate("gate"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    let _idle = world.worker_of(Kind::One, ttl).await;
    draining.terminate();

    wait::meanwhile(ttl * 2, async || {
        assert!(
            world.has_claim_key("x", "a"),
            "the claim key of a draining worker is gone"
        );
    })
    .await;
    assert!(!draining.has_ended(), "it waits for its task");
    world.open("gate");
    wait::until(
        "the commit, with the claim key there until then",
        async || {
            // The order matters: a key that is gone is only right if the instance is over by then.
            let key = world.has_claim_key("x", "a");
            let over = handle.status().await.expect("the status").is_terminal();
            assert!(key || over, "the claim key went before the commit");
            over
        },
    )
    .await;
    assert!(draining.ended().await.success());
    world.completed(&handle).await;
    world.nothing_ran_twice();
}

// case 14
pub(super) async fn a_worker_whose_grace_is_over_hands_over_only_what_it_has_stopped() {
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::One], Duration::from_secs(60));
    setup.drain = 300;
    let first = world.worker(&setup).await;
    let handle = world
        .start(
            Kind::One,
            "x",
            Job::default().act_until(1, "a", Act::Gate(world.gate("never"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    let _second = world.worker(&setup).await;
    first.shut_down().await;

    let again = world.begun("x", "a", 2).await;
    let dropped = world.ledger.of(Phase::Drop, "x", "a");
    assert!(
        dropped.len() == 1 && dropped[0].at <= again.at,
        "it was handed over before its future was dropped"
    );
    world.completed(&handle).await;
    let record = world.record(&handle, "a").await;
    assert_eq!(
        (record.failures, record.crashes),
        (0, 0),
        "a release counts nothing"
    );
}

// case 14
pub(super) async fn a_blocked_handler_that_outlives_the_grace_commits_nothing_twice() {
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::Two], Duration::from_millis(600));
    setup.drain = 100;
    let mut first = world.worker(&setup).await;
    let handle = world
        .start(
            Kind::Two,
            "x",
            Job::default().act_until(1, "a", Act::Block(world.gate("gate"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    let second = world.worker(&setup).await;
    first.terminate();

    // Its heartbeats end with the worker, so that the task goes on elsewhere while the handler still blocks its thread.
    world.begun("x", "a", 2).await;
    world.open("gate");
    assert!(first.ended().await.success());
    world.completed(&handle).await;
    let trail = handle.result().await.expect("the result").trail;
    assert!(
        trail.iter().all(|mark| mark.pid == second.pid()),
        "{trail:?}"
    );
    assert_eq!(world.executions("x", "b"), 1);
}

// case 47
pub(super) async fn workers_that_are_told_to_stop_leave_no_claim() {
    const STOPS: usize = 25;
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::Stubborn], Duration::from_secs(60));
    setup.concurrency = 6;
    let handles = world
        .start_many(Kind::Stubborn, "x", 300, 0, |i| {
            let slow = Job::default().act("a", Act::Sleep(fastrand::u64(1..80)));
            if i % 3 == 0 {
                slow.act_until(2, "a", Act::Fail)
            } else {
                slow
            }
        })
        .await;
    for _ in 0..STOPS {
        let mut worker = world.spawn(&setup);
        let id = worker.up().await;
        sleep(Duration::from_millis(fastrand::u64(0..120))).await;
        worker.terminate();
        assert!(worker.ended().await.success());
        for key in world.claim_keys() {
            let holder: Option<String> = world.redis(&["GET", &key]);
            assert!(
                holder.is_none_or(|holder| !holder.starts_with(&id)),
                "{id} has ended and still holds {key}"
            );
        }
        assert!(
            !world.redis::<bool>(&["EXISTS", &format!("{{tenure:0}}:worker:{id}")]),
            "{id} has ended and is present"
        );
    }
    let _last = world.worker(&setup).await;
    world.all_completed(&handles).await;
    let mut failed = 0;
    for handle in &handles {
        let record = world.record(handle, "a").await;
        let told = world
            .ledger
            .of(Phase::Fail, handle.id().as_str(), "a")
            .len();
        assert_eq!(
            (record.failures as usize, record.crashes),
            (told, 0),
            "{}: every outcome is recorded",
            handle.id()
        );
        failed += told;
    }
    assert!(failed > 0);
}
