//! `workers` and `definitions`.

use tenure::Workflow;

use crate::world::{World, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_definitions_are_listed_as_a_table_and_in_json() {
    let world = World::new();
    assert_eq!(world.ok(&["workers"]), "no workers\n");
    assert_eq!(world.ok_json(&["workers"]), serde_json::json!([]));
    assert!(world.ok(&["definitions"]).starts_with("no definitions"));

    let echo = Workflow::builder("echo")
        .task("say", async |text: String| anyhow::Ok(text))
        .build()
        .expect("a workflow");
    let worker = world.worker(&echo).await;
    until("the worker says that it is there", async || {
        world.ok(&["workers"]).contains("echo:")
    })
    .await;
    let listed = world.ok_json(&["workers"]);
    assert_eq!(listed[0]["busy"], 0);
    assert_eq!(listed[0]["pid"], std::process::id());
    assert_eq!(listed[0]["queues"], serde_json::json!(["default"]));
    let table = world.ok(&["definitions"]);
    assert!(table.starts_with("WORKFLOW  DEFINITION"), "{table}");
    let known = world.ok_json(&["definitions"]);
    assert_eq!(known[0]["workflow"], "echo");
    assert_eq!(known[0]["current"], true);
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[test]
fn a_redis_that_is_not_there_is_said_with_its_address_and_an_exit_code() {
    let world = World::new();
    let said = world.run(&["workers", "--redis", "redis://u:s3cret@127.0.0.1:1"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("127.0.0.1:1"), "{said:?}");
    assert!(!said.err.contains("s3cret"), "{said:?}");
}
