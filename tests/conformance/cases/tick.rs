use tenure::store::{
    Begin, ClaimRequest, Clocks, IdPolicy, KeeperRole, Recovery, Retention, StartItem, Status,
    TickRequest,
};

use crate::{env::On, prelude::*};

// case 17, 31
pub(crate) async fn each_timer_is_promoted_once_in_bounded_batches(on: On) {
    let t = on.store().await;
    for (name, after) in [("c", 10), ("a", 20), ("b", 30)] {
        let begin = Begin::After(ms(after));
        t.started(StartItem {
            begin,
            ..item(name)
        })
        .await;
    }
    t.pass(100);
    let tick = TickRequest {
        promote: 2,
        ..ticking()
    };
    let (one, two) = tokio::join!(t.store.tick(tick.clone()), t.store.tick(tick));
    let (one, two) = (one.expect("a tick"), two.expect("a tick"));
    assert_eq!(one.promoted + two.promoted, 3);
    assert_ne!(one.again, two.again);
    assert_eq!(t.ready().await, ["c/a", "a/a", "b/a"]);
    assert_eq!(t.tick().await.next_due, None);
}

pub(crate) async fn the_keeper_stays_keeper_until_its_time_runs_out(on: On) {
    let t = on.store().await;
    let tick = async |who: &str| {
        let keeper = Some((worker(who), ms(100)));
        let request = TickRequest {
            keeper,
            ..ticking()
        };
        t.store.tick(request).await.expect("a tick").role
    };
    assert_eq!(tick("w1").await, KeeperRole::Keeper);
    assert_eq!(tick("w2").await, KeeperRole::Other);
    t.pass(80);
    assert_eq!(tick("w1").await, KeeperRole::Keeper);
    t.pass(100);
    assert_eq!(tick("w2").await, KeeperRole::Other);
    t.pass(1);
    assert_eq!(tick("w2").await, KeeperRole::Keeper);
    assert_eq!(tick("w1").await, KeeperRole::Other);
    assert_eq!(t.tick().await.role, KeeperRole::Other);
}

// case 57
pub(crate) async fn a_step_of_the_clock_pauses_reaping_and_pruning(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    t.started(StartItem {
        begin: Begin::After(ms(1_000)),
        ..item("y")
    })
    .await;
    t.cancel(&t.started(item("z")).await.id).await;
    t.one("w1").await;
    let expected = t.now();
    let tick = |expected| TickRequest {
        expected: Some(expected),
        retention: Retention {
            cancelled: ms(0),
            ..Retention::default()
        },
        ..ticking()
    };
    let hour = 3_600_000;
    t.pass(hour);
    let reply = t.store.tick(tick(expected)).await.expect("a tick");
    assert_eq!(reply.clocks, Clocks::Stepped { by: hour });
    assert_eq!((reply.recovered.len(), reply.pruned), (0, 0));
    assert_eq!(reply.promoted, 1);
    assert_eq!(t.record(&id("x"), "a").await, "running 1 n 0 0");
    let nearly = t.now().as_millis() - 2_000;
    let nearly = tenure::time::Timestamp::from_millis(nearly);
    let reply = t.store.tick(tick(nearly)).await.expect("a tick");
    assert_eq!(reply.clocks, Clocks::Steady);
    assert_eq!((reply.recovered.len(), reply.pruned), (1, 1));
    t.pass(-hour);
    let reply = t.store.tick(tick(expected.plus(ms(hour)))).await;
    let clocks = reply.expect("a tick").clocks;
    assert_eq!(clocks, Clocks::Stepped { by: -hour });
}

// case 57
pub(crate) async fn claims_that_live_too_long_after_a_step_back_are_cut(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.pass(-3_600_000);
    assert_eq!(t.claim_left(&claim).await, Some(3_601_000));
    // The first look finds the ticket too far ahead, the second its claim.
    t.tick().await;
    t.tick().await;
    assert_eq!(t.claim_left(&claim).await, Some(1_000));
    t.pass(TTL + 1);
    let recovered = t.tick().await.recovered;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].recovery, Recovery::Requeued { crashes: 1 });
    // One that asked for more than the reaper would is left as it is.
    let long = ClaimRequest {
        ttl: ms(100_000),
        ..claiming("w1", 1)
    };
    let claim = t.claim_with(&long).await.claims.remove(0);
    t.pass(5_001);
    t.tick().await;
    assert_eq!(t.claim_left(&claim).await, Some(94_999));
}

// case 35
pub(crate) async fn finished_instances_are_pruned_after_their_retention(on: On) {
    let t = on.store().await;
    for name in ["x", "y"] {
        t.started(item(name)).await;
        let claim = t.one("w1").await;
        t.settle("w1", &done(&claim)).await;
        t.pass(1_000);
    }
    let dead = t.started(item("dead")).await;
    let claim = t.one("w1").await;
    t.settle("w1", &fail(&claim)).await;
    let day = 24 * 3_600_000;
    t.pass(day - 2_001);
    assert_eq!(t.tick().await.pruned, 0);
    t.pass(1);
    assert_eq!(t.tick().await.pruned, 1);
    assert_eq!(t.store.header(&id("x")).await.expect("a read"), None);
    assert!(t.store.header(&id("y")).await.expect("a read").is_some());
    t.pass(29 * day);
    let one = TickRequest {
        prune: 1,
        ..ticking()
    };
    let reply = t.store.tick(one.clone()).await.expect("a tick");
    assert_eq!((reply.pruned, reply.again), (1, true));
    assert!(t.store.header(&dead.id).await.expect("a read").is_some());
    t.pass(2_000);
    assert_eq!(t.store.tick(one).await.expect("a tick").pruned, 1);
    assert_eq!(t.store.header(&dead.id).await.expect("a read"), None);
    assert!(t.store.errors(&dead.id).await.expect("a read").is_empty());
    let counts = t.store.counts(p0()).await.expect("a read");
    assert!(counts.finished.values().all(|count| *count == 0));
}

pub(crate) async fn an_index_entry_of_a_replaced_run_prunes_nothing(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    t.cancel(&first.id).await;
    t.started(StartItem {
        policy: IdPolicy::ReplaceFinished,
        ..item("x")
    })
    .await;
    t.pass(31 * 24 * 3_600_000);
    assert_eq!(t.tick().await.pruned, 0);
    assert_eq!(t.snapshot(&first.id).await.header.status, Status::Running);
    let cancelled = t.store.finished(p0(), Status::Cancelled, 0, 10).await;
    assert!(cancelled.expect("a read").is_empty());
}

pub(crate) async fn retention_is_never_less_than_two_minutes(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    t.cancel(&item.id).await;
    let zero = TickRequest {
        retention: Retention {
            completed: ms(0),
            failed: ms(0),
            cancelled: ms(0),
        },
        ..ticking()
    };
    t.pass(119_999);
    assert_eq!(t.store.tick(zero.clone()).await.expect("a tick").pruned, 0);
    t.pass(1);
    assert_eq!(t.store.tick(zero).await.expect("a tick").pruned, 1);
}
