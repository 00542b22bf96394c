use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tenure::store::{
    Begin, ClaimRequest, Control, Event, Hint, Parking, StartItem, Status, StatusEvent,
    TickRequest, Verdict,
};

use crate::{
    env::{Env, On},
    prelude::*,
};

const READY: fn() -> Hint = || Hint::Ready { partition: p0() };

/// A claim that finds nothing in a queue and parks there.
async fn park(t: &Env, who: &str, queue: &str) {
    let request = ClaimRequest {
        lists: vec![list_of(queue)],
        parking: Parking::WhenShort,
        ..claiming(who, 1)
    };
    let reply = t.claim_with(&request).await;
    assert!(reply.parked && reply.claims.is_empty());
}

// case 58
pub(crate) async fn only_a_worker_parked_at_the_filled_list_is_woken(on: On) {
    let t = on.store().await;
    let (mut one, mut two) = (t.inbox("w1").await, t.inbox("w2").await);
    park(&t, "w1", "a").await;
    park(&t, "w2", "b").await;
    t.started(item_in("x", "b")).await;
    assert_eq!(t.hints(&mut two).await, [READY()]);
    assert_eq!(t.hints(&mut one).await, []);
    // It is not parked any more.
    t.started(item_in("y", "b")).await;
    assert_eq!(t.hints(&mut two).await, []);
}

pub(crate) async fn the_newest_parked_worker_is_woken_first(on: On) {
    let t = on.store().await;
    let (mut one, mut two) = (t.inbox("w1").await, t.inbox("w2").await);
    park(&t, "w2", "a").await;
    t.pass(10);
    park(&t, "w1", "a").await;
    t.started(item_in("x", "a")).await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
    assert_eq!(t.hints(&mut two).await, []);
    t.started(item_in("y", "a")).await;
    assert_eq!(t.hints(&mut two).await, [READY()]);
}

pub(crate) async fn a_worker_parked_long_ago_is_not_woken(on: On) {
    let t = on.store().await;
    let mut one = t.inbox("w1").await;
    park(&t, "w1", "a").await;
    t.pass(15_001);
    t.started(item_in("x", "a")).await;
    assert_eq!(t.hints(&mut one).await, []);
    park(&t, "w1", "b").await;
    t.pass(15_000);
    t.started(item_in("y", "b")).await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
}

/// Two hints came to one worker, for two lists; it is full after the first.
pub(crate) async fn a_full_claim_wakes_others_for_lists_it_did_not_look_into(on: On) {
    let t = on.store().await;
    let mut two = t.inbox("w2").await;
    park(&t, "w2", "a").await;
    t.pass(10);
    let both = ClaimRequest {
        lists: vec![list_of("b"), list_of("a")],
        parking: Parking::WhenShort,
        ..claiming("w1", 1)
    };
    assert!(t.claim_with(&both).await.parked);
    t.started(item_in("x", "a")).await;
    t.started(item_in("y", "b")).await;
    assert_eq!(t.hints(&mut two).await, []);
    let reply = t
        .claim_with(&ClaimRequest {
            nonce: tenure::ids::Nonce::random(),
            parking: Parking::Parked,
            ..both
        })
        .await;
    assert_eq!(reply.claims.len(), 1);
    assert_eq!(t.hints(&mut two).await, [READY()]);
}

// case 58
pub(crate) async fn a_full_claim_passes_what_is_left_to_another(on: On) {
    let t = on.store().await;
    let (mut zero, mut one) = (t.inbox("w0").await, t.inbox("w1").await);
    for i in 0..10 {
        park(&t, &format!("w{i}"), "a").await;
        t.pass(1);
    }
    // One call wakes eight, so the first two sleep on.
    let items = (0..10).map(|i| item_in(&format!("x{i}"), "a")).collect();
    t.store.start(p0(), items).await.expect("a start");
    assert_eq!(t.hints(&mut one).await, []);
    let claim = |want| ClaimRequest {
        lists: vec![list_of("a")],
        ..claiming("w9", want)
    };
    assert_eq!(t.claim_with(&claim(1)).await.claims.len(), 1);
    assert_eq!(t.hints(&mut one).await, [READY()]);
    assert_eq!(t.hints(&mut zero).await, []);
    // So does a worker that is busy and wants nothing for itself.
    let reply = t.claim_with(&claim(0)).await;
    assert!(reply.claims.is_empty() && !reply.parked);
    assert_eq!(t.hints(&mut zero).await, [READY()]);
    // Nobody is woken for a list with nothing in it.
    assert_eq!(t.claim_with(&claim(9)).await.claims.len(), 9);
    park(&t, "w0", "a").await;
    t.claim_with(&claim(0)).await;
    assert_eq!(t.hints(&mut zero).await, []);
}

