//! Connections that break, servers that restart or fall silent.

use std::time::Duration;

use futures_util::StreamExt;
use tenure::{
    Client, Worker, Workflow,
    ids::{MailboxId, WorkerId},
    store::{Event, Hint, Hints, Inspect, Parking, Store, StoreError, redis::RedisStore},
};
use tenure_test_support::RedisServer;
use tokio::time::{Instant, timeout};

use crate::making::{
    P0, claim, claiming, done, item, partition, patiently, settling, start, start_many, store,
    worker,
};

/// Waits for a condition, at most 20 s.
pub(crate) async fn until(mut is: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is().await {
        assert!(Instant::now() < end, "it never came true");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn next(hints: &mut Hints, within: Duration) -> Hint {
    let hint = timeout(within, hints.next()).await;
    hint.expect("a hint in time").expect("the mailbox is open")
}

async fn wait_for(hints: &mut Hints, wanted: &Hint, within: Duration) {
    let end = Instant::now() + within;
    while next(hints, end.saturating_duration_since(Instant::now())).await != *wanted {}
}

async fn mailbox(store: &RedisStore, who: &WorkerId) -> Hints {
    let mut hints = store
        .mailbox(MailboxId::from(who.clone()))
        .await
        .expect("a mailbox");
    assert_eq!(
        next(&mut hints, Duration::from_secs(5)).await,
        Hint::Subscribed
    );
    hints
}

/// Starts, claims and settles until `count` instances are done.
async fn work_off(store: &RedisStore, who: &str, count: usize) {
    let mut left = count;
    while left > 0 {
        let request = claiming(store, who, 10);
        let reply = patiently(|| store.claim(request.clone())).await;
        let settlements: Vec<_> = reply.claims.iter().map(done).collect();
        if settlements.is_empty() {
            return;
        }
        left -= settlements.len();
        let request = settling(store, who, settlements);
        patiently(|| store.settle(request.clone())).await;
    }
}

async fn completed(store: &RedisStore) -> usize {
    let counts = store.counts(partition(store, P0)).await.expect("counts");
    counts.finished.values().sum()
}

// case 21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flushing_the_scripts_under_load_harms_nobody() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut connection = server.connection();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let flusher = std::thread::spawn(move || {
        let mut flushes = 0;
        while stopped.recv_timeout(Duration::from_millis(20)).is_err() {
            redis::cmd("SCRIPT")
                .arg("FLUSH")
                .exec(&mut connection)
                .expect("a flush");
            flushes += 1;
        }
        flushes
    });
    for round in 0..4 {
        start_many(&store, &format!("{round}-"), 500).await;
        let (one, two) = (store.clone(), store.clone());
        tokio::join!(work_off(&one, "w1", 500), work_off(&two, "w2", 500));
    }
    stop.send(()).expect("the flusher runs");
    assert!(flusher.join().expect("the flusher") > 3);
    assert_eq!(completed(&store).await, 2000);
    let duplicates = store.finished(
        partition(&store, P0),
        tenure::store::Status::Completed,
        0,
        5000,
    );
    let mut ids: Vec<_> = duplicates
        .await
        .expect("a read")
        .into_iter()
        .map(|f| f.id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2000);
}

// case 22
#[tokio::test]
async fn killed_connections_give_one_retryable_error_at_most() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut killer = server.connection();
    for round in 0..20 {
        redis::cmd("CLIENT")
            .arg(["KILL", "TYPE", "normal", "SKIPME", "yes"].as_slice())
            .exec(&mut killer)
            .expect("a kill");
        let item = item(&format!("order-{round}"));
        let home = partition(&store, P0);
        let first = store.start(home, vec![item.clone()]).await;
        if let Err(error) = first {
            assert!(error.is_retryable() && error.is_ambiguous(), "{error:?}");
            let second = store.start(home, vec![item]).await;
            assert!(second.is_ok(), "{second:?}");
        }
    }
    assert_eq!(claim(&store, "w", 100).await.claims.len(), 20);
}

