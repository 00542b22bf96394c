//! Handlers that do not let go of their thread.

use std::time::Duration;

use tenure::store::ErrorKind;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_millis(1500);

// case 2
pub(super) async fn a_handler_that_blocks_a_one_thread_runtime_keeps_its_claim() {
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::One], TTL);
    setup.threads = 0;
    let blocked = world.worker(&setup).await;
    let handle = world
        .start(
            Kind::One,
            "x",
            Job::default().act("a", Act::Block(world.gate("gate"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    let _idle = world.worker_of(Kind::One, TTL).await;

    wait::meanwhile(TTL * 3, async || {
        assert!(
            world.has_claim_key("x", "a"),
            "the claim key of a living worker is gone"
        );
    })
    .await;
    world.open("gate");
    world.completed(&handle).await;
    world.nothing_ran_twice();
    assert_eq!(
        handle.result().await.expect("the result").trail[0].pid,
        blocked.pid()
    );
}

// case 3
pub(super) async fn eight_handlers_that_compute_on_every_thread_keep_their_claims() {
    let world = World::new().await;
    let mut setup = world.setup(&[Kind::One], TTL);
    (setup.threads, setup.concurrency) = (8, 8);
    let _busy = world.worker(&setup).await;
    let spin = || Job::default().act("a", Act::Spin(world.gate("gate")));
    let handles = world.start_many(Kind::One, "x", 8, 0, |_| spin()).await;
    wait::until("all eight compute", async || {
        world.ledger.count(Phase::Begin) == 8
    })
    .await;
    let _idle = world.worker_of(Kind::One, TTL).await;

    wait::meanwhile(TTL * 2, async || {
        assert_eq!(
            world.claim_keys().len(),
            8,
            "claims of a living worker are gone"
        );
    })
    .await;
    world.open("gate");
    world.all_completed(&handles).await;
    world.nothing_ran_twice();
}

// case 9
pub(super) async fn a_task_of_many_ttls_is_never_started_twice() {
    let ttl = Duration::from_millis(600);
    let world = World::new().await;
    let _first = world.worker_of(Kind::One, ttl).await;
    let wait = || Job::default().act("a", Act::Gate(world.gate("gate")));
    let handles = world.start_many(Kind::One, "x", 10, 5, |_| wait()).await;
    wait::until("all have begun", async || {
        world.ledger.count(Phase::Begin) == 10
    })
    .await;
    let _second = world.worker_of(Kind::One, ttl).await;

    wait::meanwhile(ttl * 10, async || {
        assert_eq!(world.ledger.count(Phase::Begin), 10);
    })
    .await;
    world.open("gate");
    world.all_completed(&handles).await;
    world.nothing_ran_twice();
}

// case 66
pub(super) async fn a_handler_that_blocks_past_its_timeout_counts_as_timed_out() {
    let world = World::new().await;
    let stuck = world.worker_of(Kind::Timed, TTL).await;
    let block = Act::Block(world.gate("gate"));
    let handle = world
        .start(Kind::Timed, "x", Job::default().act_until(1, "a", block))
        .await;
    world.begun("x", "a", 1).await;
    let _healthy = world.worker_of(Kind::Timed, TTL).await;

    // The blocked attempt is taken away although its worker lives and beats, and its end comes too late.
    wait::until("another worker commits", async || {
        !world.ledger.of(Phase::End, "x", "a").is_empty()
    })
    .await;
    let after = world.over(&handle).await;
    world.open("gate");
    world.completed(&handle).await;
    assert_eq!(world.over(&handle).await, after);
    let record = world.record(&handle, "a").await;
    assert_eq!((record.failures, record.crashes), (1, 0));
    assert_ne!(
        handle.result().await.expect("the result").trail[0].pid,
        stuck.pid()
    );
    let errors = world.errors(handle.id()).await;
    assert_eq!(
        errors.iter().map(|error| error.kind).collect::<Vec<_>>(),
        [ErrorKind::Timeout]
    );
}
