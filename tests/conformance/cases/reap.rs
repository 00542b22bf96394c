use tenure::{
    engine::Limits,
    ids::Purpose,
    store::{
        ClaimRequest, ErrorKind, ErrorRecord, Recovered, Recovery, SettleReply, StartItem, Status,
        TickRequest,
    },
};

use crate::{env::On, prelude::*};

fn requeued(recovered: &[Recovered]) -> Vec<u32> {
    let crashes = |r: &Recovered| match r.recovery {
        Recovery::Requeued { crashes } => crashes,
        other => panic!("{other:?}"),
    };
    recovered.iter().map(crashes).collect()
}

// R10, R16, case 8, 11
pub(crate) async fn a_claim_that_expires_is_a_crash_and_ready_again(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claim = t.one("w1").await;
    t.pass(TTL);
    assert!(t.tick().await.recovered.is_empty());
    t.pass(1);
    let reply = t.tick().await;
    let expected = Recovered {
        id: id("x"),
        task: task("a"),
        worker: worker("w1"),
        recovery: Recovery::Requeued { crashes: 1 },
    };
    assert_eq!(reply.recovered, [expected]);
    assert_eq!(t.ready().await, ["x/a", "x/b"]);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 1");
    let errors = t.store.errors(&id("x")).await.expect("a read");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].kind, ErrorKind::Crash);
    assert_eq!(errors[0].message, ErrorRecord::LEASE_EXPIRED);
    assert_eq!(errors[0].worker, Some(worker("w1")));
    assert_eq!(errors[0].time(), t.now());
    assert_eq!(errors[0].attempt, claim.record.attempt);
    assert_eq!(t.one("w2").await.record.attempt, 2);
}

// R01, R02, R11, case 5
pub(crate) async fn live_claims_and_work_without_a_claim_are_never_touched(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 2).await;
    t.settle("w1", &retry(&claims[1], 1_000_000)).await;
    let before = t.snapshot(&id("x")).await;
    for _ in 0..10 {
        t.pass(TTL * 9 / 10);
        t.extend("w1", &claims[0]).await;
        assert!(t.tick().await.recovered.is_empty());
    }
    assert_eq!(t.snapshot(&id("x")).await, before);
    assert_eq!(t.ready().await, ["x/c"]);
    // A task that is settled when the reaper comes stays as it was left.
    t.settle("w1", &then(&claims[0], &["d"])).await;
    let before = t.snapshot(&id("x")).await;
    t.pass(TTL * 20);
    assert!(t.tick().await.recovered.is_empty());
    assert_eq!(t.snapshot(&id("x")).await, before);
}

pub(crate) async fn a_living_worker_is_in_doubt_first_and_then_has_lost_the_task(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    t.one("w1").await;
    t.pass(TTL + 1);
    t.show("w1").await;
    assert!(t.tick().await.recovered.is_empty());
    t.pass(500);
    assert!(t.tick().await.recovered.is_empty());
    t.pass(1);
    let recovered = t.tick().await.recovered;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].recovery, Recovery::Lost);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 0");
    assert_eq!(t.ready().await, ["x/a", "x/b"]);
    assert!(t.store.errors(&id("x")).await.expect("a read").is_empty());
}

pub(crate) async fn a_heartbeat_clears_the_doubt(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.pass(TTL + 1);
    t.show("w1").await;
    assert!(t.tick().await.recovered.is_empty());
    t.extend("w1", &claim).await;
    t.pass(600);
    assert!(t.tick().await.recovered.is_empty());
    // It expires again: the doubt of then does not count.
    t.pass(TTL);
    t.show("w1").await;
    assert!(t.tick().await.recovered.is_empty());
    assert_eq!(t.record(&id("x"), "a").await, "running 1 n 0 0");
}

// case 7
pub(crate) async fn a_deleted_claim_key_is_set_again_or_requeued(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.show("w1").await;
    t.delete_claim_key(&claim).await;
    t.extend("w1", &claim).await;
    assert_eq!(t.claim_left(&claim).await, Some(1_000));
    t.delete_claim_key(&claim).await;
    t.pass(5_001);
    assert_eq!(requeued(&t.tick().await.recovered), [1]);
}

// R12, R13, R14, R17, case 74
pub(crate) async fn crashes_over_the_budget_end_the_instance(on: On) {
    let t = on.store().await;
    let item = StartItem {
        max_crashes: 1,
        waiter: Some(mailbox("client")),
        ..item_with("x", &["a", "b"])
    };
    t.started(item.clone()).await;
    t.one("w1").await;
    t.pass(TTL + 1);
    assert_eq!(requeued(&t.tick().await.recovered), [1]);
    t.one("w2").await;
    t.pass(TTL + 1);
    let recovered = t.tick().await.recovered;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].recovery, Recovery::Failed);
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!(snapshot.header.status, Status::Failed);
    let error = snapshot.header.error.expect("an error");
    assert_eq!(error.kind, ErrorKind::Crash);
    assert_eq!(error.message, "worker lease expired");
    assert_eq!(error.worker, Some(worker("w2")));
    assert_eq!(t.record(&item.id, "a").await, "failed 2 - 0 2");
    assert_eq!(t.record(&item.id, "b").await, "closed 0 - 0 0");
    assert_eq!(snapshot.finished_at, Some(t.now()));
    let finished = t.store.finished(p0(), Status::Failed, 0, 10).await;
    assert_eq!(finished.expect("a read").len(), 1);
    assert!(t.claim("w3", 1).await.is_empty());
}

