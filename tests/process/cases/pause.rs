//! SIGSTOP for longer than the TTL, then SIGCONT.

use std::time::Duration;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::{World, claim_key},
};

const TTL: Duration = Duration::from_millis(600);

// case 4
pub(super) async fn a_frozen_worker_learns_that_it_lost_and_stops_its_handler() {
    let world = World::new().await;
    let first = world.worker_of(Kind::Two, TTL).await;
    let job = Job::default()
        .act_until(1, "a", Act::Gate(world.gate("never")))
        .act("b", Act::Gate(world.gate("b")));
    let handle = world.start(Kind::Two, "x", job).await;
    world.begun("x", "a", 1).await;
    first.freeze();
    let second = world.worker_of(Kind::Two, TTL).await;
    let taken = world.begun("x", "b", 1).await;
    assert_eq!(taken.pid, second.pid());

    first.thaw();
    let dropped = wait::until_some("the handler that lost its claim is dropped", async || {
        world.ledger.of(Phase::Drop, "x", "a").first().cloned()
    })
    .await;
    assert_eq!(dropped.pid, first.pid());
    wait::meanwhile(TTL, async || {
        assert!(
            !world.has_claim_key("x", "a"),
            "a heartbeat made a claim anew that it had lost"
        );
    })
    .await;
    let holder: String = world.redis(&["GET", &claim_key("x", "b")]);
    world.open("b");
    world.completed(&handle).await;
    let trail = handle.result().await.expect("the result").trail;
    assert!(
        trail.iter().all(|mark| mark.pid == second.pid()),
        "{trail:?}"
    );
    assert!(holder.contains(&format!("-{}-", second.pid())), "{holder}");
}

// case 4
pub(super) async fn the_late_commit_of_a_frozen_worker_is_refused() {
    let world = World::new().await;
    let first = world.worker_of(Kind::Two, TTL).await;
    // It blocks its thread, so that it cannot be dropped: it comes to its end and tries to commit.
    let job = Job::default()
        .act_until(1, "a", Act::Block(world.gate("a")))
        .act("b", Act::Gate(world.gate("b")));
    let handle = world.start(Kind::Two, "x", job).await;
    world.begun("x", "a", 1).await;
    first.freeze();
    let second = world.worker_of(Kind::Two, TTL).await;
    world.begun("x", "b", 1).await;

    world.open("a");
    first.thaw();
    wait::until("the late handler comes to its end", async || {
        world
            .ledger
            .of(Phase::End, "x", "a")
            .iter()
            .any(|line| line.pid == first.pid())
    })
    .await;
    // Another task of the same worker shows that its settlement, which came before, has been answered.
    first.terminate();
    let mut first = first;
    assert!(first.ended().await.success());
    assert!(!world.has_claim_key("x", "a"));
    world.open("b");
    world.completed(&handle).await;
    let trail = handle.result().await.expect("the result").trail;
    assert!(
        trail.iter().all(|mark| mark.pid == second.pid()),
        "{trail:?}"
    );
    assert_eq!(
        world.executions("x", "b"),
        1,
        "the late commit queued nothing"
    );
}
