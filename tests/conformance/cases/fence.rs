use tenure::{
    ids::Nonce,
    store::{
        ControlReply, Held, IdPolicy, ReleaseReply, Retention, SettleReply, StartItem, Status,
        TickRequest,
    },
};

use crate::{env::On, prelude::*};

const STORED: SettleReply = SettleReply::Stored { next: None };

pub(crate) async fn a_settlement_with_another_nonce_is_lost(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    let mut forged = claim.clone();
    forged.record.nonce = Some(Nonce::random());
    let before = t.snapshot(&id("x")).await;
    assert_eq!(t.settle("w1", &done(&forged)).await, SettleReply::Lost);
    assert_eq!(t.extend("w1", &forged).await, Held::Lost);
    assert_eq!(t.release("w1", &forged).await, ReleaseReply::Lost);
    assert_eq!(t.snapshot(&id("x")).await, before);
    assert_eq!(t.claim_left(&claim).await, Some(1_000));
    assert_eq!(t.settle("w1", &done(&claim)).await, STORED);
}

pub(crate) async fn a_settlement_of_another_run_is_lost(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let old = t.one("w1").await;
    let second = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("x")
    };
    t.started(second.clone()).await;
    let claim = t.one("w1").await;
    assert_eq!(claim.run, second.run);
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    assert_eq!(t.release("w1", &old).await, ReleaseReply::Lost);
    // A fence of the old run with the new run's record is still another run.
    let mut mixed = claim.clone();
    mixed.run = old.run;
    assert_eq!(t.settle("w1", &done(&mixed)).await, SettleReply::Lost);
    assert_eq!(t.settle("w1", &done(&claim)).await, STORED);
}

// case 52
pub(crate) async fn a_released_task_is_lost_to_who_settles_late(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let old = t.one("w1").await;
    t.release("w1", &old).await;
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    let claim = t.one("w2").await;
    assert_eq!(claim.record.attempt, 2);
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    assert_eq!(t.settle("w1", &fail(&old)).await, SettleReply::Lost);
    assert_eq!(t.record(&id("x"), "a").await, "running 2 n 0 0");
    assert_eq!(t.claim_left(&claim).await, Some(1_000));
    assert_eq!(t.settle("w2", &done(&claim)).await, STORED);
}

// case 4
pub(crate) async fn a_reaped_task_is_lost_to_who_settles_late(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let old = t.one("w1").await;
    t.pass(TTL + 1);
    assert_eq!(t.tick().await.recovered.len(), 1);
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    assert_eq!(t.extend("w1", &old).await, Held::Lost);
    assert_eq!(t.claim_left(&old).await, None);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 1");
    let claim = t.one("w2").await;
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    assert_eq!(t.settle("w2", &then(&claim, &["b"])).await, STORED);
    assert_eq!(t.settle("w1", &done(&old)).await, SettleReply::Lost);
    assert_eq!(t.ready().await, ["x/b"]);
}

pub(crate) async fn an_expired_claim_that_nobody_reaped_may_still_settle(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.pass(TTL * 10);
    assert_eq!(t.claim_left(&claim).await, None);
    assert_eq!(t.settle("w1", &done(&claim)).await, STORED);
    assert!(t.tick().await.recovered.is_empty());
}

// case 72
pub(crate) async fn a_heartbeat_of_a_replaced_run_is_lost(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let old = t.one("w1").await;
    t.started(StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("x")
    })
    .await;
    assert_eq!(t.extend("w1", &old).await, Held::Lost);
    let claim = t.one("w2").await;
    assert_eq!(t.extend("w1", &old).await, Held::Lost);
    assert_eq!(t.extend("w2", &claim).await, Held::Ok);
}

pub(crate) async fn a_settlement_of_a_removed_instance_is_gone(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.cancel(&id("x")).await;
    t.pass(120_000);
    let tick = TickRequest {
        retention: Retention {
            cancelled: ms(0),
            ..Retention::default()
        },
        ..ticking()
    };
    assert_eq!(t.store.tick(tick).await.expect("a tick").pruned, 1);
    assert_eq!(t.settle("w1", &done(&claim)).await, SettleReply::Gone);
    assert_eq!(t.extend("w1", &claim).await, Held::Lost);
    assert_eq!(t.release("w1", &claim).await, ReleaseReply::Lost);
    assert_eq!(t.store.header(&id("x")).await.expect("a read"), None);
}

// case 44, 73
pub(crate) async fn a_settlement_after_a_cancel_is_refused_each_time(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.cancel(&id("x")).await;
    for _ in 0..2 {
        assert_eq!(
            t.settle("w1", &retry(&claim, 0)).await,
            SettleReply::Cancelled
        );
        assert_eq!(t.claim_left(&claim).await, None);
    }
    assert_eq!(t.settle("w1", &done(&claim)).await, SettleReply::Cancelled);
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Cancelled);
    assert_eq!(t.record(&id("x"), "a").await, "closed 1 n 0 0");
    assert!(t.ready().await.is_empty());
    assert!(t.store.running(p0(), 10).await.expect("a read").is_empty());
}

// case 46
pub(crate) async fn a_cancel_and_a_settlement_have_exactly_one_winner(on: On) {
    let t = on.store().await;
    for i in 0..50 {
        let item = t.started(item(&format!("x{i}"))).await;
        let claim = t.one("w1").await;
        let settlement = done(&claim);
        let (settled, cancelled) = tokio::join!(t.settle("w1", &settlement), t.cancel(&item.id));
        let status = t.snapshot(&item.id).await.header.status;
        let run = item.run;
        match status {
            Status::Completed => {
                assert_eq!(settled, STORED);
                assert_eq!(cancelled, ControlReply::Over { run, status });
            }
            Status::Cancelled => {
                assert_eq!(settled, SettleReply::Cancelled);
                assert_eq!(cancelled, ControlReply::Done { run });
            }
            other => panic!("{other}"),
        }
        let mut ended = 0;
        for status in [Status::Completed, Status::Cancelled] {
            let finished = t.store.finished(p0(), status, 0, 100).await;
            ended += finished
                .expect("a read")
                .iter()
                .filter(|f| f.id == item.id)
                .count();
        }
        assert_eq!(ended, 1);
    }
}
