//! The library of functions, where the server makes a difference: a cluster, rights, no memory left. That functions store
//! what a client stores is shown with the command line.

use std::collections::BTreeSet;

use redis::{FromRedisValue, RedisError};
use tenure::store::{Inspect, Status, StoreError, redis::RedisStore};
use tenure_test_support::{RedisCluster, RedisServer};

use crate::making::{id, item, start};

fn call<T: FromRedisValue>(
    server: &RedisServer,
    name: &str,
    key: Option<&str>,
    args: &[&str],
) -> Result<T, RedisError> {
    let keys = if key.is_some() { "1" } else { "0" };
    let mut words = vec!["FCALL", name, keys];
    words.extend(key);
    words.push("tenure");
    words.extend(args);
    server.try_run(&words)
}

fn says<T: std::fmt::Debug>(answer: Result<T, RedisError>, what: &str) {
    let error = answer.expect_err(what).to_string();
    assert!(error.contains(what), "{error}");
}

async fn status(store: &RedisStore, name: &str) -> Status {
    let header = store.header(&id(name)).await.expect("a read");
    header.expect("an instance").status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_cluster_a_key_of_the_partition_leads_to_the_instance() {
    let cluster = RedisCluster::start();
    let store = RedisStore::builder(cluster.url())
        .partitions(5)
        .connect()
        .await
        .expect("a store");
    assert_eq!(store.install_functions().await.expect("installed"), None);
    let found = store.installed_functions().await.expect("a read");
    assert!(found.expect("a library").current);
    let definitions = cluster.owner(cluster.slot("{tenure}:meta"));
    let mut seen = BTreeSet::new();
    for number in 0..20 {
        let name = format!("order-{number}");
        start(&store, item(&name)).await;
        let home = id(&name).partition(tenure::store::Store::partitions(&store));
        let key = format!("{{tenure:{home}}}:meta");
        let node = &cluster.nodes()[cluster.owner(cluster.slot(&key))];
        let pause = |key: Option<&str>| call::<String>(node, "tenure_pause", key, &[&name]);
        says(
            pause(None),
            "this is a cluster: give the key of a partition",
        );
        says(
            pause(Some(&format!("meta:{{tenure:{home}}}"))),
            "must be one of a partition of `tenure`",
        );
        assert_eq!(status(&store, &name).await, Status::Running);
        assert_eq!(pause(Some(&key)).expect("paused"), "OK");
        assert_eq!(status(&store, &name).await, Status::Paused);
        let paused: Vec<String> =
            call(node, "tenure_list", Some(&key), &["paused", "100"]).expect("a list");
        assert!(paused.contains(&name), "{paused:?}");
        let begin = call::<String>(node, "tenure_start", Some(&key), &["w", &name]);
        let near = cluster.owner(cluster.slot(&key)) == definitions;
        seen.insert(near);
        says(
            begin,
            if near {
                "no workflow `w` was published in `tenure`; there is: none"
            } else {
                "this needs data of another node: use the command `tenure`"
            },
        );
        let other = format!("{{tenure:{}}}:meta", (home.number() + 1) % 5);
        let node = &cluster.nodes()[cluster.owner(cluster.slot(&other))];
        let right = format!("`{name}` lives in partition {home}: give the key {key}");
        says(
            call::<String>(node, "tenure_pause", Some(&other), &[&name]),
            &right,
        );
    }
    assert_eq!(seen.len(), 2, "nodes with and without the definitions");
    assert!(store.remove_functions().await.expect("removed").is_some());
    assert_eq!(store.installed_functions().await.expect("a read"), None);
}

#[tokio::test]
async fn a_user_without_info_may_call_and_one_without_function_may_not_install() {
    let server = RedisServer::start();
    let store = RedisStore::connect(&server.url()).await.expect("a store");
    store.install_functions().await.expect("installed");
    start(&store, item("order-1")).await;
    let rights = [
        "ACL",
        "SETUSER",
        "app",
        "reset",
        "on",
        ">pw",
        "~{tenure:*",
        "~{tenure}:*",
        "&{tenure:*",
    ];
    let more = ["+@all", "-@admin", "-@dangerous", "-function"];
    server.run::<()>(&[&rights[..], &more[..]].concat());
    let client = redis::Client::open(server.url_as("app", "pw")).expect("an address");
    let mut connection = client.get_connection().expect("a connection");
    let mut cmd = redis::cmd("FCALL");
    cmd.arg("tenure_pause").arg(0).arg("tenure").arg("order-1");
    assert_eq!(cmd.query::<String>(&mut connection).expect("paused"), "OK");
    let app = RedisStore::connect(server.url_as("app", "pw"))
        .await
        .expect("a store");
    let error = app.install_functions().await.expect_err("no right");
    assert!(matches!(error, StoreError::Right { .. }), "{error:?}");
}

#[tokio::test]
async fn when_memory_is_used_up_a_cancel_passes_and_a_start_is_refused() {
    let server = RedisServer::start();
    let store = RedisStore::connect(&server.url()).await.expect("a store");
    store.install_functions().await.expect("installed");
    start(&store, item("order-1")).await;
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    says(
        call::<String>(&server, "tenure_start", None, &["w", "order-2"]),
        "maxmemory",
    );
    assert_eq!(
        call::<String>(&server, "tenure_cancel", None, &["order-1"]).expect("cancelled"),
        "OK"
    );
    assert_eq!(status(&store, "order-1").await, Status::Cancelled);
}
