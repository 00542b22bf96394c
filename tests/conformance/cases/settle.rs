use std::time::Duration;

use tenure::{
    engine::{FollowUp, Limits, Next},
    ids::InputRef,
    store::{ClaimNext, ErrorRecord, SettleReply, Settlement, Status, TaskState, Verdict},
};

use crate::{env::On, prelude::*};

const STORED: SettleReply = SettleReply::Stored { next: None };

// W42, W47, W48
pub(crate) async fn a_chain_ends_with_the_result_of_its_last_task(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let a = t.one("w1").await;
    assert_eq!(t.settle("w1", &then(&a, &["b"])).await, STORED);
    assert_eq!(t.claim_left(&a).await, None);
    let b = t.one("w2").await;
    assert_eq!(b.input, Some(OUTPUT));
    assert_eq!(t.snapshot(&item.id).await.open, 1);
    t.pass(7);
    assert_eq!(t.settle("w2", &done(&b)).await, STORED);
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!(snapshot.header.status, Status::Completed);
    assert_eq!(snapshot.header.result, Some(output_of("b")));
    assert_eq!((snapshot.open, snapshot.finished_at), (0, Some(t.now())));
    assert_eq!(t.record(&item.id, "a").await, "completed 1 n 0 0");
    let counts = t.store.counts(p0()).await.expect("a read");
    assert_eq!(counts.finished[&Status::Completed], 1);
    assert_eq!((counts.running, counts.ready.len()), (0, 0));
}

// case 55
pub(crate) async fn a_repeated_settlement_is_stored_with_the_same_follow_up_claim(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    let settlement = and_claim(then(&a, &["b"]));
    let first = t.settle("w1", &settlement).await;
    let before = t.snapshot(&id("x")).await;
    assert_eq!(t.settle("w1", &settlement).await, first);
    assert_eq!(t.snapshot(&id("x")).await, before);
    // Another worker's word for it is not enough to get the claim.
    assert_eq!(t.settle("w2", &settlement).await, STORED);
    let SettleReply::Stored { next: Some(b) } = first else {
        panic!("{first:?}")
    };
    // Once the follow-up is settled there is no claim to tell of.
    assert_eq!(t.settle("w1", &then(&b, &["c"])).await, STORED);
    assert_eq!(t.settle("w1", &settlement).await, STORED);
    assert_eq!(t.ready().await, ["x/c"]);
}

// case 53, 55
pub(crate) async fn a_repeat_after_completion_is_still_stored(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    assert_eq!(t.settle("w1", &done(&a)).await, STORED);
    let before = t.snapshot(&id("x")).await;
    t.pass(100);
    assert_eq!(t.settle("w1", &done(&a)).await, STORED);
    assert_eq!(t.snapshot(&id("x")).await, before);
    let counts = t.store.counts(p0()).await.expect("a read");
    assert_eq!(counts.finished[&Status::Completed], 1);

    t.started(item("y")).await;
    let a = t.one("w1").await;
    assert_eq!(t.settle("w1", &fail(&a)).await, STORED);
    assert_eq!(t.settle("w1", &fail(&a)).await, STORED);
    assert_eq!(t.store.errors(&id("y")).await.expect("a read").len(), 1);
}

pub(crate) async fn a_follow_up_is_claimed_in_the_same_transition(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    let limits = Limits {
        timeout: Some(Duration::from_secs(2)),
        deadline: Some(Duration::from_secs(1)),
    };
    let bounded = Next {
        limits,
        ..next("b", of_output(&task("a")))
    };
    let settlement = and_claim(completed(&a, vec![FollowUp::Ready(bounded)]));
    t.pass(3);
    let b = t.settle_on("w1", &settlement).await;
    assert_eq!(b.ticket.task, task("b"));
    assert_eq!((b.input.as_ref(), b.now), (None, t.now()));
    assert_eq!(b.record.state, TaskState::Running);
    assert_eq!(b.record.nonce, settlement.claim_next.map(|c| c.nonce));
    assert_eq!(b.overall, Some(t.now().plus(Duration::from_secs(1))));
    assert_eq!(b.record.deadline, b.overall);
    assert_eq!(t.snapshot(&id("x")).await.tasks[&task("b")], b.record);
    assert_eq!(t.claim_left(&b).await, Some(1_000));
    assert!(t.ready().await.is_empty());
    let running = t.store.running(p0(), 10).await.expect("a read");
    assert_eq!(running, std::slice::from_ref(&b.ticket));
    assert_eq!(t.settle("w1", &done(&b)).await, STORED);
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Completed);
}

pub(crate) async fn a_follow_up_is_not_claimed_past_others_when_fairness_is_asked_for(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    let fair = |settlement: Settlement| Settlement {
        claim_next: settlement.claim_next.map(|c| ClaimNext {
            only_if_empty: true,
            ..c
        }),
        ..settlement
    };
    let b = t.settle_on("w1", &fair(and_claim(then(&a, &["b"])))).await;
    t.started(item("y")).await;
    let settlement = fair(and_claim(then(&b, &["c"])));
    assert_eq!(t.settle("w1", &settlement).await, STORED);
    assert_eq!(t.ready().await, ["y/a", "x/c"]);
    // Nor past what the same settlement put there before it.
    let (a, _c) = (t.one("w1").await, t.one("w1").await);
    let mut settlement = fair(and_claim(then(&a, &["b1", "b2"])));
    settlement.claim_next = settlement
        .claim_next
        .map(|c| ClaimNext { follow_up: 1, ..c });
    assert_eq!(t.settle("w1", &settlement).await, STORED);
    assert_eq!(t.ready().await, ["y/b1", "y/b2"]);
}