pub(crate) async fn a_full_worker_is_not_parked_any_more(on: On) {
    let t = on.store().await;
    let mut one = t.inbox("w1").await;
    let lists = vec![list_of("a"), list_of("b")];
    let claim = |parking| ClaimRequest {
        lists: lists.clone(),
        parking,
        ..claiming("w1", 1)
    };
    assert!(t.claim_with(&claim(Parking::WhenShort)).await.parked);
    t.started(item_in("x", "a")).await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
    let reply = t.claim_with(&claim(Parking::Parked)).await;
    assert_eq!((reply.claims.len(), reply.parked), (1, false));
    // It was parked at `b` too.
    t.started(item_in("y", "b")).await;
    assert_eq!(t.hints(&mut one).await, []);
}

pub(crate) async fn a_woken_worker_that_does_nothing_is_woken_again(on: On) {
    let t = on.store().await;
    let mut one = t.inbox("w1").await;
    park(&t, "w1", "a").await;
    t.started(item_in("x", "a")).await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
    t.pass(999);
    t.tick().await;
    assert_eq!(t.hints(&mut one).await, []);
    t.pass(1);
    t.tick().await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
    // Once is enough, and not at all for one that has shown itself.
    t.pass(2_000);
    t.tick().await;
    assert_eq!(t.hints(&mut one).await, []);
    park(&t, "w1", "b").await;
    t.started(item_in("y", "b")).await;
    assert_eq!(t.hints(&mut one).await, [READY()]);
    t.show("w1").await;
    t.pass(2_000);
    t.tick().await;
    assert_eq!(t.hints(&mut one).await, []);
}

// case 59
pub(crate) async fn the_keeper_hears_of_a_timer_before_all_others(on: On) {
    let t = on.store().await;
    let mut keeper = t.inbox("w1").await;
    let tick = TickRequest {
        keeper: Some((worker("w1"), ms(60_000))),
        ..ticking()
    };
    t.store.tick(tick).await.expect("a tick");
    let timer = || Hint::Timer { partition: p0() };
    let after = |name: &str, delay| StartItem {
        begin: Begin::After(ms(delay)),
        ..item(name)
    };
    t.started(after("x", 500)).await;
    assert_eq!(t.hints(&mut keeper).await, [timer()]);
    t.started(after("y", 600)).await;
    assert_eq!(t.hints(&mut keeper).await, []);
    t.started(item("z")).await;
    let claim = t.one("w2").await;
    t.settle("w2", &retry(&claim, 100)).await;
    assert_eq!(t.hints(&mut keeper).await, [timer()]);
}

pub(crate) async fn owners_hear_of_a_cancel(on: On) {
    let t = on.store().await;
    let (mut one, mut two) = (t.inbox("w1").await, t.inbox("w2").await);
    let item = t.started(item_with("x", &["a", "b", "c"])).await;
    let (_a, b) = (t.one("w1").await, t.one("w2").await);
    t.settle("w2", &retry(&b, 100)).await;
    t.cancel(&item.id).await;
    let told = Hint::Cancelled {
        id: item.id,
        tail: item.run.tail(),
    };
    assert_eq!(t.hints(&mut one).await, [told]);
    assert_eq!(t.hints(&mut two).await, []);
}

