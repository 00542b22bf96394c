//! The doctor: damage that was done by hand is found by name and mended, and where nothing is wrong it is silent.

use std::time::Duration;

use tenure::{
    Client, RedisStore, Status, Worker, WorkerHandle, Workflow,
    ids::Nonce,
    store::{
        ClaimRequest, Inspect, Parking, Store,
        redis::{Doctor, Outcome, Problem, Report},
    },
};
use tenure_test_support::{RedisCluster, RedisServer};

use crate::making::{P0, id, partition, store, worker};

/// `take`, a signal, `ship`.
fn order() -> Workflow<u32, u32> {
    Workflow::builder("order")
        .task("take", async |n: u32| anyhow::Ok(n))
        .await_signal::<u32>("paid")
        .task("ship", async |n: u32| anyhow::Ok(n + 1))
        .build()
        .expect("a workflow")
}

fn doctor(store: &RedisStore) -> Doctor {
    store.doctor().pause(Duration::from_millis(50)).batch(7)
}

fn named(report: &Report) -> Vec<String> {
    report
        .findings
        .iter()
        .map(|finding| finding.key.clone())
        .collect()
}

async fn examine(store: &RedisStore) -> Report {
    let mut report = doctor(store).examine().await.expect("an examination");
    // Some tests have no worker on purpose.
    report
        .findings
        .retain(|finding| !matches!(finding.problem, Problem::NoWorker { .. }));
    report
}

async fn mend(store: &RedisStore) -> Report {
    let mut report = doctor(store).mend().await.expect("an examination");
    report
        .findings
        .retain(|finding| !matches!(finding.problem, Problem::NoWorker { .. }));
    report
}

fn working(store: &RedisStore, flow: &Workflow<u32, u32>) -> WorkerHandle {
    Worker::builder(store.clone())
        .workflow(flow)
        .claim_ttl(Duration::from_secs(1))
        .reap_interval(Duration::from_millis(100))
        .poll_interval(Duration::from_millis(50))
        .build()
        .expect("a worker")
        .spawn()
}

async fn stop(worker: WorkerHandle) {
    worker.shutdown();
    worker.join().await.expect("its end");
}

async fn publish(store: &RedisStore, flow: &Workflow<u32, u32>) {
    let graph = flow.graph();
    let bytes = graph.to_bytes().expect("bytes");
    store
        .publish(graph.name(), graph.hash(), bytes)
        .await
        .expect("a publication");
}

/// Claims like a worker that dies then.
async fn claim_and_die(store: &RedisStore, flow: &Workflow<u32, u32>, want: u16, ttl: u64) {
    let request = ClaimRequest {
        partition: partition(store, P0),
        worker: worker("dead"),
        nonce: Nonce::random(),
        want,
        lists: flow.graph().lists(),
        ttl: Duration::from_millis(ttl),
        limits: std::sync::Arc::default(),
        parking: Parking::Never,
    };
    let reply = store.claim(request).await.expect("a claim");
    assert_eq!(reply.claims.len(), usize::from(want));
}

