//! A server whose memory is used up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tenure::store::{ExtendRequest, Held, Inspect, Status, Store, StoreError, redis::RedisStore};
use tenure_test_support::RedisServer;

use crate::making::{
    P0, TTL, claim, done, holding, item, partition, settle, start, start_many, store, then, tick,
    worker,
};

fn limit(server: &RedisServer, bytes: &str) {
    server.run::<()>(&["CONFIG", "SET", "maxmemory", bytes]);
}

// case 67, case 26
#[tokio::test]
async fn starts_are_refused_with_a_typed_error_and_everything_else_passes() {
    let server = RedisServer::with(["--save", "", "--maxmemory-policy", "noeviction"]);
    let store = store(&server).await;
    start_many(&store, "order-", 20).await;
    let claims = claim(&store, "w", 4).await.claims;
    limit(&server, "1mb");
    let home = partition(&store, P0);
    let refused = store
        .start(home, vec![item("late-1"), item("late-2")])
        .await;
    let refused = refused.expect_err("a start must be refused");
    assert!(matches!(refused, StoreError::OutOfMemory), "{refused:?}");
    assert!(refused.is_retryable() && !refused.is_ambiguous());
    for late in ["late-1", "late-2"] {
        let header = store
            .header(&crate::making::id(late))
            .await
            .expect("a read");
        assert_eq!(header, None, "nothing of a refused start is left");
    }
    let more = claim(&store, "w", 4).await.claims;
    assert_eq!(more.len(), 4, "claims pass");
    let extend = ExtendRequest {
        partition: home,
        worker: worker("w"),
        ttl: TTL,
        items: claims.iter().map(holding).collect(),
    };
    assert_eq!(
        store.extend(extend).await.expect("an extend"),
        [Held::Ok; 4]
    );
    let mut settlements: Vec<_> = claims.iter().map(done).collect();
    settlements.extend(more.iter().map(|claimed| then(claimed, "b")));
    let stored = settle(&store, "w", settlements).await;
    assert!(
        stored
            .iter()
            .all(|s| matches!(s, tenure::store::SettleReply::Stored { .. }))
    );
    tick(&store).await;
    let again = RedisStore::connect(server.url()).await;
    assert!(
        again.is_ok(),
        "a worker can still join to work things off: {again:?}"
    );
    limit(&server, "0");
    start(&store, item("late-1")).await;
    loop {
        let claims = claim(&store, "w", 50).await.claims;
        if claims.is_empty() {
            break;
        }
        settle(&store, "w", claims.iter().map(done).collect()).await;
    }
    let counts = store.counts(home).await.expect("counts");
    assert_eq!(counts.finished[&Status::Completed], 21);
    assert_eq!((counts.running, counts.ready.len()), (0, 0));
}

// case 76
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_of_16_mib_holds_up_no_other_call() {
    let (server, elsewhere) = (RedisServer::start(), RedisServer::start());
    let (here, elsewhere) = (store(&server).await, store(&elsewhere).await);
    // The same work on another server takes the same time of this process: what is more is the waiting. A machine that
    // does other things too makes a call wait in some rounds, so most of them decide.
    let mut rounds = Vec::new();
    for round in 0..7 {
        let control = slowest_while(&here, &elsewhere, round).await;
        rounds.push((slowest_while(&here, &here, round).await, control));
    }
    let undisturbed = |(measured, control): &&(Duration, Duration)| {
        *measured < *control * 2 + Duration::from_millis(15)
    };
    let count = rounds.iter().filter(undisturbed).count();
    assert!(
        count > rounds.len() / 2,
        "slowest calls, and when the input was elsewhere: {rounds:?}"
    );
}

/// The slowest of the small calls to one store while an input of 16 MiB is claimed and read in another.
async fn slowest_while(small: &RedisStore, large: &RedisStore, round: usize) -> Duration {
    let input = Bytes::from(vec![7; 16 * 1024 * 1024]);
    let mut item = item(&format!("large-{round}"));
    item.first = vec![tenure::engine::FollowUp::Ready(crate::making::next(
        "a",
        crate::making::of_input(&input),
    ))];
    item.input = input.clone();
    start(large, item.clone()).await;
    let over = Arc::new(AtomicBool::new(false));
    let calls = tokio::spawn(slowest(small.clone(), over.clone()));
    let claims = claim(large, "w", 1).await.claims;
    assert_eq!(claims[0].input, None, "it does not come with the claim");
    let field = [tenure::ids::ValueField::Input];
    let values = large
        .values(&item.id, item.run, &field)
        .await
        .expect("values");
    assert!(values == [Some(input)], "the input comes back whole");
    over.store(true, Ordering::SeqCst);
    calls.await.expect("the calls")
}

async fn slowest(store: RedisStore, over: Arc<AtomicBool>) -> Duration {
    let mut slowest = Duration::ZERO;
    let id = crate::making::id("nobody");
    while !over.load(Ordering::SeqCst) {
        let began = tokio::time::Instant::now();
        store.header(&id).await.expect("a read");
        slowest = slowest.max(began.elapsed());
    }
    slowest
}

// case 36
#[tokio::test]
async fn a_payload_over_the_limit_is_refused_before_it_is_sent() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .max_payload(1000)
        .connect()
        .await
        .expect("a store");
    let mut large = item("order-1");
    large.input = Bytes::from(vec![0; 1001]);
    let before = server.info("stats", "total_net_input_bytes");
    let error = store.start(partition(&store, P0), vec![large]).await;
    let error = error.expect_err("it is too large");
    assert!(
        matches!(
            error,
            StoreError::TooLarge {
                size: 1001,
                limit: 1000,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(server.info("stats", "total_net_input_bytes") - before < 1000.0);
}
