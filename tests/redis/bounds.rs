//! What grows with use, and what does not: pruning, memory, large outputs.

use std::time::Duration;

use bytes::Bytes;
use tenure::{
    Client, RedisStore, Status, Worker, Workflow,
    client::ClientError,
    store::{ErrorKind, Inspect, SettleReply, Store, Verdict},
};
use tenure_test_support::RedisServer;

use crate::{
    full::others_go_on,
    making::{
        P0, claim, done, item, partition, settle, settling, start, start_many, store, ticking,
    },
    proxy::Proxy,
};

/// Instances that were completed long ago, as they are stored.
const FINISHED: &str = "
local prefix, count, at = '{tenure:0}:', tonumber(ARGV[1]), ARGV[2]
for i = 1, count do
  local id = 'old-' .. i
  redis.call('HSET', prefix .. 'instance:' .. id, 'v', '1', 'run', ARGV[3], 'status', 'completed',
    'about', 'w 0707070707070707 default 3 ' .. at, 'times', at .. ' ' .. at .. ' out:a', 'input', 'x', 'out:a', 'x',
    'task:a', 'completed 1 n 0 0 w -')
  redis.call('RPUSH', prefix .. 'done:completed', at .. '\\0' .. id .. '\\0' .. string.sub(ARGV[3], -12))
end";

/// How many instances are pruned: a million, scaled down to what a test has time for.
const MANY: usize = 100_000;

// case 32
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mass_of_finished_instances_is_pruned_in_short_calls_and_others_are_served_meanwhile() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let run = tenure::ids::RunId::unique().to_string();
    let count = MANY.to_string();
    server.run::<()>(&["EVAL", FINISHED, "0", &count, "1700000000000", &run]);
    server.run::<()>(&["CONFIG", "SET", "slowlog-log-slower-than", "50000"]);
    server.run::<()>(&["SLOWLOG", "RESET"]);
    let pruning = tokio::spawn({
        let store = store.clone();
        async move {
            let mut request = ticking(&store, P0);
            request.retention.completed = Duration::ZERO;
            let (mut pruned, mut calls) = (0, 0);
            loop {
                let reply = store.tick(request.clone()).await.expect("a tick");
                assert!(
                    reply.pruned <= request.prune,
                    "a call does no more than it was asked to"
                );
                pruned += reply.pruned as usize;
                calls += 1;
                if !reply.again {
                    return (pruned, calls);
                }
            }
        }
    });
    let mut served = 0;
    while !pruning.is_finished() {
        start(&store, item(&format!("live-{served}"))).await;
        let claims = claim(&store, "w", 1).await.claims;
        let settled = settle(&store, "w", claims.iter().map(done).collect()).await;
        assert_eq!(settled, [SettleReply::Stored { next: None }]);
        served += 1;
    }
    let (pruned, calls) = pruning.await.expect("the pruning");
    let slow: usize = server.run(&["SLOWLOG", "LEN"]);
    println!("{pruned} pruned in {calls} calls, {served} served meanwhile, {slow} over 50 ms");
    assert_eq!(pruned, MANY);
    assert!(served > 20, "only {served} were served");
    // A machine that is busy may take the processor away from the server now and then; a call whose work is not bounded
    // is slow each time.
    assert!(
        slow * 100 < calls,
        "{slow} of {calls} calls took over 50 ms"
    );
    let left: usize = server.run(&["DBSIZE"]);
    assert!(left < served + 30, "{left} keys are left");
}

