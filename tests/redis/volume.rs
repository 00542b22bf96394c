//! Large numbers: everything drains, in calls of bounded work.

use std::time::Duration;

use tenure::{
    engine::FollowUp,
    ids::WorkerId,
    store::{Control, ControlRequest, ErrorKind, ErrorRecord, Inspect, Status, Store},
};
use tenure_test_support::RedisServer;
use tokio::time::Instant;

use crate::making::{
    P0, claim, claiming, done, item, partition, settle, start, start_many, store, task, ticking,
};

pub(crate) fn error() -> ErrorRecord {
    ErrorRecord {
        kind: ErrorKind::Error,
        task: task("a"),
        attempt: 1,
        message: "no money".to_owned(),
        worker: Some(WorkerId::new("w").expect("a worker id")),
        at: 0,
    }
}

// case 60
#[tokio::test]
async fn a_live_entry_behind_100_000_dropped_ones_starts_within_a_second() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "order-", 1000).await;
    for i in 0..1000 {
        let request = ControlRequest {
            id: crate::making::id(&format!("order-{i}")),
            run: None,
            control: Control::Cancel,
            reason: None,
            actor: None,
            nonce: tenure::ids::Nonce::random(),
        };
        store.control(request).await.expect("a control");
    }
    // A hundred times the same thousand cancelled instances.
    let ready = format!("{{tenure:0}}:ready:{}", crate::making::list());
    let entries: Vec<String> = server.run(&["LRANGE", &ready, "0", "-1"]);
    for _ in 1..100 {
        let mut words = vec!["RPUSH", &ready];
        words.extend(entries.iter().map(String::as_str));
        server.run::<()>(&words);
    }
    assert_eq!(server.run::<usize>(&["LLEN", &ready]), 100_000);
    start(&store, item("live")).await;
    let began = Instant::now();
    let mut calls = 0;
    let claimed = loop {
        let reply = claim(&store, "w", 50).await;
        calls += 1;
        assert!(!reply.parked, "a worker that has to go on is not parked");
        if let Some(claimed) = reply.claims.into_iter().next() {
            break claimed;
        }
        assert!(reply.again);
    };
    println!("{calls} calls, {:?}", began.elapsed());
    assert_eq!(claimed.ticket.id.as_str(), "live");
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(server.run::<usize>(&["LLEN", &ready]), 0);
}

// case 31
#[tokio::test]
async fn twenty_thousand_timers_that_are_due_drain() {
    let server = RedisServer::start();
    let store = store(&server).await;
    for from in (0..20_000).step_by(500) {
        let items = (from..from + 500).map(|i| {
            let mut delayed = item(&format!("order-{i}"));
            let FollowUp::Ready(first) = delayed.first.remove(0) else {
                panic!("the first task is ready")
            };
            delayed.first.push(FollowUp::After {
                next: first,
                delay: Duration::from_millis(1),
            });
            delayed
        });
        let home = partition(&store, P0);
        store.start(home, items.collect()).await.expect("a start");
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let (mut promoted, mut calls) = (0, 0);
    loop {
        let reply = store.tick(ticking(&store, P0)).await.expect("a tick");
        promoted += reply.promoted;
        calls += 1;
        if !reply.again {
            break;
        }
    }
    assert_eq!((promoted, calls), (20_000, 41));
    let counts = store.counts(partition(&store, P0)).await.expect("counts");
    assert_eq!(
        (counts.delayed, counts.ready[&crate::making::list()]),
        (0, 20_000)
    );
}

// case 31
#[tokio::test]
async fn twenty_thousand_expired_claims_drain() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "order-", 20_000).await;
    let mut claimed = 0;
    while claimed < 20_000 {
        let mut request = claiming(&store, "w", 250);
        request.ttl = Duration::from_millis(50);
        claimed += store.claim(request).await.expect("a claim").claims.len();
    }
    tokio::time::sleep(Duration::from_millis(60)).await;
    let (mut recovered, mut calls) = (0, 0);
    loop {
        let reply = store.tick(ticking(&store, P0)).await.expect("a tick");
        recovered += reply.recovered.len();
        calls += 1;
        if !reply.again {
            break;
        }
    }
    assert_eq!((recovered, calls), (20_000, 201));
    let again = claim(&store, "w2", 10).await.claims;
    assert_eq!((again[0].record.attempt, again[0].record.crashes), (2, 1));
}

// case 32 in small: the same work for each call, however much there is
#[tokio::test]
async fn finished_instances_are_pruned_in_bounded_calls() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "order-", 2000).await;
    loop {
        let claims = claim(&store, "w", 100).await.claims;
        if claims.is_empty() {
            break;
        }
        settle(&store, "w", claims.iter().map(done).collect()).await;
    }
    let home = partition(&store, P0);
    // Made to look four minutes older than they are.
    let key = "{tenure:0}:done:completed";
    let entries: Vec<String> = server.run(&["LRANGE", key, "0", "-1"]);
    server.run::<()>(&["DEL", key]);
    for entry in &entries {
        let (at, rest) = entry.split_once('\0').expect("an entry");
        let at: i64 = at.parse().expect("a time");
        let earlier = at - 240_000;
        let id = rest.split('\0').next().expect("an id");
        let instance = format!("{{tenure:0}}:instance:{id}");
        server.run::<()>(&["HSET", &instance, "times", &format!("- {earlier} out:a")]);
        server.run::<()>(&["RPUSH", key, &format!("{earlier}\0{rest}")]);
    }
    let mut request = ticking(&store, P0);
    request.retention.completed = Duration::ZERO;
    let mut pruned = 0;
    loop {
        let reply = store.tick(request.clone()).await.expect("a tick");
        assert!(reply.pruned <= request.prune);
        pruned += reply.pruned;
        if !reply.again {
            break;
        }
    }
    assert_eq!(pruned, 2000);
    let left: Vec<String> = server.run(&["KEYS", "*order*"]);
    assert!(left.is_empty(), "{left:?}");
    let counts = store.counts(home).await.expect("counts");
    assert_eq!(counts.finished[&Status::Completed], 0);
}