pub(crate) async fn crashes_wait_longer_each_time(on: On) {
    let t = on.store().await;
    let item = StartItem {
        max_crashes: 5,
        ..item("x")
    };
    t.started(item).await;
    for wait in [0, 40_000, 60_000, 60_000] {
        t.one("w1").await;
        t.pass(TTL + 1);
        let tick = TickRequest {
            crash_delay: ms(40_000),
            ..ticking()
        };
        let reply = t.store.tick(tick).await.expect("a tick");
        assert_eq!(reply.recovered.len(), 1);
        if wait > 0 {
            assert_eq!(reply.next_due, Some(t.now().plus(ms(wait))));
            t.pass(wait - 1);
            assert_eq!(t.tick().await.promoted, 0);
            t.pass(1);
            assert_eq!(t.tick().await.promoted, 1);
        }
    }
    assert_eq!(t.record(&id("x"), "a").await, "ready 4 - 0 4");
}

// case 11
pub(crate) async fn the_crash_budget_is_apart_from_failures(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.settle("w1", &retry(&claim, 0)).await;
    t.one("w1").await;
    t.pass(TTL + 1);
    t.tick().await;
    assert_eq!(t.record(&id("x"), "a").await, "ready 2 - 1 1");
    let claim = t.one("w1").await;
    t.settle("w1", &retry(&claim, 0)).await;
    assert_eq!(t.record(&id("x"), "a").await, "ready 3 n 2 1");
}

// case 12, 66
pub(crate) async fn a_task_past_its_deadline_is_left_to_the_engine(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let limits = Limits {
        timeout: Some(ms(400)),
        deadline: None,
    };
    let bounded = claiming_bounded("w1", limits);
    let claim = t.claim_with(&bounded).await.claims.remove(0);
    t.pass(300);
    t.extend("w1", &claim).await;
    t.pass(601);
    t.show("w1").await;
    // Looked at once the claim's first time is over, though its worker lives.
    t.pass(100);
    let recovered = t.tick().await.recovered;
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].recovery, Recovery::TimedOut);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 0");
    assert_eq!(t.settle("w1", &done(&claim)).await, SettleReply::Lost);
    let advance = t.one("w2").await;
    assert_eq!(advance.ticket.purpose, Purpose::TimedOut);
    assert!(advance.input.is_some());
    // What the engine decides for it is an ordinary attempt again.
    t.settle("w2", &retry(&advance, 0)).await;
    assert_eq!(t.one("w2").await.ticket.purpose, Purpose::Run);
}

// R04, R20
pub(crate) async fn the_oldest_are_reaped_first_in_bounded_batches(on: On) {
    let t = on.store().await;
    for name in ["c", "a", "b"] {
        t.started(item(name)).await;
        t.one("w1").await;
        t.pass(10);
    }
    t.pass(TTL);
    let tick = TickRequest {
        reap: 2,
        ..ticking()
    };
    let reply = t.store.tick(tick.clone()).await.expect("a tick");
    let ids: Vec<_> = reply.recovered.iter().map(|r| r.id.as_str()).collect();
    assert_eq!((ids, reply.again), (vec!["c", "a"], true));
    let reply = t.store.tick(tick).await.expect("a tick");
    assert_eq!(reply.recovered[0].id, id("b"));
    assert!(!reply.again);
}

// R19
pub(crate) async fn two_reapers_recover_a_claim_once(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c", "d"])).await;
    t.claim("w1", 4).await;
    t.pass(TTL + 1);
    let (one, two) = tokio::join!(t.tick(), t.tick());
    assert_eq!(one.recovered.len() + two.recovered.len(), 4);
    assert_eq!(t.ready().await.len(), 4);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 1");
}

// R21
pub(crate) async fn claims_of_milliseconds_expire_after_milliseconds(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let short = ClaimRequest {
        ttl: ms(5),
        ..claiming("w1", 1)
    };
    t.claim_with(&short).await;
    t.pass(5);
    assert!(t.tick().await.recovered.is_empty());
    t.pass(1);
    assert_eq!(requeued(&t.tick().await.recovered), [1]);
}

// case 54
pub(crate) async fn tickets_of_finished_instances_fall_when_met(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claim = t.one("w1").await;
    t.settle("w1", &then(&claim, &[])).await;
    let claim = t.one("w1").await;
    t.cancel(&id("x")).await;
    assert_eq!(t.store.counts(p0()).await.expect("a read").running, 1);
    t.pass(TTL + 1);
    assert!(t.tick().await.recovered.is_empty());
    assert_eq!(t.store.counts(p0()).await.expect("a read").running, 0);
    assert_eq!(t.claim_left(&claim).await, None);
    assert_eq!(t.record(&id("x"), "b").await, "closed 1 n 0 0");
}
