use bytes::Bytes;
use tenure::{
    engine::FollowUp,
    ids::{InputRef, RunId},
    store::{
        Begin, ClaimRequest, Control, Hint, IdPolicy, StartItem, StartReply, Status, StoreError,
        TickRequest,
    },
};

use crate::{env::On, prelude::*};

pub(crate) async fn a_start_makes_the_first_tasks_ready_in_order(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    assert_eq!(t.ready().await, ["x/a", "x/b"]);
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!(snapshot.header.run, item.run);
    assert_eq!(snapshot.header.status, Status::Running);
    assert_eq!((snapshot.open, snapshot.max_crashes), (2, 3));
    assert_eq!(snapshot.created_at, t.now());
    assert_eq!(snapshot.started_at, None);
    assert_eq!(t.record(&item.id, "a").await, "ready 0 - 0 0");
}

// R22
pub(crate) async fn a_start_may_begin_after_a_delay(on: On) {
    let t = on.store().await;
    let item = StartItem {
        begin: Begin::After(ms(50)),
        ..item("x")
    };
    t.started(item.clone()).await;
    assert_eq!(t.record(&item.id, "a").await, "delayed 0 - 0 0");
    t.pass(49);
    assert_eq!(t.tick().await.promoted, 0);
    t.pass(1);
    assert_eq!(t.tick().await.promoted, 1);
    assert_eq!(t.ready().await, ["x/a"]);
    assert_eq!(t.record(&item.id, "a").await, "ready 0 - 0 0");
}

pub(crate) async fn a_start_may_begin_at_a_time_and_at_once_if_it_has_passed(on: On) {
    let t = on.store().await;
    let at = |begin| StartItem {
        begin: Begin::At(begin),
        ..item("later")
    };
    t.started(at(t.now().plus(ms(20)))).await;
    t.started(StartItem {
        id: id("now"),
        ..at(t.now())
    })
    .await;
    assert_eq!(t.ready().await, ["now/a"]);
    assert_eq!(t.record(&id("now"), "a").await, "ready 0 - 0 0");
    let delayed = t.store.delayed(p0(), 10).await.expect("a read");
    assert_eq!(delayed.len(), 1);
    assert_eq!(delayed[0].1, t.now().plus(ms(20)));
    assert_eq!(delayed[0].0.id, id("later"));
}

// case 55
pub(crate) async fn a_repeated_start_answers_as_before_and_changes_nothing(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let before = t.snapshot(&item.id).await;
    t.pass(10);
    assert_eq!(t.start(&item).await, StartReply::Started);
    assert_eq!(t.snapshot(&item.id).await, before);
    assert_eq!(t.ready().await, ["x/a"]);
    let claim = t.one("w1").await;
    t.settle("w1", &done(&claim)).await;
    assert_eq!(t.start(&item).await, StartReply::Started);
    assert!(t.ready().await.is_empty());
}

// case 37
pub(crate) async fn each_id_policy_answers_as_it_says(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    let (run, status) = (first.run, Status::Running);
    let again = |policy| StartItem {
        policy,
        ..item("x")
    };
    let exists = StartReply::Exists { run, status };
    assert_eq!(t.start(&again(IdPolicy::Fail)).await, exists);
    assert_eq!(t.start(&again(IdPolicy::ReplaceFinished)).await, exists);
    let existing = StartReply::Existing { run, status };
    assert_eq!(t.start(&again(IdPolicy::UseExisting)).await, existing);
    assert_eq!(t.snapshot(&first.id).await.header.run, run);

    t.cancel(&first.id).await;
    let status = Status::Cancelled;
    let exists = StartReply::Exists { run, status };
    assert_eq!(t.start(&again(IdPolicy::Fail)).await, exists);
    let existing = StartReply::Existing { run, status };
    assert_eq!(t.start(&again(IdPolicy::UseExisting)).await, existing);
}

// case 37
pub(crate) async fn a_finished_instance_may_be_replaced(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.settle("w1", &done(&claim)).await;
    let second = StartItem {
        policy: IdPolicy::ReplaceFinished,
        ..item("x")
    };
    t.started(second.clone()).await;
    let snapshot = t.snapshot(&first.id).await;
    assert_eq!(snapshot.header.run, second.run);
    assert_eq!(snapshot.header.result, None);
    assert_eq!(snapshot.replaced, [first.run]);
    assert_eq!(snapshot.values.len(), 1);
    assert_eq!(t.start(&first).await, StartReply::Superseded);
}

// case 54
pub(crate) async fn a_replaced_run_sees_nothing_of_the_old_one(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 2).await;
    t.settle("w1", &retry(&claims[1], 100)).await;
    let second = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("x")
    };
    t.started(second.clone()).await;
    // The entry of the old `c` is dropped, the old claim key of `a` holds nobody up.
    let claim = t.one("w2").await;
    assert_eq!((claim.run, claim.record.attempt), (second.run, 1));
    assert!(t.ready().await.is_empty());
    t.pass(100);
    let tick = t.tick().await;
    assert_eq!((tick.promoted, tick.recovered.len()), (0, 0));
    assert!(t.store.errors(&second.id).await.expect("a read").is_empty());
    // The old ticket's turn comes while the new claim lives, and later when nothing does.
    t.extend("w2", &claim).await;
    t.pass(TTL);
    t.extend("w2", &claim).await;
    assert!(t.tick().await.recovered.is_empty());
    assert_eq!(t.record(&second.id, "a").await, "running 1 n 0 0");
    t.settle("w2", &done(&claim)).await;
    assert_eq!(
        t.snapshot(&second.id).await.header.status,
        Status::Completed
    );
}

