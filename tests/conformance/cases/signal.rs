use bytes::Bytes;
use tenure::{
    ids::{InputRef, Purpose, RunId, SignalId, SignalName, Ticket},
    store::{
        ClaimRequest, Claimed, Hint, IdPolicy, Parking, Recovery, SettleReply, Settlement,
        SignalReply, SignalRequest, StartItem, Status, StoreError, Verdict, memory::Damage,
    },
};

use crate::{
    env::{Env, On},
    prelude::*,
};

const STORED: SettleReply = SettleReply::Stored { next: None };

/// An instance whose task `a` is done and whose node `wait` waits for `go`.
async fn waits(t: &Env, name: &str, timeout: Option<i64>) -> StartItem {
    let item = t.started(awaiting(name, &["go", "other"])).await;
    let claim = t.one("w1").await;
    let settlement = completed(&claim, vec![waiting("wait", "go", timeout)]);
    assert_eq!(t.settle("w1", &settlement).await, STORED);
    item
}

/// Ends an instance whose node `wait` is claimed with its signal.
async fn finish(t: &Env, claimed: &Claimed) {
    let result = output_of("wait");
    let end = tenure::engine::FollowUp::End { result };
    assert_eq!(t.settle("w1", &passed(claimed, vec![end])).await, STORED);
    let snapshot = t.snapshot(&claimed.ticket.id).await;
    assert_eq!(snapshot.header.status, Status::Completed);
}

fn name(text: &str) -> SignalName {
    SignalName::new(text).expect("a name")
}

pub(crate) async fn a_waiting_node_is_ready_with_its_signal(on: On) {
    let t = on.store().await;
    let item = waits(&t, "x", None).await;
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!((snapshot.open, snapshot.waits.len()), (1, 1));
    assert_eq!(snapshot.waits[0].signal, name("go"));
    assert_eq!(snapshot.waits[0].task, task("wait"));
    assert_eq!(snapshot.signals, [name("go"), name("other")]);
    assert_eq!(t.waiting().await, ["x"]);
    assert!(t.ready().await.is_empty());
    let accepted = t.signal(&signal("x", "go", b"\xa3yes")).await;
    assert_eq!(accepted, SignalReply::Accepted { run: item.run });
    assert!(t.waiting().await.is_empty());
    assert_eq!(t.record(&item.id, "wait").await, "ready 0 - 0 0");
    assert!(t.snapshot(&item.id).await.waits.is_empty());
    let claim = t.one("w1").await;
    assert_eq!(claim.input.as_deref(), Some(&b"\xa3yes"[..]));
    assert_eq!(claim.ticket.input, signalled("wait", 4));
    assert_eq!(claim.ticket.purpose, Purpose::Run);
    finish(&t, &claim).await;
}

// case 23 is this one, with a subscriber that is away: what decides is stored
pub(crate) async fn a_signal_that_comes_early_is_kept_and_taken_in_order(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go", "other"])).await;
    let sent = [
        signal("x", "go", b"\x01"),
        signal("x", "other", b"\x0a"),
        signal("x", "go", b"\x02"),
    ];
    for signal in &sent {
        t.signalled(signal).await;
    }
    let early = t.snapshot(&item.id).await.early;
    let ids: Vec<_> = early.iter().map(|early| &early.id).collect();
    assert_eq!(ids, [&sent[0].signal, &sent[1].signal, &sent[2].signal]);
    assert_eq!((early[1].name.clone(), early[1].len), (name("other"), 1));
    assert!(t.waiting().await.is_empty());
    let claim = t.one("w1").await;
    t.settle("w1", &completed(&claim, vec![waiting("b", "go", Some(5))]))
        .await;
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
    assert_eq!(t.ready().await, ["x/b"]);
    let first = t.one("w1").await;
    assert_eq!(first.input.as_deref(), Some(&b"\x01"[..]));
    assert_eq!(t.snapshot(&item.id).await.early.len(), 2);
    t.settle("w1", &passed(&first, vec![waiting("c", "go", None)]))
        .await;
    let second = t.one("w1").await;
    assert_eq!(second.input.as_deref(), Some(&b"\x02"[..]));
    let rest = t.snapshot(&item.id).await.early;
    assert_eq!((rest.len(), rest[0].name.clone()), (1, name("other")));
    t.settle("w1", &passed(&second, vec![waiting("wait", "other", None)]))
        .await;
    let third = t.one("w1").await;
    assert_eq!(third.input.as_deref(), Some(&b"\x0a"[..]));
    assert!(t.snapshot(&item.id).await.early.is_empty());
    finish(&t, &third).await;
}