#[tokio::test]
async fn a_server_that_restarts_is_found_again_by_calls_and_mailboxes() {
    let mut server = RedisServer::durable();
    let store = store(&server).await;
    let who = worker("w");
    let mut hints = mailbox(&store, &who).await;
    start(&store, item("order-1")).await;
    server.stop();
    let home = partition(&store, P0);
    let error = store
        .start(home, vec![item("order-2")])
        .await
        .expect_err("nobody is there");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    server.restart();
    let late = item("order-3");
    patiently(|| store.start(home, vec![late.clone()])).await;
    assert_eq!(claim(&store, "w", 10).await.claims.len(), 2);
    wait_for(&mut hints, &Hint::Subscribed, Duration::from_secs(10)).await;
}

// case 19
#[tokio::test]
async fn a_server_that_fell_silent_is_noticed_and_used_again() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .response_timeout(Duration::from_millis(500))
        .connect()
        .await
        .expect("a store");
    let who = worker("w");
    let mut hints = mailbox(&store, &who).await;
    server.freeze();
    let silent = Instant::now();
    let error = store
        .start(partition(&store, P0), vec![item("order-1")])
        .await;
    let error = error.expect_err("nobody answers");
    assert!(matches!(error, StoreError::Timeout { .. }), "{error:?}");
    assert!(silent.elapsed() < Duration::from_secs(5));
    server.resume();
    let late = item("order-2");
    patiently(|| store.start(partition(&store, P0), vec![late.clone()])).await;
    // The frozen connection may have survived; a hint proves that the mailbox hears again either way.
    let mut request = claiming(&store, "w", 10);
    request.parking = Parking::WhenShort;
    store.claim(request).await.expect("a claim");
    start(&store, item("order-3")).await;
    let ready = Hint::Ready {
        partition: partition(&store, P0),
    };
    wait_for(&mut hints, &ready, Duration::from_secs(15)).await;
}

// case 19
#[tokio::test]
async fn a_mailbox_notices_a_connection_that_swallows_everything() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .response_timeout(Duration::from_millis(500))
        .connect()
        .await
        .expect("a store");
    let mut hints = mailbox(&store, &worker("w")).await;
    server.freeze();
    // Longer than the ping and its patience: the hub gives the connection up while nothing answers.
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.resume();
    wait_for(&mut hints, &Hint::Subscribed, Duration::from_secs(15)).await;
}

#[tokio::test]
async fn a_killed_subscriber_subscribes_again_and_says_so() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut hints = mailbox(&store, &worker("w")).await;
    let mut events = store.events().await.expect("events");
    server.run::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(
        next(&mut hints, Duration::from_secs(5)).await,
        Hint::Subscribed
    );
    start(&store, item("order-1")).await;
    let claims = claim(&store, "w", 1).await.claims;
    crate::making::settle(&store, "w", vec![done(&claims[0])]).await;
    let mut event = async || {
        let event = timeout(Duration::from_secs(5), events.next()).await;
        event.expect("an event in time").expect("an event")
    };
    assert_eq!(event().await, Event::Missed { events: None });
    match event().await {
        Event::Changed(event) => assert_eq!(event.to, tenure::store::Status::Completed),
        other => panic!("{other:?}"),
    }
}

// case 58
#[tokio::test]
async fn only_a_worker_that_is_parked_at_the_list_is_woken() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let (mut one, mut two) = (
        mailbox(&store, &worker("w1")).await,
        mailbox(&store, &worker("w2")).await,
    );
    let mut other = claiming(&store, "w1", 1);
    other.lists[0].queue = tenure::ids::QueueName::new("other").expect("a name");
    other.parking = Parking::WhenShort;
    assert!(store.claim(other).await.expect("a claim").parked);
    let mut here = claiming(&store, "w2", 1);
    here.parking = Parking::WhenShort;
    assert!(store.claim(here).await.expect("a claim").parked);
    let began = Instant::now();
    start(&store, item("order-1")).await;
    let ready = Hint::Ready {
        partition: partition(&store, P0),
    };
    wait_for(&mut two, &ready, Duration::from_secs(5)).await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
    let nothing = timeout(Duration::from_millis(100), one.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
}

