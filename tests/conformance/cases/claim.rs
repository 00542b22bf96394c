use bytes::Bytes;
use tenure::{
    engine::Limits,
    store::{ClaimRequest, StartItem, memory::Damage},
};

use crate::{env::On, prelude::*};

// W21, W24
pub(crate) async fn tasks_are_claimed_from_the_head_with_their_input(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    t.started(item("y")).await;
    t.pass(5);
    let request = claiming("w1", 1);
    let reply = t.claim_with(&request).await;
    let [claim] = &reply.claims[..] else {
        panic!("{reply:?}")
    };
    assert_eq!((&claim.ticket.id, claim.run), (&first.id, first.run));
    assert_eq!(claim.input.as_ref(), Some(&first.input));
    assert_eq!(claim.record.attempt, 1);
    assert_eq!(claim.record.nonce, Some(request.nonce));
    assert_eq!(claim.record.worker, Some(worker("w1")));
    assert_eq!((claim.record.deadline, claim.overall), (None, None));
    assert_eq!(claim.now, t.now());
    assert_eq!((reply.again, reply.parked), (false, false));
    let snapshot = t.snapshot(&first.id).await;
    assert_eq!(snapshot.tasks[&task("a")], claim.record);
    assert_eq!(snapshot.started_at, Some(t.now()));
    assert_eq!(t.claim_left(claim).await, Some(1_000));
    assert_eq!(t.ready().await, ["y/a"]);
}

pub(crate) async fn a_claim_takes_no_more_than_it_wants_and_looks_into_lists_in_order(on: On) {
    let t = on.store().await;
    for (name, queue) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        t.started(item_in(name, queue)).await;
    }
    let lists = vec![list_of("b"), list_of("a")];
    let request = ClaimRequest {
        lists,
        ..claiming("w1", 3)
    };
    let claims = t.claim_with(&request).await.claims;
    let names: Vec<&str> = claims.iter().map(|c| c.ticket.id.as_str()).collect();
    assert_eq!(names, ["b1", "b2", "a1"]);
    assert!(t.claim("w1", 3).await.is_empty());
}

// case 55
pub(crate) async fn a_repeated_claim_gets_the_same_tasks_again(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let request = claiming("w1", 2);
    let first = t.claim_with(&request).await;
    t.started(item("y")).await;
    assert_eq!(t.claim_with(&request).await.claims, first.claims);
    assert_eq!(t.ready().await, ["y/a"]);
    // What was settled meanwhile is not told again.
    t.settle("w1", &then(&first.claims[0], &[])).await;
    assert_eq!(t.claim_with(&request).await.claims, first.claims[1..]);
    assert_eq!(t.record(&id("x"), "b").await, "running 1 n 0 0");
    // A new call is a new claim, and the old nonce is forgotten with it.
    assert_eq!(t.claim("w1", 2).await[0].ticket.id, id("y"));
}