pub(crate) async fn waiters_hear_of_the_end(on: On) {
    let t = on.store().await;
    let item = StartItem {
        waiter: Some(mailbox("client-1")),
        ..item("x")
    };
    t.started(item.clone()).await;
    let (mut one, mut two) = (t.inbox("client-1").await, t.inbox("client-2").await);
    let watch = async |name: &str| {
        let header = t.store.watch(&item.id, item.run, &mailbox(name)).await;
        header.expect("a watch").expect("a header")
    };
    assert_eq!(watch("client-2").await.status, Status::Running);
    assert_eq!(watch("client-2").await.run, item.run);
    let claim = t.one("w1").await;
    t.settle("w1", &done(&claim)).await;
    let told = Hint::Done {
        id: item.id.clone(),
        tail: item.run.tail(),
        result: Some(OUTPUT),
    };
    assert_eq!(t.hints(&mut one).await, std::slice::from_ref(&told));
    assert_eq!(t.hints(&mut two).await, [told]);
    let header = watch("client-2").await;
    assert_eq!(header.status, Status::Completed);
    assert_eq!(header.result, Some(output_of("a")));
    let nothing = t.store.watch(&id("y"), item.run, &mailbox("c")).await;
    assert_eq!(nothing.expect("a watch"), None);

    // A result that is not small is not told, nor is that of an instance which did not complete.
    let large = t.started(crate::prelude::item("large")).await;
    let name = mailbox("client-2");
    let watched = t.store.watch(&large.id, large.run, &name).await;
    watched.expect("a watch");
    let claim = t.one("w1").await;
    let mut settlement = done(&claim);
    if let Verdict::Completed { output, .. } = &mut settlement.verdict {
        *output = Some(Bytes::from(vec![0xc0; Hint::TOLD + 1]));
    }
    t.settle("w1", &settlement).await;
    let told = Hint::Done {
        id: large.id,
        tail: large.run.tail(),
        result: None,
    };
    assert_eq!(t.hints(&mut two).await, [told]);

    // The newest sixteen are kept.
    let many = t.started(crate::prelude::item("many")).await;
    for i in 0..17 {
        let name = mailbox(&format!("client-{}", i + 1));
        t.store
            .watch(&many.id, many.run, &name)
            .await
            .expect("a watch");
    }
    t.cancel(&many.id).await;
    assert_eq!(t.hints(&mut one).await, []);
    assert_eq!(t.hints(&mut two).await.len(), 1);
}

// R17, R18
pub(crate) async fn status_changes_are_published(on: On) {
    let t = on.store().await;
    let mut events = t.store.events().await.expect("events");
    let mut items = Vec::new();
    for name in ["done", "failed", "cancelled", "terminated"] {
        items.push(t.started(item(name)).await);
    }
    let claims = t.claim("w1", 2).await;
    t.settle_all("w1", vec![done(&claims[0]), fail(&claims[1])])
        .await;
    t.cancel(&items[2].id).await;
    t.control(&items[3].id, Control::Terminate).await;
    let statuses = [
        Status::Completed,
        Status::Failed,
        Status::Cancelled,
        Status::Terminated,
    ];
    for (item, to) in items.into_iter().zip(statuses) {
        let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        let error = (to == Status::Failed).then(|| "no hope".to_owned());
        let expected = StatusEvent {
            id: item.id,
            run: item.run,
            from: Some(Status::Running),
            to,
            at: t.now(),
            error,
        };
        let expected = Event::Changed(expected);
        assert_eq!(event.expect("an event"), Some(expected));
    }
}

// R18
pub(crate) async fn a_listener_that_does_not_listen_holds_nobody_up(on: On) {
    let t = on.store().await;
    let _deaf = t.store.events().await.expect("events");
    let mut listening = t.store.events().await.expect("events");
    // More than any queue between a store and its listeners holds.
    let rounds = 40;
    for round in 0..rounds {
        let ids: Vec<_> = (0..100).map(|i| format!("x-{round}-{i}")).collect();
        let items: Vec<_> = ids.iter().map(|name| item(name)).collect();
        let started = t.store.start(p0(), items).await.expect("a start");
        assert_eq!(started.len(), 100);
        let claims = t.claim("w1", 100).await;
        t.pass(1);
        t.settle_all("w1", claims.iter().map(done).collect()).await;
        // Who listens hears of all of them meanwhile.
        for _ in 0..100 {
            let event = tokio::time::timeout(Duration::from_secs(10), listening.next()).await;
            let event = event.expect("an event").expect("an open stream");
            assert!(matches!(event, Event::Changed(e) if e.to == Status::Completed));
        }
    }
    let counts = t.store.counts(p0()).await.expect("counts");
    assert_eq!(counts.finished[&Status::Completed], 100 * rounds);
}

// R18
pub(crate) async fn a_slow_listener_hears_how_much_it_missed(on: On) {
    let t = on.store().await;
    let mut slow = t.store.events().await.expect("events");
    // More than a queue holds.
    let all: u64 = match on {
        On::Memory => 4_200,
        On::Redis => 1_200,
    };
    for i in 0..all {
        t.cancel(&t.started(item(&format!("x-{i}"))).await.id).await;
    }
    let (mut heard, mut missed) = (0, 0);
    while heard + missed < all {
        let event = tokio::time::timeout(Duration::from_secs(10), slow.next()).await;
        match event
            .expect("no event is unaccounted for")
            .expect("an open stream")
        {
            Event::Changed(event) => {
                assert_eq!(event.to, Status::Cancelled);
                heard += 1;
            }
            Event::Missed { events } => missed += events.expect("a count"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(heard + missed, all);
    assert!(missed > 0 && heard > 0, "{heard} heard, {missed} missed");
}
