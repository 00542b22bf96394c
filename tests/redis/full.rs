//! A server whose memory is used up.

use bytes::Bytes;
use tenure::store::{ExtendRequest, Held, Inspect, Status, Store, StoreError, redis::RedisStore};
use tenure_test_support::RedisServer;

use crate::{
    making::{
        P0, TTL, claim, done, holding, item, partition, settle, start, start_many, store, then,
        tick, worker,
    },
    proxy::Proxy,
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
    limit(&server, "100kb");
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
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let store = RedisStore::connect(proxy.url()).await.expect("a store");
    let input = Bytes::from(vec![7; 16 * 1024 * 1024]);
    let mut large = item("large");
    large.first = vec![tenure::engine::FollowUp::Ready(crate::making::next(
        "a",
        crate::making::of_input(&input),
    ))];
    large.input = input.clone();

    proxy.hold();
    let starting = tokio::spawn({
        let (store, large) = (store.clone(), large.clone());
        async move { start(&store, large).await }
    });
    others_go_on(&store, &proxy).await;
    proxy.release();
    starting.await.expect("the start");

    let claims = claim(&store, "w", 100).await.claims;
    let claimed = claims.iter().find(|claimed| claimed.ticket.id == large.id);
    let claimed = claimed.expect("the large one");
    assert_eq!(claimed.input, None, "it does not come with the claim");

    proxy.hold();
    let reading = tokio::spawn({
        let (store, large) = (store.clone(), large.clone());
        let field = [tenure::ids::ValueField::Input];
        async move { store.values(&large.id, large.run, &field).await }
    });
    others_go_on(&store, &proxy).await;
    proxy.release();
    let values = reading.await.expect("the task").expect("values");
    assert!(values == [Some(input)], "the input comes back whole");
}

/// While the large payload is stuck on its way, everybody else's calls are answered.
pub(crate) async fn others_go_on(store: &RedisStore, proxy: &Proxy) {
    crate::trouble::until(async || proxy.is_holding()).await;
    for i in 0..20 {
        let small = start(
            store,
            item(&format!("small-{}", tenure::ids::RunId::unique())),
        )
        .await;
        let read = store.header(&small.id).await.expect("a read");
        assert!(read.is_some(), "{i}");
    }
    let mut claiming = crate::making::claiming(store, "w2", 0);
    claiming.parking = tenure::store::Parking::Never;
    store.claim(claiming).await.expect("a claim");
    assert!(proxy.is_holding(), "the payload is still on its way");
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
