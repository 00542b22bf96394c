use tenure::store::{KeeperRole, ReleaseReply, ReleaseRequest, SettleReply, TickRequest};

use crate::{env::On, prelude::*};

pub(crate) async fn released_tasks_are_at_the_head_in_their_order(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 2).await;
    let request = releasing("w1", &[&claims[0], &claims[1]]);
    let replies = t.store.release(request).await.expect("a release");
    assert_eq!(replies, [ReleaseReply::Released, ReleaseReply::Released]);
    assert_eq!(t.ready().await, ["x/a", "x/b", "x/c"]);
    assert!(t.store.running(p0(), 10).await.expect("a read").is_empty());
}

pub(crate) async fn a_release_counts_neither_failure_nor_crash(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    assert_eq!(t.release("w1", &claim).await, ReleaseReply::Released);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 - 0 0");
    assert_eq!(t.claim_left(&claim).await, None);
    assert_eq!(t.one("w2").await.record.attempt, 2);
    assert!(t.store.errors(&id("x")).await.expect("a read").is_empty());
}

// case 55
pub(crate) async fn a_repeated_release_is_lost(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.release("w1", &claim).await;
    assert_eq!(t.release("w1", &claim).await, ReleaseReply::Lost);
    assert_eq!(t.ready().await, ["x/a"]);
    let other = t.one("w2").await;
    assert_eq!(t.release("w1", &claim).await, ReleaseReply::Lost);
    assert_eq!(t.claim_left(&other).await, Some(1_000));
    let settled = t.settle("w2", &done(&other)).await;
    assert_eq!(settled, SettleReply::Stored { next: None });
    assert_eq!(t.release("w2", &other).await, ReleaseReply::Cancelled);
}

// W50
pub(crate) async fn a_release_of_a_cancelled_instance_drops_the_claim(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.cancel(&id("x")).await;
    assert_eq!(t.release("w1", &claim).await, ReleaseReply::Cancelled);
    assert_eq!(t.claim_left(&claim).await, None);
    assert!(t.ready().await.is_empty());
    assert_eq!(t.store.counts(p0()).await.expect("a read").running, 0);
}

pub(crate) async fn who_leaves_gives_up_presence_and_keeper_role(on: On) {
    let t = on.store().await;
    let tick = |who: &str| TickRequest {
        keeper: Some((worker(who), ms(60_000))),
        ..ticking()
    };
    t.started(item("x")).await;
    t.show("w1").await;
    t.store.tick(tick("w1")).await.expect("a tick");
    t.one("w1").await;
    let leave = ReleaseRequest {
        leave: true,
        ..releasing("w1", &[])
    };
    t.store.release(leave).await.expect("a release");
    let reply = t.store.tick(tick("w2")).await.expect("a tick");
    assert_eq!(reply.role, KeeperRole::Keeper);
    // It did not give its task back: that is a crash, not a doubt.
    t.pass(TTL + 1);
    assert_eq!(t.tick().await.recovered.len(), 1);
    // Who is not keeper takes nothing from the one who is.
    let leave = ReleaseRequest {
        leave: true,
        ..releasing("w1", &[])
    };
    t.store.release(leave).await.expect("a release");
    let reply = t.store.tick(tick("w1")).await.expect("a tick");
    assert_eq!(reply.role, KeeperRole::Other);
}
