//! `queues`.

use tenure::{Client, Workflow};

use crate::world::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_tell_what_waits_and_that_nobody_reads_it() {
    let world = World::new();
    let one_look = ["queues", "--over", "0s"];
    assert!(world.ok(&one_look).starts_with("no queues"));
    let fetch = Workflow::builder("import")
        .queue("slow")
        .task("fetch", async |n: u32| anyhow::Ok(n))
        .build()
        .expect("a workflow");
    let client = Client::new(world.store().await);
    for n in 1..=3 {
        let start = client.start(&fetch, n).id(format!("i-{n}"));
        start.await.expect("a start");
    }
    let found = world.ok_json(&one_look);
    let queue = &found[0];
    assert_eq!(
        (&queue["queue"], &queue["ready"]),
        (&"slow".into(), &3.into())
    );
    assert_eq!(
        queue["workflow"], "import",
        "though no worker has published it"
    );
    assert_eq!(
        queue["head"],
        serde_json::json!({ "id": "i-1", "task": "fetch" })
    );
    assert_eq!(queue["no_worker"], true);
    assert!(queue["oldest_ms"].is_u64() && queue["change_per_second"].is_null());
    let told = world.ok(&["queues", "--over", "10ms"]);
    assert!(told.contains("+0.0/s"), "{told}");
    assert!(told.contains("3 of these tasks wait in lists that no worker reads"));

    let worker = world.worker(&fetch).await;
    until("a worker reads it", async || {
        let found = world.ok_json(&one_look);
        found[0]["workers"] == 1 && found[0]["ready"] == 0
    })
    .await;
    let table = world.ok(&one_look);
    assert!(table.contains("import:"), "{table}");
    assert!(!table.contains("no worker"), "{table}");
    worker.shutdown();
    worker.join().await.expect("its end");
}
