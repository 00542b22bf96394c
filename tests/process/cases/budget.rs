//! What counts as an attempt, a failure and a crash.

use std::time::Duration;

use tenure::store::{ErrorKind, ErrorRecord, Status, TaskState};
use tokio::time::Instant;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_millis(500);

// case 11
pub(super) async fn a_crash_is_no_attempt() {
    let world = World::new().await;
    let mut first = world.worker_of(Kind::Once, TTL).await;
    let gate = Act::Gate(world.gate("gate"));
    let handle = world
        .start(Kind::Once, "x", Job::default().act_until(1, "a", gate))
        .await;
    world.begun("x", "a", 1).await;
    first.kill();
    let _second = world.worker_of(Kind::Once, TTL).await;

    world.completed(&handle).await;
    let record = world.record(&handle, "a").await;
    assert_eq!((record.attempt, record.failures, record.crashes), (2, 0, 1));
}

// case 74
pub(super) async fn a_task_that_kills_its_workers_is_ended_by_its_crash_budget() {
    let world = World::new().await;
    // Those that come after it work well, on the workers that come back.
    let poison = world
        .client
        .start(
            &world.workflow(Kind::Two),
            Job::default().act("a", Act::Kill),
        )
        .id("poison")
        .max_crashes(3)
        .await;
    let poison = poison.expect("a start");
    let mut worker = world.spawn(&world.setup(&[Kind::Two], TTL));
    wait::until("the instance is over", async || {
        if worker.has_ended() {
            worker = world.spawn(&world.setup(&[Kind::Two], TTL));
        }
        poison.status().await.expect("the status").is_terminal()
    })
    .await;

    assert_eq!(poison.status().await.expect("the status"), Status::Failed);
    assert_eq!(
        world.executions("poison", "a"),
        4,
        "the first and one after each crash that the budget allows"
    );
    let errors = world.errors(poison.id()).await;
    assert_eq!(
        (errors[0].kind, &errors[0].message[..]),
        (ErrorKind::Crash, ErrorRecord::LEASE_EXPIRED)
    );
    let record = world.record(&poison, "a").await;
    assert!(
        matches!(record.state, TaskState::Closed | TaskState::Failed),
        "{record}"
    );
    let good = world.start(Kind::Two, "good", Job::default()).await;
    if worker.has_ended() {
        worker = world.spawn(&world.setup(&[Kind::Two], TTL));
    }
    world.completed(&good).await;
    world.indexed_once(&[poison]).await;
    worker.shut_down().await;
}

// case 12
pub(super) async fn one_timeout_among_ten_tasks_disturbs_nobody() {
    let world = World::new().await;
    let worker = world.worker_of(Kind::Timed, TTL).await;
    let gate = world.gate("never");
    let handles = world
        .start_many(Kind::Timed, "x", 10, 0, |i| match i {
            3 => Job::default().act("a", Act::Gate(gate.clone())),
            4 => Job::default().act_until(1, "a", Act::Gate(gate.clone())),
            _ => Job::default().act("a", Act::Sleep(20)),
        })
        .await;

    assert_eq!(world.over(&handles[3]).await, Status::Failed);
    let errors = world.errors(handles[3].id()).await;
    assert_eq!(errors.len(), 2, "two attempts");
    assert!(
        errors.iter().all(|error| error.kind == ErrorKind::Timeout),
        "{errors:?}"
    );
    let others: Vec<_> = handles
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != 3)
        .map(|(_, handle)| handle.clone())
        .collect();
    world.all_completed(&others).await;
    assert_eq!(
        world.executions("x-4", "a"),
        2,
        "the one whose second attempt is quick"
    );
    let later = world.start(Kind::Timed, "later", Job::default()).await;
    world.completed(&later).await;
    worker.shut_down().await;
}

// case 13
pub(super) async fn a_panic_is_retried_at_once_and_its_message_is_kept() {
    let world = World::new().await;
    let ttl = Duration::from_secs(60);
    let worker = world.worker_of(Kind::One, ttl).await;
    let begin = Instant::now();
    let handle = world
        .start(
            Kind::One,
            "x",
            Job::default().act_until(1, "a", Act::Panic("x".into())),
        )
        .await;

    world.begun("x", "a", 2).await;
    assert!(
        begin.elapsed() < ttl / 3,
        "a retry after a panic does not wait for the claim to expire"
    );
    world.completed(&handle).await;
    let errors = world.errors(handle.id()).await;
    assert_eq!(
        (errors[0].kind, &errors[0].message[..], errors[0].attempt),
        (ErrorKind::Panic, "x", 1)
    );
    worker.shut_down().await;
}

// case 45
pub(super) async fn a_timeout_stops_the_handler() {
    let world = World::new().await;
    let _worker = world.worker_of(Kind::Timed, TTL).await;
    let handle = world
        .start(
            Kind::Timed,
            "x",
            Job::default().act("a", Act::Tick(world.gate("never"))),
        )
        .await;

    assert_eq!(world.over(&handle).await, Status::Failed);
    let ticks = world.ledger.count(Phase::Tick);
    assert!(ticks > 0);
    wait::meanwhile(Duration::from_millis(300), async || {
        assert_eq!(world.ledger.count(Phase::Tick), ticks);
    })
    .await;
    assert_eq!(
        world.ledger.count(Phase::Drop),
        2,
        "both attempts were dropped"
    );
    world.nothing_left().await;
}