// case 63
pub(crate) async fn two_waits_for_one_name_are_served_in_the_order_of_their_waiting(on: On) {
    let t = on.store().await;
    let both = StartItem {
        signals: vec![name("go")],
        ..item_with("x", &["a", "b"])
    };
    t.started(both).await;
    let claims = t.claim("w1", 2).await;
    t.settle(
        "w1",
        &completed(&claims[1], vec![waiting("second", "go", None)]),
    )
    .await;
    t.settle(
        "w1",
        &completed(&claims[0], vec![waiting("first", "go", None)]),
    )
    .await;
    assert_eq!(t.waiting().await, ["x"]);
    t.signalled(&signal("x", "go", b"\x01")).await;
    assert_eq!(t.ready().await, ["x/second"]);
    assert_eq!(t.waiting().await, ["x"], "one of two still waits");
    t.signalled(&signal("x", "go", b"\x02")).await;
    assert_eq!(t.ready().await, ["x/second", "x/first"]);
    assert!(t.waiting().await.is_empty());
    t.signalled(&signal("x", "go", b"\x03")).await;
    let inputs: Vec<_> = t
        .claim("w1", 3)
        .await
        .into_iter()
        .map(|c| c.input)
        .collect();
    let bytes = |b: &'static [u8]| Some(Bytes::from_static(b));
    assert_eq!(inputs, [bytes(b"\x01"), bytes(b"\x02")]);
    assert_eq!(t.snapshot(&id("x")).await.early.len(), 1);
}

// case 55
pub(crate) async fn a_repeated_signal_counts_once_wherever_the_first_is(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go"])).await;
    let accepted = SignalReply::Accepted { run: item.run };
    let early = signal("x", "go", b"\x01");
    for _ in 0..2 {
        assert_eq!(t.signal(&early).await, accepted);
    }
    assert_eq!(t.snapshot(&item.id).await.early.len(), 1);
    let claim = t.one("w1").await;
    t.settle("w1", &completed(&claim, vec![waiting("b", "go", None)]))
        .await;
    assert_eq!(t.signal(&early).await, accepted);
    let taken = t.one("w1").await;
    assert_eq!(t.signal(&early).await, accepted);
    t.settle("w1", &passed(&taken, vec![waiting("wait", "go", None)]))
        .await;
    assert_eq!(t.signal(&early).await, accepted);
    assert_eq!(t.waiting().await, ["x"]);
    let awaited = signal("x", "go", b"\x02");
    for _ in 0..2 {
        assert_eq!(t.signal(&awaited).await, accepted);
    }
    let claim = t.one("w1").await;
    finish(&t, &claim).await;
    assert!(t.snapshot(&item.id).await.early.is_empty());
    // Whatever became of the instance since.
    assert_eq!(t.signal(&awaited).await, accepted);
    let over = t.signal(&signal("x", "go", b"\x03")).await;
    let (run, status) = (item.run, Status::Completed);
    assert_eq!(over, SignalReply::Over { run, status });
}