#[tokio::test]
async fn a_dropped_mailbox_unsubscribes() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let hints = mailbox(&store, &worker("w")).await;
    let _keeps_the_connection = mailbox(&store, &worker("w2")).await;
    let listeners = async || {
        let counts: (String, i64) = server.run(&["PUBSUB", "NUMSUB", "{tenure:0}:mail:w"]);
        counts.1
    };
    assert_eq!(listeners().await, 1);
    drop(hints);
    until(async || listeners().await == 0).await;
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_is_a_moment_and_not_the_end() {
    let server = RedisServer::start();
    let store = store(&server).await;
    server.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let refused = store
        .start(partition(&store, P0), vec![item("order-1")])
        .await;
    let refused = refused.expect_err("a replica takes no writes");
    assert!(matches!(refused, StoreError::Moment { .. }), "{refused:?}");
    server.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    start(&store, item("order-1")).await;
}

// case 20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_workers_outlive_a_time_as_clients_of_a_replica() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let flow = Workflow::builder("outlives")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .expect("a workflow");
    let worker = || {
        let worker = Worker::builder(store.clone()).workflow(&flow);
        worker.build().expect("a worker").spawn()
    };
    let workers = [worker(), worker()];
    let list = format!("{{tenure:0}}:idle:default:{}", flow.hash());
    until(async || server.run::<usize>(&["ZCARD", &list]) == 2).await;
    server.run::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    // Longer than a round of the keeper and a look at the connections.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(workers.iter().all(|worker| !worker.health().ended));
    server.run::<()>(&["REPLICAOF", "NO", "ONE"]);
    let client = Client::new(store.clone());
    let mut handles = Vec::new();
    for n in 0..20 {
        handles.push(client.start(&flow, n).await.expect("a start"));
    }
    for (n, handle) in (0..20).zip(handles) {
        let result = handle.result_within(Duration::from_secs(20)).await;
        assert_eq!(result.expect("a result"), n);
    }
    for worker in workers {
        worker.shutdown();
        worker.join().await.expect("a worker that ends well");
    }
}

#[tokio::test]
async fn a_master_without_its_replicas_is_a_moment_and_not_the_end() {
    let server = RedisServer::start();
    let store = store(&server).await;
    server.run::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let refused = store
        .start(partition(&store, P0), vec![item("order-1")])
        .await;
    let refused = refused.expect_err("no replica is there");
    assert!(matches!(refused, StoreError::Moment { .. }), "{refused:?}");
    server.run::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    start(&store, item("order-1")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_separate_store_works_on_a_runtime_of_its_own() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start(&store, item("order-1")).await;
    let claimed = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let own = store.separate().await.expect("a store");
            drop(store);
            claim(&*own, "w", 1).await.claims.len()
        })
    });
    assert_eq!(claimed.join().expect("the thread"), 1);
}

#[tokio::test]
async fn a_server_that_lost_history_raises_the_epoch_once() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "order-", 3).await;
    assert_eq!(claim(&store, "w", 1).await.epoch, 0);
    for round in 0..20 {
        let claims = (0..8).map(|i| claiming(&store, &format!("w{round}-{i}"), 1));
        let calls = claims.map(|request| store.claim(request));
        for reply in futures_util::future::join_all(calls).await {
            assert_eq!(
                reply.expect("a claim").epoch,
                0,
                "calls that overtake each other lost nothing"
            );
        }
    }
    // A failover to an older copy: fewer transitions than were seen.
    server.run::<()>(&["SET", "{tenure:0}:seq", "1"]);
    assert_eq!(claim(&store, "w", 1).await.epoch, 1);
    assert_eq!(claim(&store, "w", 1).await.epoch, 1);
    let other = crate::making::store(&server).await;
    assert_eq!(claim(&other, "w2", 1).await.epoch, 1, "others learn of it");
}