// W35, W36
pub(crate) async fn a_retry_is_delayed_and_counts_a_failure(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    assert_eq!(t.settle("w1", &retry(&a, 100)).await, STORED);
    assert_eq!(t.record(&id("x"), "a").await, "delayed 1 n 1 0");
    assert_eq!(t.claim_left(&a).await, None);
    let errors = t.store.errors(&id("x")).await.expect("a read");
    assert_eq!(errors, [error(&a, "not yet")]);
    assert_eq!(t.settle("w1", &retry(&a, 100)).await, STORED);
    assert_eq!(t.store.errors(&id("x")).await.expect("a read").len(), 1);
    assert!(t.claim("w1", 1).await.is_empty());
    t.pass(100);
    assert_eq!(t.tick().await.promoted, 1);
    // Also after the promotion, until the next claim.
    assert_eq!(t.settle("w1", &retry(&a, 100)).await, STORED);
    let again = t.one("w2").await;
    assert_eq!((again.record.attempt, again.record.failures), (2, 1));
    assert_eq!(t.settle("w1", &retry(&a, 100)).await, SettleReply::Lost);
    assert_eq!(t.snapshot(&id("x")).await.open, 1);
}

// case 13
pub(crate) async fn a_retry_without_delay_is_ready_at_once(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    assert_eq!(t.settle("w1", &retry(&a, 0)).await, STORED);
    assert_eq!(t.record(&id("x"), "a").await, "ready 1 n 1 0");
    assert_eq!(t.one("w2").await.record.attempt, 2);
}

// W38, W39, case 48
pub(crate) async fn a_failure_for_good_ends_the_instance_and_closes_its_tasks(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 2).await;
    assert_eq!(t.settle("w1", &fail(&claims[0])).await, STORED);
    let snapshot = t.snapshot(&id("x")).await;
    assert_eq!(snapshot.header.status, Status::Failed);
    assert_eq!(snapshot.header.error, Some(error(&claims[0], "no\nhope")));
    assert_eq!(snapshot.finished_at, Some(t.now()));
    assert_eq!(t.record(&id("x"), "a").await, "failed 1 n 1 0");
    assert_eq!(t.record(&id("x"), "b").await, "closed 1 n 0 0");
    assert_eq!(t.record(&id("x"), "c").await, "closed 0 - 0 0");
    let late = t.settle("w1", &done(&claims[1])).await;
    assert_eq!(late, SettleReply::Cancelled);
    assert!(t.claim("w1", 1).await.is_empty());
}

pub(crate) async fn only_the_newest_errors_are_kept(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    for _ in 0..=ErrorRecord::KEPT {
        let a = t.one("w1").await;
        t.settle("w1", &retry(&a, 0)).await;
    }
    let errors = t.store.errors(&id("x")).await.expect("a read");
    let attempts: Vec<u32> = errors.iter().map(|e| e.attempt).collect();
    assert_eq!(attempts, (2..=21).rev().collect::<Vec<_>>());
}

// case 10, 49
pub(crate) async fn a_delayed_follow_up_is_promoted_when_it_is_due(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let a = t.one("w1").await;
    let after = |name: &str, delay| FollowUp::After {
        next: next(name, of_output(&task("a"))),
        delay: ms(delay),
    };
    let settlement = completed(&a, vec![after("b", 200), after("c", 0)]);
    t.settle("w1", &settlement).await;
    assert_eq!(t.record(&id("x"), "b").await, "delayed 0 - 0 0");
    assert_eq!(t.ready().await, ["x/c"]);
    assert_eq!(t.snapshot(&id("x")).await.open, 2);
    assert_eq!(t.tick().await.next_due, Some(t.now().plus(ms(200))));
    let no_key = t.store.claim_key(&id("x"), &task("b")).await;
    assert_eq!(no_key.expect("a read"), None);
    t.pass(200);
    assert_eq!(t.tick().await.promoted, 1);
    assert_eq!(t.ready().await, ["x/c", "x/b"]);
}

pub(crate) async fn items_of_one_call_apply_one_after_another(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    let nothing = |c| Settlement {
        verdict: Verdict::Completed {
            output: None,
            follow_ups: Vec::new(),
        },
        ..done(c)
    };
    let repeated = vec![
        nothing(&claims[0]),
        nothing(&claims[0]),
        nothing(&claims[1]),
    ];
    let replies = t.settle_all("w1", repeated).await;
    assert_eq!(replies, [STORED, STORED, STORED]);
    let snapshot = t.snapshot(&id("x")).await;
    assert_eq!(snapshot.header.status, Status::Completed);
    assert_eq!(snapshot.values.len(), 1);

    t.started(item_with("y", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    let join = next("j", InputRef::Join);
    let arrive = |c| {
        let next = join.clone();
        completed(
            c,
            vec![FollowUp::Arrive {
                next,
                need: 2,
                total: 2,
            }],
        )
    };
    let replies = t
        .settle_all("w1", vec![fail(&claims[0]), arrive(&claims[1])])
        .await;
    assert_eq!(replies, [STORED, SettleReply::Cancelled]);
}