pub(crate) async fn signals_that_cannot_be_taken_are_refused_with_the_reason(on: On) {
    let t = on.store_with(1, 100).await;
    let to_nobody = t.signal(&signal("nobody", "go", b"\x01")).await;
    assert_eq!(to_nobody, SignalReply::NotFound);
    let item = waits(&t, "x", None).await;
    let awaited = vec![name("go"), name("other")];
    let unknown = t.signal(&signal("x", "gone", b"\x01")).await;
    assert_eq!(unknown, SignalReply::NotAwaited { awaited });
    t.started(awaiting("plain", &[])).await;
    let awaited = Vec::new();
    let none = t.signal(&signal("plain", "go", b"\x01")).await;
    assert_eq!(none, SignalReply::NotAwaited { awaited });
    let of_another_run = SignalRequest {
        run: Some(RunId::unique()),
        ..signal("x", "go", b"\x01")
    };
    let run = item.run;
    let reply = t.signal(&of_another_run).await;
    assert_eq!(reply, SignalReply::Replaced { run });
    let large = SignalRequest {
        payload: Bytes::from(vec![0; 101]),
        ..signal("x", "go", b"")
    };
    let refused = t.store.signal(large).await;
    assert!(
        matches!(
            refused,
            Err(StoreError::TooLarge {
                size: 101,
                limit: 100,
                ..
            })
        ),
        "{refused:?}"
    );
    t.cancel(&item.id).await;
    let status = Status::Cancelled;
    let over = t.signal(&signal("x", "go", b"\x01")).await;
    assert_eq!(over, SignalReply::Over { run, status });
    assert!(t.snapshot(&item.id).await.early.is_empty());
    t.damage(&id("plain"), Damage::Format("2".into()));
    let newer = t.store.signal(signal("plain", "go", b"\x01")).await;
    assert!(matches!(newer, Err(StoreError::Format { .. })), "{newer:?}");
}

pub(crate) async fn no_more_than_a_thousand_early_signals_are_kept(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go", "other"])).await;
    let first = signal("x", "go", b"\x01");
    t.signalled(&first).await;
    for _ in 1..SignalRequest::MAX_EARLY {
        t.signalled(&signal("x", "go", b"\x02")).await;
    }
    let over = signal("x", "other", b"\x03");
    assert_eq!(t.signal(&over).await, SignalReply::Full);
    let early = t.snapshot(&item.id).await.early;
    assert_eq!((early.len(), &early[0].id), (1000, &first.signal));
    // A repeat of one that is kept is no new one; one that is awaited needs no place.
    t.signalled(&first).await;
    let claim = t.one("w1").await;
    let both = vec![waiting("b", "other", None), waiting("c", "go", None)];
    t.settle("w1", &completed(&claim, both)).await;
    t.signalled(&over).await;
    t.signalled(&signal("x", "other", b"\x04")).await;
    assert_eq!(t.snapshot(&item.id).await.early.len(), 1000);
}

pub(crate) async fn the_ids_of_a_thousand_signals_are_remembered(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go"])).await;
    let mut claim = t.one("w1").await;
    let numbered = |number: usize| SignalRequest {
        signal: SignalId::new(format!("{number:064}")).expect("an id"),
        ..signal("x", "go", b"\x01")
    };
    for number in 0..1010 {
        let node = format!("n{number}");
        let waits = waiting(&node, "go", None);
        let settlement = if number == 0 {
            completed(&claim, vec![waits])
        } else {
            passed(&claim, vec![waits])
        };
        t.settle("w1", &settlement).await;
        t.signalled(&numbered(number)).await;
        claim = t.one("w1").await;
    }
    let early = async || t.snapshot(&item.id).await.early.len();
    for number in 10..1010 {
        t.signalled(&numbered(number)).await;
    }
    assert_eq!(early().await, 0, "all of the last thousand are known");
    t.signalled(&numbered(0)).await;
    assert_eq!(early().await, 1, "the oldest is not");
}

