use tenure::store::{SettleReply, Status};

use crate::{env::On, prelude::*};

const STORED: SettleReply = SettleReply::Stored { next: None };

// case 49
pub(crate) async fn a_join_fires_once_when_enough_have_arrived(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    t.settle("w1", &arrive(&claims[1], "j", 2, 2)).await;
    let join = t.snapshot(&id("x")).await.joins[&task("j")].clone();
    assert_eq!((join.arrived, join.fired), (1, false));
    assert_eq!((join.need, join.total, join.failed), (2, 2, 0));
    assert!(t.ready().await.is_empty());
    // A repeat arrives no second time.
    t.settle("w1", &arrive(&claims[1], "j", 2, 2)).await;
    assert!(t.ready().await.is_empty());
    t.settle("w1", &arrive(&claims[0], "j", 2, 2)).await;
    let snapshot = t.snapshot(&id("x")).await;
    let join = snapshot.joins[&task("j")].clone();
    assert_eq!((join.arrived, join.fired), (2, true));
    assert_eq!(join.who, [task("b"), task("a")]);
    assert_eq!(snapshot.open, 1);
    assert_eq!(t.ready().await, ["x/j"]);
    let joined = t.one("w1").await;
    assert_eq!(joined.input, None);
    t.settle("w1", &done(&joined)).await;
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Completed);
}

// case 70
pub(crate) async fn a_straggler_changes_nothing_but_its_own_record(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 3).await;
    t.settle("w1", &arrive(&claims[0], "j", 1, 3)).await;
    let joined = t.one("w2").await;
    t.settle("w1", &arrive(&claims[1], "j", 1, 3)).await;
    assert!(t.ready().await.is_empty());
    assert_eq!(t.record(&id("x"), "j").await, "running 1 n 0 0");
    assert_eq!(t.record(&id("x"), "b").await, "completed 1 n 0 0");
    t.settle("w2", &done(&joined)).await;
    let snapshot = t.snapshot(&id("x")).await;
    assert_eq!(
        (snapshot.header.status, snapshot.open),
        (Status::Running, 1)
    );
    t.settle("w1", &arrive(&claims[2], "j", 1, 3)).await;
    let snapshot = t.snapshot(&id("x")).await;
    assert_eq!(snapshot.header.status, Status::Completed);
    assert_eq!(snapshot.header.result, Some(output_of("j")));
    assert_eq!(snapshot.joins[&task("j")].arrived, 3);
    let finished = t.store.finished(p0(), Status::Completed, 0, 10).await;
    assert_eq!(finished.expect("a read").len(), 1);
}

pub(crate) async fn an_arrival_that_fires_can_be_claimed_at_once(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    let first = and_claim(arrive(&claims[0], "j", 2, 2));
    assert_eq!(t.settle("w1", &first).await, STORED);
    let second = and_claim(arrive(&claims[1], "j", 2, 2));
    let joined = t.settle_on("w1", &second).await;
    assert_eq!(joined.ticket.task, task("j"));
    assert!(t.ready().await.is_empty());
    // The repeat of each gets its own answer.
    assert_eq!(t.settle("w1", &first).await, STORED);
    assert_eq!(t.settle_on("w1", &second).await.record, joined.record);
    assert_eq!(t.settle("w1", &done(&joined)).await, STORED);
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Completed);
}

pub(crate) async fn a_straggler_of_a_finished_instance_is_refused(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    t.cancel(&id("x")).await;
    let late = t.settle("w1", &arrive(&claims[0], "j", 1, 2)).await;
    assert_eq!(late, SettleReply::Cancelled);
    let snapshot = t.snapshot(&id("x")).await;
    assert!(snapshot.joins.is_empty());
    assert_eq!(snapshot.tasks.len(), 2);
}