pub(crate) async fn the_last_eight_replaced_runs_are_remembered(on: On) {
    let t = on.store().await;
    let mut items = Vec::new();
    for _ in 0..10 {
        let next = StartItem {
            policy: IdPolicy::TerminateAndReplace,
            ..item("x")
        };
        items.push(t.started(next).await);
    }
    let replaced = t.snapshot(&id("x")).await.replaced;
    let newest_first: Vec<RunId> = items[1..9].iter().rev().map(|i| i.run).collect();
    assert_eq!(replaced, newest_first);
    assert_eq!(t.start(&items[1]).await, StartReply::Superseded);
    // An older one is not known any more: its repeat would be a new start.
    assert_eq!(
        t.start(&StartItem {
            policy: IdPolicy::Fail,
            ..items[0].clone()
        })
        .await,
        StartReply::Exists {
            run: items[9].run,
            status: Status::Running
        }
    );
}

// case 75
pub(crate) async fn the_first_of_two_starts_of_one_id_in_a_call_is_superseded(on: On) {
    let t = on.store().await;
    let items: Vec<StartItem> = ["x", "y", "x"]
        .map(|name| StartItem {
            policy: IdPolicy::TerminateAndReplace,
            ..item(name)
        })
        .into();
    let replies = t.store.start(p0(), items.clone()).await.expect("a start");
    let expected = [
        StartReply::Superseded,
        StartReply::Started,
        StartReply::Started,
    ];
    assert_eq!(replies, expected);
    assert_eq!(t.snapshot(&id("x")).await.header.run, items[2].run);
    let again = t.store.start(p0(), items).await.expect("a start");
    assert_eq!(again, expected);
}

pub(crate) async fn a_replaced_instance_tells_its_waiters_and_owners(on: On) {
    let t = on.store().await;
    let first = StartItem {
        waiter: Some(mailbox("client")),
        ..item("x")
    };
    t.started(first.clone()).await;
    t.one("w1").await;
    let (mut client, mut owner) = (t.inbox("client").await, t.inbox("w1").await);
    t.started(StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("x")
    })
    .await;
    let (id, tail) = (first.id, first.run.tail());
    let done = Hint::Done {
        id: id.clone(),
        tail,
        result: None,
    };
    assert_eq!(t.hints(&mut client).await, [done]);
    assert_eq!(t.hints(&mut owner).await, [Hint::Cancelled { id, tail }]);
}

// case 36
pub(crate) async fn requests_over_their_bounds_are_refused_before_anything_is_done(on: On) {
    let t = on.store_with(2, 100).await;
    let home = id("x").partition(t.store.partitions());
    let large = StartItem {
        input: Bytes::from(vec![0; 101]),
        ..item("x")
    };
    let refused = t.store.start(home, vec![large]).await.expect_err("refused");
    assert!(
        matches!(
            refused,
            StoreError::TooLarge {
                size: 101,
                limit: 100,
                ..
            }
        ),
        "{refused}"
    );
    let elsewhere = tenure::ids::Partition::all(t.store.partitions())
        .find(|p| *p != home)
        .expect("another partition");
    let no_task = StartItem {
        first: Vec::new(),
        ..item("x")
    };
    let joins = StartItem {
        first: vec![FollowUp::Arrive {
            next: next("a", InputRef::Join),
            need: 1,
            total: 1,
        }],
        ..item("x")
    };
    let many = vec![item("x"); StartItem::MAX_ITEMS + 1];
    for (partition, items) in [
        (elsewhere, vec![item("x")]),
        (home, vec![no_task]),
        (home, vec![joins]),
        (home, many),
    ] {
        let refused = t.store.start(partition, items).await.expect_err("refused");
        assert!(matches!(refused, StoreError::Request { .. }), "{refused}");
    }
    for request in [
        claiming("w1", ClaimRequest::MAX_WANT + 1),
        ClaimRequest {
            lists: Vec::new(),
            ..claiming("w1", 1)
        },
        ClaimRequest {
            ttl: ms(0),
            ..claiming("w1", 1)
        },
    ] {
        let refused = t.store.claim(request).await.expect_err("refused");
        assert!(matches!(refused, StoreError::Request { .. }), "{refused}");
    }
    let tick = TickRequest {
        ttl: ms(0),
        ..ticking()
    };
    let refused = t.store.tick(tick).await.expect_err("refused");
    assert!(matches!(refused, StoreError::Request { .. }), "{refused}");
    assert_eq!(t.store.header(&id("x")).await.expect("a read"), None);
    assert_eq!(
        t.control(&id("x"), Control::Cancel).await,
        tenure::store::ControlReply::NotFound
    );
}