async fn until_status(client: &Client, id: &str, wanted: Status) {
    let handle = client.handle(id).await.expect("an instance");
    for _ in 0..1000 {
        if handle.status().await.expect("a status") == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("`{id}` is not {wanted}: {:?}", handle.snapshot().await);
}

async fn until_waiting(store: &RedisStore, count: usize) {
    for _ in 0..1000 {
        let counts = store.counts(partition(store, P0)).await.expect("counts");
        if counts.waiting == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} instances do not wait");
}

const INSTANCE: &str = "{tenure:0}:instance:";

fn run(server: &RedisServer, words: &[&str]) {
    server.run::<redis::Value>(words);
}

// case 39
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_by_hand_is_found_by_name_and_mended_and_the_instances_complete() {
    let server = RedisServer::start();
    let (store, flow) = (store(&server).await, order());
    let client = Client::new(store.clone());
    publish(&store, &flow).await;
    for name in [
        "done",
        "not-waiting",
        "no-wait",
        "no-status",
        "no-open",
        "no-format",
        "no-times",
    ] {
        client.start(&flow, 1).id(name).await.expect("a start");
    }
    let first = working(&store, &flow);
    until_waiting(&store, 7).await;
    client.signal("done", "paid", &1).await.expect("a signal");
    until_status(&client, "done", Status::Completed).await;
    stop(first).await;
    for name in ["no-claim", "no-running"] {
        client.start(&flow, 1).id(name).await.expect("a start");
    }
    claim_and_die(&store, &flow, 2, 60_000).await;
    client
        .start(&flow, 1)
        .id("no-entry")
        .await
        .expect("a start");
    client
        .start(&flow, 1)
        .id("not-paused")
        .await
        .expect("a start");
    client
        .pause("not-paused", "to look", "ada")
        .await
        .expect("a pause");
    assert_eq!(
        named(&examine(&store).await),
        [""; 0],
        "nothing is wrong yet"
    );

    let list = flow.graph().lists().remove(0);
    let ready = format!("{{tenure:0}}:ready:{list}");
    let entries: Vec<String> = server.run(&["LRANGE", &ready, "0", "-1"]);
    let entry = entries
        .iter()
        .find(|entry| entry.starts_with("no-entry"))
        .expect("its entry");
    run(&server, &["LREM", &ready, "1", entry]);
    run(&server, &["DEL", "{tenure:0}:claim:no-claim:take"]);
    let tickets: Vec<String> = server.run(&["ZRANGE", "{tenure:0}:running", "0", "-1"]);
    let ticket = tickets
        .iter()
        .find(|ticket| ticket.contains("\0no-running\0"))
        .expect("its ticket");
    run(&server, &["ZREM", "{tenure:0}:running", ticket]);
    run(&server, &["DEL", "{tenure:0}:done:completed"]);
    run(&server, &["SREM", "{tenure:0}:paused", "not-paused"]);
    run(&server, &["SREM", "{tenure:0}:waiting", "not-waiting"]);
    run(&server, &["SADD", "{tenure:0}:waiting", "ghost"]);
    run(&server, &["SET", "{tenure:0}:claim:ghost:take", "w"]);
    run(&server, &["RPUSH", "{tenure:0}:errors:ghost", "x"]);
    run(&server, &["RPUSH", "{tenure:0}:parked:ghost", "x"]);
    run(&server, &["RPUSH", "{tenure:0}:done:failed", "nonsense"]);
    run(&server, &["SREM", "{tenure:0}:lists", &list.to_string()]);
    let at = |name: &str| [INSTANCE, name].concat();
    run(&server, &["HSET", &at("no-wait"), "waits", "nonsense"]);
    run(&server, &["HSET", &at("no-status"), "status", "nonsense"]);
    run(&server, &["HSET", &at("no-open"), "open", "7"]);
    run(&server, &["HDEL", &at("no-format"), "v"]);
    run(&server, &["HSET", &at("no-times"), "times", "nonsense"]);

    let report = examine(&store).await;
    assert!(!report.is_well());
    let found = named(&report);
    let expected = [
        at("no-entry"),
        at("no-claim"),
        at("no-running"),
        at("done"),
        at("not-paused"),
        at("not-waiting"),
        at("no-wait"),
        at("no-status"),
        at("no-open"),
        at("no-format"),
        at("no-times"),
        ready.clone(),
        "{tenure:0}:waiting".into(),
        "{tenure:0}:claim:ghost:take".into(),
        "{tenure:0}:errors:ghost".into(),
        "{tenure:0}:parked:ghost".into(),
        "{tenure:0}:done:failed".into(),
    ];
    for key in &expected {
        assert!(found.contains(key), "{key} was not found: {report:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{report:#?}");

    let report = mend(&store).await;
    assert!(report.is_well(), "{report:#?}");
    assert_eq!(
        named(&mend(&store).await),
        [""; 0],
        "a second time there is nothing to mend"
    );

    let claim = "{tenure:0}:claim:no-running:take";
    run(&server, &["PEXPIRE", claim, "1"]);
    let last = working(&store, &flow);
    client
        .resume("not-paused", "looked", "ada")
        .await
        .expect("a resume");
    until_waiting(&store, 10).await;
    for name in [
        "not-waiting",
        "no-wait",
        "no-status",
        "no-open",
        "no-format",
        "no-times",
        "no-claim",
        "no-running",
        "no-entry",
        "not-paused",
    ] {
        client.signal(name, "paid", &1).await.expect("a signal");
        until_status(&client, name, Status::Completed).await;
    }
    assert_eq!(named(&examine(&store).await), [""; 0]);
    stop(last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_told_is_named_with_advice_and_left() {
    let server = RedisServer::start();
    let (store, flow) = (store(&server).await, order());
    let client = Client::new(store.clone());
    publish(&store, &flow).await;
    for name in ["record", "newer", "about"] {
        client.start(&flow, 1).id(name).await.expect("a start");
    }
    client
        .start(&flow, 1)
        .id("later")
        .delay(Duration::from_secs(900))
        .await
        .expect("a start");
    let at = |name: &str| [INSTANCE, name].concat();
    run(&server, &["HSET", &at("record"), "task:take", "nonsense"]);
    run(&server, &["HSET", &at("newer"), "v", "2"]);
    run(&server, &["HSET", &at("about"), "about", "nonsense"]);
    run(&server, &["DEL", "{tenure:0}:delayed"]);
    run(&server, &["RPUSH", "{tenure:0}:waiting", "a list"]);
    run(
        &server,
        &["SET", "{tenure:0}:novelty:1", "of a newer version"],
    );
    let looked = doctor(&store).examine().await.expect("an examination");
    let promised = looked.findings.iter().find(|f| f.key == at("later"));
    let promised = promised.expect("a finding").outcome;
    assert!(
        matches!(promised, Outcome::Left(_)),
        "nothing is promised that `--fix` does not do: {promised:?}"
    );
    let report = mend(&store).await;
    let mut found = named(&report);
    found.sort();
    let mut expected = ["about", "later", "newer", "record"].map(at).to_vec();
    expected.push("{tenure:0}:waiting".to_owned());
    assert_eq!(found, expected, "{report:#?}");
    for finding in &report.findings {
        let Outcome::Left(advice) = finding.outcome else {
            panic!("{finding}: {:?}", finding.outcome);
        };
        assert!(!advice.is_empty());
    }
    let noted = report
        .notes
        .iter()
        .any(|note| note.to_string().contains("novelty:1"));
    assert!(noted, "{:?}", report.notes);
    assert_eq!(server.run::<usize>(&["EXISTS", "{tenure:0}:novelty:1"]), 1);
    let garbage: String = server.run(&["HGET", &at("record"), "task:take"]);
    assert_eq!(garbage, "nonsense");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_aside_comes_back_when_it_can_be_read() {
    let server = RedisServer::start();
    let (store, flow) = (store(&server).await, order());
    let client = Client::new(store.clone());
    let worker = working(&store, &flow);
    let handle = client
        .start(&flow, 1)
        .id("later")
        .delay(Duration::from_millis(200))
        .await
        .expect("a start");
    let key = [INSTANCE, "later"].concat();
    run(&server, &["HSET", &key, "v", "2"]);
    let home = partition(&store, P0);
    while store.counts(home).await.expect("counts").aside == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let report = mend(&store).await;
    assert!(!report.is_well(), "{report:#?}");
    // As an upgrade makes it readable; it was promoted unread, so its record says `delayed`.
    run(&server, &["HSET", &key, "v", "1"]);
    run(&server, &["HSET", &key, "task:take", "ready 0 - 0 0 - -"]);
    let report = mend(&store).await;
    assert!(
        report.is_well() && !report.findings.is_empty(),
        "{report:#?}"
    );
    until_waiting(&store, 1).await;
    handle.signal("paid", &41).await.expect("a signal");
    assert_eq!(handle.result().await.expect("a result"), 42);
    assert_eq!(store.counts(home).await.expect("counts").aside, 0);
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_without_a_worker_are_named() {
    let server = RedisServer::start();
    let (store, flow) = (store(&server).await, order());
    publish(&store, &flow).await;
    Client::new(store.clone())
        .start(&flow, 1)
        .id("alone")
        .await
        .expect("a start");
    let report = doctor(&store).examine().await.expect("an examination");
    let [finding] = &report.findings[..] else {
        panic!("{report:#?}");
    };
    assert!(
        finding
            .to_string()
            .contains("1 live instance(s) of `order`"),
        "{finding}"
    );
    let worker = working(&store, &flow);
    until_waiting(&store, 1).await;
    let report = doctor(&store).examine().await.expect("an examination");
    assert_eq!(report.findings, []);
    stop(worker).await;
}

#[tokio::test]
async fn who_may_not_ask_for_settings_is_told_so_and_nothing_fails() {
    let server = RedisServer::start();
    run(
        &server,
        &[
            "ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all", "-info", "-config",
        ],
    );
    let url = server.url_as("app", "s3cret");
    let store = RedisStore::connect(url).await.expect("a store");
    let report = examine(&store).await;
    assert!(report.is_well());
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        notes
            .iter()
            .filter(|note| note.contains("could not be looked at"))
            .count(),
        2,
        "{notes:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_cluster_all_partitions_are_looked_at_and_mended() {
    let cluster = RedisCluster::start();
    let store = RedisStore::builder(cluster.url())
        .partitions(3)
        .connect()
        .await
        .expect("a store");
    let flow = order();
    publish(&store, &flow).await;
    let client = Client::new(store.clone());
    for i in 0..30 {
        client
            .start(&flow, i)
            .id(format!("order-{i}"))
            .await
            .expect("a start");
    }
    assert_eq!(named(&examine(&store).await), [""; 0]);
    let list = flow.graph().lists().remove(0);
    for p in 0..3 {
        let ready = format!("{{tenure:{p}}}:ready:{list}");
        cluster.run_for::<i64>(&ready, &["DEL", &ready]);
    }
    let report = mend(&store).await;
    assert_eq!(report.findings.len(), 30, "{report:#?}");
    assert!(report.is_well());
    let worker = working(&store, &flow);
    for i in 0..30 {
        let handle = client
            .handle_typed::<u32>(format!("order-{i}"))
            .await
            .expect("an instance");
        handle.signal("paid", &i).await.expect("a signal");
        assert_eq!(handle.result().await.expect("a result"), i + 1);
    }
    assert_eq!(
        store
            .snapshot(&id("order-0"))
            .await
            .expect("a read")
            .map(|s| s.open),
        Some(0)
    );
    stop(worker).await;
}