pub(crate) async fn a_wait_that_takes_too_long_is_ready_for_the_engine(on: On) {
    let t = on.store().await;
    let item = waits(&t, "x", Some(50)).await;
    let delayed = t.store.delayed(p0(), 10).await.expect("a read");
    assert_eq!(delayed.len(), 1);
    assert_eq!(delayed[0].1, t.now().plus(ms(50)));
    t.pass(49);
    assert_eq!(t.tick().await.promoted, 0);
    assert_eq!(t.waiting().await, ["x"]);
    t.pass(1);
    assert_eq!(t.tick().await.promoted, 1);
    assert!(t.waiting().await.is_empty());
    assert!(t.snapshot(&item.id).await.waits.is_empty());
    let claim = t.one("w1").await;
    assert_eq!(claim.ticket.purpose, Purpose::TimedOut);
    assert_eq!((claim.record.attempt, &claim.input), (1, &None));
    // Tried again, it is an entry like any other.
    t.settle("w1", &retry(&claim, 0)).await;
    let claim = t.one("w1").await;
    assert_eq!(claim.ticket.purpose, Purpose::Run);
    assert_eq!(
        (claim.record.attempt, claim.input.as_deref()),
        (2, Some(b"".as_slice()))
    );
    // It goes on with nothing, or fails: here it fails.
    t.settle("w1", &fail(&claim)).await;
    let header = t.snapshot(&item.id).await.header;
    assert_eq!(header.status, Status::Failed);
}

pub(crate) async fn the_first_of_a_signal_and_its_timeout_wins(on: On) {
    let t = on.store().await;
    waits(&t, "x", Some(50)).await;
    let late = waits(&t, "y", Some(50)).await;
    t.pass(50);
    t.signalled(&signal("x", "go", b"\x01")).await;
    assert_eq!(t.tick().await.promoted, 1, "the timer of x is gone");
    assert_eq!(t.ready().await, ["x/wait", "y/wait"]);
    // Too late for the wait, and kept for one to come.
    t.signalled(&signal("y", "go", b"\x02")).await;
    assert_eq!(t.snapshot(&late.id).await.early.len(), 1);
    let claims = t.claim("w1", 3).await;
    let purposes: Vec<_> = claims.iter().map(|c| c.ticket.purpose).collect();
    assert_eq!(purposes, [Purpose::Run, Purpose::TimedOut]);
    finish(&t, &claims[0]).await;
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
}

/// A settlement by which a claimed node begins to wait.
fn enter(claimed: &Claimed, timeout: Option<i64>) -> Settlement {
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Wait(wait_for("go", timeout)),
        claim_next: None,
    }
}

pub(crate) async fn a_node_is_entered_by_the_worker_that_claims_it(on: On) {
    let t = on.store().await;
    for (name, early) in [("x", false), ("y", true)] {
        let item = t.started(awaiting(name, &["go"])).await;
        let claim = t.one("w1").await;
        if early {
            t.signalled(&signal(name, "go", b"\x05")).await;
        }
        assert_eq!(t.settle("w1", &enter(&claim, Some(50))).await, STORED);
        if !early {
            assert_eq!(t.record(&item.id, "a").await, "waiting 1 n 0 0");
            assert_eq!(t.waiting().await, ["x"]);
            t.signalled(&signal(name, "go", b"\x05")).await;
        }
        assert_eq!(t.record(&item.id, "a").await, "ready 1 n 0 0");
        assert_eq!(t.claim_left(&claim).await, None);
        let taken = t.one("w1").await;
        assert_eq!(taken.input.as_deref(), Some(&b"\x05"[..]));
        assert_eq!(taken.record.attempt, 2);
        assert_eq!(t.snapshot(&item.id).await.open, 1);
    }
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
}

