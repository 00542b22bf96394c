//! Cancel.

use std::time::Duration;

use futures_util::future::join_all;
use tenure::{ClientError, store::Status};
use tokio::time::sleep;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_secs(10);

// case 44
pub(super) async fn a_cancelled_task_is_stopped_and_never_retried() {
    let world = World::new().await;
    let worker = world.worker_of(Kind::Stubborn, TTL).await;
    let handle = world
        .start(
            Kind::Stubborn,
            "x",
            Job::default().act("a", Act::Tick(world.gate("never"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    handle
        .cancel("changed my mind", "ada")
        .await
        .expect("a cancel");

    assert_eq!(
        handle.status().await.expect("the status"),
        Status::Cancelled,
        "at once"
    );
    let error = handle.result().await.expect_err("no result");
    assert!(matches!(error, ClientError::Cancelled { .. }), "{error}");
    wait::until("the handler is stopped", async || {
        world.ledger.of(Phase::Drop, "x", "a").len() == 1
    })
    .await;
    // A task that comes after it in the same list shows that the worker has been through it.
    let later = world.start(Kind::Stubborn, "later", Job::default()).await;
    world.completed(&later).await;
    assert_eq!(world.executions("x", "a"), 1);
    world.indexed_once(&[handle]).await;
    worker.shut_down().await;
}

// case 46
pub(super) async fn a_cancel_at_the_moment_of_the_commit_leaves_one_end_and_says_which() {
    const TIMES: usize = 1000;
    let world = World::new().await;
    let setup = crate::program::Setup {
        concurrency: 50,
        ..world.setup(&[Kind::One], TTL)
    };
    let worker = world.worker(&setup).await;
    let (mut cancelled, mut completed) = (0, 0);
    for round in 0..TIMES / 50 {
        let work = || Job::default().act("a", Act::Sleep(5));
        let handles = world
            .start_many(Kind::One, &format!("x-{round}"), 50, 0, |_| work())
            .await;
        let cancels = handles.iter().map(|handle| async move {
            sleep(Duration::from_micros(fastrand::u64(0..40_000))).await;
            (handle, handle.cancel("", "").await)
        });
        for (handle, said) in join_all(cancels).await {
            let status = handle.status().await.expect("the status");
            match said {
                Ok(()) => {
                    assert_eq!(
                        status,
                        Status::Cancelled,
                        "the reply was that it is cancelled"
                    );
                    cancelled += 1;
                }
                Err(ClientError::Over { status: said, .. }) => {
                    assert_eq!((said, status), (Status::Completed, Status::Completed));
                    completed += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        world.indexed_once(&handles).await;
    }
    assert_eq!(cancelled + completed, TIMES);
    assert!(
        cancelled > 0 && completed > 0,
        "{cancelled} cancelled, {completed} completed: not near the commit"
    );
    // An entry that lies behind all others shows that the worker has been through them.
    let last = world.start(Kind::One, "last", Job::default()).await;
    world.completed(&last).await;
    worker.shut_down().await;
    assert!(world.claim_keys().is_empty());
}