// case 35
#[tokio::test]
async fn memory_is_flat_once_retention_has_passed() {
    let (server, clock) = RedisServer::with_faketime(1_790_000_000_000);
    let store = store(&server).await;
    let (mut keys, mut memory) = (Vec::new(), Vec::new());
    let day = i64::try_from(tenure::store::Retention::default().completed.as_millis());
    for round in 0..5 {
        start_many(&store, &format!("round-{round}-"), 2000).await;
        loop {
            let claims = claim(&store, "w", 100).await.claims;
            if claims.is_empty() {
                break;
            }
            settle(&store, "w", claims.iter().map(done).collect()).await;
        }
        let counts = store.counts(partition(&store, P0)).await.expect("counts");
        assert_eq!(
            counts.finished[&Status::Completed],
            2000,
            "those of the last round are gone"
        );
        keys.push(server.run::<usize>(&["DBSIZE"]));
        memory.push(server.info("memory", "used_memory"));
        // The default retention passes, and a keeper comes by.
        clock.step(day.expect("a duration") + 60_000);
        while store.tick(ticking(&store, P0)).await.expect("a tick").again {}
    }
    let left: Vec<String> = server.run(&["KEYS", "*round*"]);
    assert!(left.is_empty(), "{} keys are left", left.len());
    println!("{keys:?} keys, {memory:?} bytes");
    assert!(keys.iter().all(|count| *count == keys[0]), "{keys:?}");
    let (first, last) = (memory[1], memory[4]);
    assert!(last < first * 1.05, "{memory:?}");
}

/// `make` makes so many bytes, `measure` counts them.
fn making() -> Workflow<usize, usize> {
    Workflow::builder("large")
        .task("make", async |n: usize| anyhow::Ok("x".repeat(n)))
        .task("measure", async |text: String| anyhow::Ok(text.len()))
        .build()
        .expect("a workflow")
}

// case 36
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_of_1_and_64_mb_are_sent_and_stored_with_a_tenth_of_overhead_at_most() {
    let server = RedisServer::start();
    let limit = 64_000_100;
    let store = RedisStore::builder(server.url()).max_payload(limit);
    let store = store.connect().await.expect("a store");
    let flow = making();
    let worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .expect("a worker")
        .spawn();
    let client = Client::new(store.clone());
    for size in [1_000_000, 64_000_000] {
        let read = |name: &str| server.info("stats", name);
        let before = (
            read("total_net_input_bytes"),
            read("total_net_output_bytes"),
        );
        let handle = client.start(&flow, size).await.expect("a start");
        assert_eq!(handle.result().await.expect("a result"), size);
        let sent = read("total_net_input_bytes") - before.0;
        let got = read("total_net_output_bytes") - before.1;
        let snapshot = handle.snapshot().await.expect("a snapshot");
        let stored: usize = snapshot.values.values().sum();
        println!("{size}: {sent} sent, {got} read, {stored} stored");
        // The scripts are sent once, too.
        let bound = u32::try_from(size + size / 10 + 100_000).expect("a size");
        assert!(
            sent < f64::from(bound) && got < f64::from(bound),
            "{sent} sent, {got} read"
        );
        assert!(stored < size + size / 10, "{stored} stored");
    }
    // Over the limit: nothing is sent, and both numbers are told.
    let before = server.info("stats", "total_net_input_bytes");
    let handle = client.start(&flow, limit + 1).await.expect("a start");
    let error = handle.result().await.expect_err("it is too large");
    let ClientError::Failed { error, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.kind, ErrorKind::Permanent);
    let (length, most) = (format!("{} bytes", limit + 6), format!("limit is {limit}"));
    assert!(
        error.message.contains(&length) && error.message.contains(&most),
        "{}",
        error.message
    );
    assert!(server.info("stats", "total_net_input_bytes") - before < 100_000.0);
    worker.shutdown();
    worker.join().await.expect("its end");
}

// case 36
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_of_16_mb_on_its_way_holds_up_no_other_call() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.port());
    let store = RedisStore::connect(proxy.url()).await.expect("a store");
    start(&store, item("large")).await;
    let claims = claim(&store, "w", 1).await.claims;
    let mut large = done(&claims[0]);
    if let Verdict::Completed { output, .. } = &mut large.verdict {
        *output = Some(Bytes::from(vec![7; 16_000_000]));
    }
    proxy.hold();
    let sending = tokio::spawn({
        let (store, request) = (store.clone(), settling(&store, "w", vec![large]));
        async move { store.settle(request).await }
    });
    others_go_on(&store, &proxy).await;
    proxy.release();
    let stored = sending.await.expect("the task").expect("a settlement");
    assert_eq!(stored, [SettleReply::Stored { next: None }]);
}