pub(crate) async fn a_repeated_settlement_of_a_wait_is_stored_once(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go"])).await;
    let claim = t.one("w1").await;
    for _ in 0..2 {
        assert_eq!(t.settle("w1", &enter(&claim, None)).await, STORED);
        assert_eq!(t.snapshot(&item.id).await.waits.len(), 1);
    }
    t.signalled(&signal("x", "go", b"\x01")).await;
    let taken = t.one("w1").await;
    let next = passed(&taken, vec![waiting("wait", "go", None)]);
    for _ in 0..2 {
        assert_eq!(t.settle("w1", &next).await, STORED);
        let snapshot = t.snapshot(&item.id).await;
        assert_eq!((snapshot.open, snapshot.waits.len()), (1, 1));
    }
}

// Found by the simulation: an entry may stand twice.
pub(crate) async fn a_node_that_is_entered_twice_keeps_the_signal_that_it_has(on: On) {
    let t = on.store().await;
    let item = t.started(awaiting("x", &["go"])).await;
    let first = t.one("w1").await;
    t.release("w1", &first).await;
    let claim = t.one("w1").await;
    t.settle("w1", &enter(&claim, None)).await;
    t.signalled(&signal("x", "go", b"\x01")).await;
    t.signalled(&signal("x", "go", b"\x02")).await;
    // As if the entry by which it was entered stood twice.
    let again = t.one("w1").await;
    assert_eq!(again.ticket.input, signalled("a", 1));
    t.settle("w1", &enter(&again, None)).await;
    assert_eq!(t.ready().await, ["x/a"]);
    let taken = t.one("w1").await;
    assert_eq!(taken.input.as_deref(), Some(&b"\x01"[..]));
    assert_eq!(t.snapshot(&item.id).await.early.len(), 1);
}

// case 24
pub(crate) async fn a_dead_worker_does_not_lose_the_signal_that_it_took(on: On) {
    let t = on.store().await;
    waits(&t, "x", Some(60_000)).await;
    t.signalled(&signal("x", "go", b"\xa3yes")).await;
    let lost = t.one("w1").await;
    t.pass(TTL + 1);
    let tick = t.tick().await;
    assert_eq!(
        tick.recovered[0].recovery,
        Recovery::Requeued { crashes: 1 }
    );
    let claim = t.one("w2").await;
    assert_eq!(claim.input, lost.input);
    assert_eq!(
        t.settle("w1", &passed(&lost, vec![])).await,
        SettleReply::Lost
    );
    finish(&t, &claim).await;
}

pub(crate) async fn an_instance_that_ends_waits_no_more(on: On) {
    let t = on.store().await;
    let cancelled = waits(&t, "x", Some(50)).await;
    t.signalled(&signal("x", "other", b"\x01")).await;
    t.cancel(&cancelled.id).await;
    let failing = StartItem {
        signals: vec![name("go")],
        ..item_with("y", &["a", "b"])
    };
    t.started(failing).await;
    let claims = t.claim("w1", 2).await;
    let two = vec![
        waiting("wait", "go", Some(50)),
        waiting("too", "go", Some(60)),
    ];
    t.settle("w1", &completed(&claims[0], two)).await;
    assert_eq!(t.waiting().await, ["y"]);
    t.settle("w1", &fail(&claims[1])).await;
    assert!(t.waiting().await.is_empty());
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
    for of in ["x", "y"] {
        let snapshot = t.snapshot(&id(of)).await;
        assert!(snapshot.waits.is_empty());
        assert!(t.record(&id(of), "wait").await.starts_with("closed"));
    }
    // What was acknowledged stays with the instance, for one that is begun again.
    assert_eq!(t.snapshot(&id("x")).await.early.len(), 1);
    let crashing = StartItem {
        signals: vec![name("go")],
        max_crashes: 0,
        ..item_with("z", &["a", "b"])
    };
    t.started(crashing).await;
    let claims = t.claim("w1", 2).await;
    t.settle(
        "w1",
        &completed(&claims[0], vec![waiting("wait", "go", Some(5_000))]),
    )
    .await;
    t.pass(TTL + 1);
    assert_eq!(t.tick().await.recovered[0].recovery, Recovery::Failed);
    assert!(t.waiting().await.is_empty());
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
}