pub(crate) async fn an_entry_that_stands_twice_is_one_task(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let tickets = t.store.ready(p0(), &list(), 2).await.expect("a read");
    for ticket in tickets.iter().chain(&tickets) {
        t.repeat_entry(ticket);
    }
    let request = claiming("w1", 9);
    let claims = t.claim_with(&request).await.claims;
    let names: Vec<&str> = claims.iter().map(|c| c.ticket.task.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(t.claim_with(&request).await.claims, claims);
    assert!(t.ready().await.is_empty());
}

pub(crate) async fn an_entry_of_a_task_that_is_not_ready_is_dropped(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let claimed = t.one("w1").await;
    let dropped = async |record: &str| {
        t.repeat_entry(&claimed.ticket);
        assert!(t.claim("w2", 1).await.is_empty());
        assert!(t.ready().await.is_empty());
        assert_eq!(t.record(&id("x"), "a").await, record);
    };
    dropped("running 1 n 0 0").await;
    t.settle("w1", &retry(&claimed, 500)).await;
    dropped("delayed 1 n 1 0").await;
    t.pass(500);
    t.tick().await;
    let again = t.one("w1").await;
    t.settle("w1", &then(&again, &["b"])).await;
    t.repeat_entry(&claimed.ticket);
    assert_eq!(t.one("w2").await.ticket.task, task("b"));
    assert_eq!(t.record(&id("x"), "a").await, "completed 2 n 1 0");
}

// case 76
pub(crate) async fn inputs_that_do_not_fit_the_reply_are_left_out(on: On) {
    let t = on.store().await;
    let sized = |name: &str, len: usize| {
        let input = Bytes::from(vec![7; len]);
        let first = vec![tenure::engine::FollowUp::Ready(next("a", of_input(&input)))];
        StartItem {
            input,
            first,
            ..item(name)
        }
    };
    t.started(sized("half", 200 * 1024)).await;
    t.started(sized("too-much", 100 * 1024)).await;
    t.started(sized("fits", 56 * 1024)).await;
    let claims = t.claim("w1", 3).await;
    let sizes: Vec<_> = claims
        .iter()
        .map(|c| c.input.as_ref().map(Bytes::len))
        .collect();
    assert_eq!(sizes, [Some(200 * 1024), None, Some(56 * 1024)]);
}

// W25
pub(crate) async fn deadlines_are_written_down_before_the_task_runs(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let limits = Limits {
        timeout: Some(ms(300)),
        deadline: Some(ms(500)),
    };
    let claims = t.claim_with(&claiming_bounded("w1", limits)).await.claims;
    assert_eq!(claims[0].record.deadline, Some(t.now().plus(ms(300))));
    assert_eq!(claims[0].overall, Some(t.now().plus(ms(500))));
    let stored = t.snapshot(&id("x")).await.tasks[&task("a")].clone();
    assert_eq!(stored, claims[0].record);
}

// W26
pub(crate) async fn the_overall_deadline_counts_from_the_first_claim(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    let limits = Limits {
        timeout: Some(ms(300)),
        deadline: Some(ms(500)),
    };
    let first = t.claim_with(&claiming_bounded("w1", limits)).await.claims;
    t.settle("w1", &retry(&first[0], 0)).await;
    t.pass(400);
    let second = t.claim_with(&claiming_bounded("w1", limits)).await.claims;
    assert_eq!(second[0].overall, first[0].overall);
    assert_eq!(second[0].record.deadline, first[0].overall);
    // Claimed all the same when it has passed: the engine says what that means.
    t.settle("w1", &retry(&second[0], 0)).await;
    t.pass(400);
    let third = t.claim_with(&claiming_bounded("w1", limits)).await.claims;
    assert_eq!(third[0].record.deadline, first[0].overall);
    assert_eq!(third[0].record.attempt, 3);
}

// case 60
pub(crate) async fn entries_of_finished_instances_are_dropped_in_bounded_batches(on: On) {
    let t = on.store().await;
    for i in 0..100 {
        let item = t.started(item(&format!("gone-{i}"))).await;
        t.cancel(&item.id).await;
    }
    t.started(item("x")).await;
    let reply = t.claim_with(&claiming("w1", 1)).await;
    assert_eq!((reply.claims.len(), reply.again), (0, true));
    assert_eq!(t.ready().await.len(), 36);
    let reply = t.claim_with(&claiming("w1", 1)).await;
    assert_eq!((reply.claims.len(), reply.again), (1, false));
    assert!(t.ready().await.is_empty());
}

// case 50
pub(crate) async fn an_unreadable_record_is_set_aside_and_stops_nobody(on: On) {
    let t = on.store().await;
    let names = ["newer", "garbled", "foreign", "x"];
    for name in names {
        t.started(item(name)).await;
    }
    t.damage(&id("newer"), Damage::Format("2".into()));
    t.damage(&id("garbled"), Damage::Task(task("a"), "ready".into()));
    t.damage(&id("foreign"), Damage::Foreign);
    let reply = t.claim_with(&claiming("w1", 4)).await;
    let claimed: Vec<_> = reply.claims.iter().map(|c| c.ticket.id.as_str()).collect();
    assert_eq!(claimed, ["x"]);
    let aside: Vec<_> = reply.aside.iter().map(|a| a.reason.as_str()).collect();
    let reasons = [
        "unknown format 2",
        "the task record cannot be read",
        "the key does not hold a snapshot",
    ];
    assert_eq!(aside, reasons);
    assert!(reply.aside[0].ticket.contains("newer"));
    assert_eq!(t.store.counts(p0()).await.expect("a read").aside, 3);
    assert!(t.ready().await.is_empty());
}

// case 33, 34
pub(crate) async fn payloads_are_the_same_bytes_through_retries(on: On) {
    let t = on.store().await;
    let mut nested = vec![0x91; 64];
    nested.push(0xc0);
    let payloads = [
        (0..=255).collect::<Vec<u8>>(),
        nested,
        b"\x83\xa1a\x90\xa1m\x80\xa1n\xc0".to_vec(),
    ];
    for (i, payload) in payloads.into_iter().enumerate() {
        let payload = Bytes::from(payload);
        let first = vec![tenure::engine::FollowUp::Ready(next(
            "a",
            of_input(&payload),
        ))];
        let item = StartItem {
            input: payload.clone(),
            meta: Some(payload.clone()),
            first,
            ..item(&format!("x{i}"))
        };
        t.started(item.clone()).await;
        let claim = t.one("w1").await;
        assert_eq!(claim.input.as_ref(), Some(&payload));
        t.settle("w1", &retry(&claim, 10)).await;
        t.pass(10);
        t.tick().await;
        let claim = t.one("w2").await;
        assert_eq!(claim.input.as_ref(), Some(&payload));
        let mut settlement = done(&claim);
        settlement.verdict = tenure::store::Verdict::Completed {
            output: Some(payload.clone()),
            follow_ups: Vec::new(),
        };
        t.settle("w2", &settlement).await;
        let fields = [tenure::ids::ValueField::Input, output_of("a")];
        let values = t.store.values(&item.id, item.run, &fields).await;
        let expected = [Some(payload.clone()), Some(payload.clone())];
        assert_eq!(values.expect("a read"), expected);
        assert_eq!(t.snapshot(&item.id).await.meta, Some(payload));
    }
}
