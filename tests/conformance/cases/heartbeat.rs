use tenure::{
    engine::Limits,
    store::{Held, SettleReply},
};

use crate::{env::On, prelude::*};

// W28, case 9
pub(crate) async fn a_heartbeat_extends_the_claim(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    for _ in 0..15 {
        t.pass(TTL - 100);
        assert_eq!(t.claim_left(&claim).await, Some(100));
        assert_eq!(t.extend("w1", &claim).await, Held::Ok);
        assert_eq!(t.claim_left(&claim).await, Some(1_000));
        assert!(t.tick().await.recovered.is_empty());
    }
    assert!(t.claim("w2", 1).await.is_empty());
    assert_eq!(t.record(&id("x"), "a").await, "running 1 n 0 0");
}

pub(crate) async fn a_heartbeat_sets_an_expired_key_again(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.pass(TTL * 3);
    assert_eq!(t.claim_left(&claim).await, None);
    assert_eq!(t.extend("w1", &claim).await, Held::Ok);
    let key = t.store.claim_key(&id("x"), &task("a")).await;
    assert_eq!(key.expect("a read"), Some((worker("w1"), 1_000)));
    assert!(t.tick().await.recovered.is_empty());
}

// case 66
pub(crate) async fn a_claim_is_not_extended_beyond_its_deadline(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let limits = Limits {
        timeout: Some(ms(700)),
        deadline: None,
    };
    let claims = t.claim_with(&claiming_bounded("w1", limits)).await.claims;
    t.pass(600);
    assert_eq!(t.extend("w1", &claims[0]).await, Held::Ok);
    assert_eq!(t.claim_left(&claims[0]).await, Some(600));
    t.pass(599);
    assert_eq!(t.extend("w1", &claims[0]).await, Held::Ok);
    assert_eq!(t.claim_left(&claims[0]).await, Some(1));
    t.pass(1_000);
    // The worker may still settle; the key does not come back.
    assert_eq!(t.extend("w1", &claims[0]).await, Held::Ok);
    assert_eq!(t.claim_left(&claims[0]).await, None);
    let settled = t.settle("w1", &done(&claims[0])).await;
    assert_eq!(settled, SettleReply::Stored { next: None });
}

pub(crate) async fn a_heartbeat_learns_of_a_cancel(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.cancel(&id("x")).await;
    assert_eq!(t.extend("w1", &claim).await, Held::Cancelled);
    assert_eq!(t.extend("w1", &claim).await, Held::Cancelled);
}

// case 4
pub(crate) async fn a_heartbeat_learns_that_the_task_was_taken(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let old = t.claim("w1", 2).await;
    t.pass(TTL + 1);
    t.tick().await;
    let taken = t.claim("w2", 1).await;
    let replies = t.store.extend(extending("w1", &[&old[0], &old[1]])).await;
    assert_eq!(replies.expect("a heartbeat"), [Held::Lost, Held::Lost]);
    let waiting = old.iter().find(|c| c.ticket.task != taken[0].ticket.task);
    let waiting = waiting.expect("a task that nobody has");
    assert_eq!(t.claim_left(waiting).await, None);
    let key = t.store.claim_key(&id("x"), &taken[0].ticket.task).await;
    assert_eq!(key.expect("a read"), Some((worker("w2"), 1_000)));
}

pub(crate) async fn presence_tells_when_a_worker_was_last_heard_of(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claim = t.one("w1").await;
    let presence = async || {
        let presence = t.store.presence(p0(), &worker("w1")).await;
        presence.expect("a read")
    };
    assert_eq!(presence().await, None, "a claim is no heartbeat");
    t.extend("w1", &claim).await;
    for (passes, heard, overdue) in [(0, 0, false), (500, 500, false), (1, 501, true)] {
        t.pass(passes);
        let seen = presence().await.expect("it holds");
        assert_eq!((seen.ttl, seen.heard), (ms(TTL), ms(heard)));
        assert_eq!(seen.is_overdue(), overdue, "{heard} ms");
    }
    t.extend("w1", &claim).await;
    assert_eq!(presence().await.map(|seen| seen.heard), Some(ms(0)));
    t.pass(TTL + 1);
    assert_eq!(presence().await, None);
    let other = t.store.presence(p0(), &worker("w2")).await;
    assert_eq!(other.expect("a read"), None);
}