// case 54
pub(crate) async fn a_replaced_run_leaves_no_signal_behind(on: On) {
    let t = on.store().await;
    waits(&t, "x", Some(50)).await;
    t.signalled(&signal("x", "other", b"\x01")).await;
    let again = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..awaiting("x", &["go", "other"])
    };
    let sent = signal("x", "go", b"\x02");
    let again = t.started(again).await;
    assert!(t.waiting().await.is_empty());
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
    assert!(t.snapshot(&again.id).await.early.is_empty());
    let claim = t.one("w1").await;
    let both = vec![waiting("wait", "go", None), waiting("b", "other", None)];
    t.settle("w1", &completed(&claim, both)).await;
    assert_eq!(t.snapshot(&again.id).await.waits.len(), 2);
    t.signalled(&sent).await;
    assert_eq!(t.ready().await, ["x/wait"]);
}

pub(crate) async fn a_worker_parked_at_the_list_of_the_node_is_woken(on: On) {
    let t = on.store().await;
    let mut inbox = t.inbox("w2").await;
    waits(&t, "x", None).await;
    let parking = ClaimRequest {
        parking: Parking::WhenShort,
        ..claiming("w2", 1)
    };
    assert!(t.claim_with(&parking).await.parked);
    t.signalled(&signal("x", "other", b"\x01")).await;
    assert_eq!(t.hints(&mut inbox).await, []);
    t.signalled(&signal("x", "go", b"\x01")).await;
    let ready = Hint::Ready { partition: p0() };
    assert_eq!(t.hints(&mut inbox).await, [ready]);
}

// case 33
pub(crate) async fn payloads_are_the_same_bytes_whether_early_or_awaited(on: On) {
    // {"a": [], "m": {}, "n": null}, and bytes that are no MessagePack at all.
    let payloads: [&'static [u8]; 3] =
        [b"\x83\xa1a\x90\xa1m\x80\xa1n\xc0", b"\xc1\x00\xff\r\n", b""];
    let t = on.store().await;
    for (number, payload) in payloads.into_iter().enumerate() {
        for early in [true, false] {
            let name = format!("x{number}{early}");
            let item = t.started(awaiting(&name, &["go"])).await;
            let claim = t.one("w1").await;
            if early {
                t.signalled(&signal(&name, "go", payload)).await;
            }
            t.settle("w1", &completed(&claim, vec![waiting("wait", "go", None)]))
                .await;
            if !early {
                t.signalled(&signal(&name, "go", payload)).await;
            }
            let claim = t.one("w1").await;
            assert_eq!(claim.input.as_deref(), Some(payload), "{name}");
            // Given back and taken again it is the same.
            t.release("w1", &claim).await;
            let claim = t.one("w1").await;
            assert_eq!(claim.input.as_deref(), Some(payload), "{name}");
            finish(&t, &claim).await;
            let value = t
                .store
                .values(&item.id, item.run, &[output_of("wait")])
                .await;
            assert_eq!(value.expect("a read")[0].as_deref(), Some(payload));
        }
    }
}

pub(crate) async fn a_damaged_record_keeps_its_signal_aside(on: On) {
    let t = on.store().await;
    let item = waits(&t, "x", Some(50)).await;
    t.damage(
        &item.id,
        Damage::Task(task("wait"), "waiting or not".into()),
    );
    t.signalled(&signal("x", "go", b"\x01")).await;
    assert!(t.waiting().await.is_empty());
    let reply = t.claim_with(&claiming("w1", 1)).await;
    assert!(reply.claims.is_empty());
    let ticket: Ticket = reply.aside[0].ticket.parse().expect("a ticket");
    assert_eq!(ticket.input, InputRef::clone(&signalled("wait", 1)));
}
