//! `keys` and `reap`.

use std::{sync::Arc, time::Duration};

use tenure::{
    Workflow,
    ids::{ListName, Nonce, Partition, QueueName, WorkerId},
    store::{ClaimRequest, Parking, Store},
};

use crate::world::{World, publish, until};

fn sleeper() -> Workflow<String, String> {
    Workflow::builder("sleeper")
        .task("sleep", async |text: String| {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            anyhow::Ok(text)
        })
        .build()
        .expect("a workflow")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_names_what_is_there_and_lines_that_work() {
    let world = World::new();
    let workflow = sleeper();
    publish(&world, &workflow).await;
    world.ok(&["start", "sleeper", "--id", "it's-1", "--input", "\"x\""]);
    let waiting = world.ok(&["keys", "it's-1"]);
    assert!(waiting.contains("ready list of queue default"), "{waiting}");
    let worker = world.worker(&workflow).await;
    until("it runs", async || {
        world
            .ok(&["keys", "it's-1"])
            .contains("claim of task sleep")
    })
    .await;
    let keys = world.ok_json(&["keys", "it's-1"]);
    let keys = keys.as_array().expect("an array");
    let claim = keys
        .iter()
        .find(|key| key["purpose"] == "claim of task sleep")
        .expect("the claim");
    assert!(
        claim["ttl_ms"].as_u64().is_some_and(|ttl| ttl <= 2000),
        "{claim}"
    );
    for key in keys {
        let name = key["key"].as_str().expect("a name");
        let kind: String = world.redis.run(&["TYPE", name]);
        assert_eq!(key["type"], kind.as_str(), "{key}");
        let look = key["look"].as_str().expect("a line");
        let port = world.redis.port();
        let look = look.replace("redis-cli", &format!("redis-cli -p {port}"));
        let shown = std::process::Command::new("sh")
            .args(["-c", &look])
            .output();
        let shown = shown.expect("a shell");
        assert!(shown.status.success() && shown.stdout.len() > 1, "{look}");
    }
    let own: Vec<_> = keys.iter().filter(|key| key["own"] == true).collect();
    assert_eq!(own.len(), 2, "{own:?}");
    world.ok(&["terminate", "it's-1"]);
    let over = world.ok(&["keys", "it's-1"]);
    assert!(over.contains("instances that are terminated"), "{over}");
    let none = world.run(&["keys", "nobody"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert!(none.err.contains("`nobody`"), "{none:?}");
    crate::world::stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reap_takes_back_what_a_dead_worker_held_and_says_so() {
    let world = World::new();
    let workflow = sleeper();
    publish(&world, &workflow).await;
    world.ok(&["start", "sleeper", "--id", "old", "--input", "\"x\""]);
    world.ok(&["terminate", "old"]);
    ended_a_year_ago(&world, "old");
    assert!(world.ok(&["reap"]).starts_with("nothing to do"));
    world.ok(&["show", "old"]);
    world.ok(&["start", "sleeper", "--id", "one", "--input", "\"x\""]);
    claimed_and_forgotten(&world).await;
    let mut said = world.ok_json(&["reap"]);
    until("its claim has run out", async || {
        if said["requeued"] == 0 {
            said = world.ok_json(&["reap"]);
        }
        said["requeued"] == 1
    })
    .await;
    assert_eq!(said["tasks"][0]["id"], "one");
    assert_eq!(said["tasks"][0]["became"], "requeued");
    assert_eq!(said["tasks"][0]["crashes"], 1);
    assert!(world.ok(&["reap"]).starts_with("nothing to do"));
    claimed_and_forgotten(&world).await;
    let mut text = String::new();
    until("again", async || {
        text = world.ok(&["reap"]);
        text.starts_with("tasks: 1 ready again")
    })
    .await;
    assert!(text.contains("ready again (crash 2)"), "{text}");
}

/// A claim as a worker makes it that dies at once: it runs out in a moment.
async fn claimed_and_forgotten(world: &World) {
    let request = ClaimRequest {
        partition: Partition::default(),
        worker: WorkerId::new("dead-worker").expect("a worker id"),
        nonce: Nonce::random(),
        want: 1,
        lists: vec![ListName {
            queue: QueueName::default(),
            definition: sleeper().graph().hash(),
        }],
        ttl: Duration::from_millis(100),
        limits: Arc::default(),
        parking: Parking::Never,
    };
    let reply = world.store().await.claim(request).await.expect("a claim");
    assert_eq!(reply.claims.len(), 1);
}

/// Longer ago than a worker with defaults would keep it.
fn ended_a_year_ago(world: &World, id: &str) {
    let (record, list) = (
        format!("{{tenure:0}}:instance:{id}"),
        "{tenure:0}:done:terminated",
    );
    let ended: i64 = world.redis.run(&["HGET", &record, "finished_at"]);
    let entry: String = world.redis.run(&["LINDEX", list, "0"]);
    let then = (ended - 365 * 24 * 3600 * 1000).to_string();
    let moved = entry.replace(&ended.to_string(), &then);
    assert_ne!(moved, entry);
    world
        .redis
        .run::<i64>(&["HSET", &record, "finished_at", &then]);
    world.redis.run::<()>(&["LSET", list, "0", &moved]);
}
