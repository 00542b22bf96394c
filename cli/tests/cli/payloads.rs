//! Payloads on their way through the command line: the same bytes at both ends.

use std::time::Duration;

use serde_json::{Value, json};
use tenure::Workflow;

use crate::world::World;

/// A workflow whose result is its input, byte for byte, whatever it is.
fn pass() -> Workflow<(), ()> {
    Workflow::builder::<()>("pass")
        .delay("a-moment", Duration::from_millis(1))
        .build()
        .expect("a workflow")
}

/// A workflow whose handler reads the input and writes it again.
fn echo() -> Workflow<Value, Value> {
    Workflow::builder("echo")
        .task("say", async |value: Value| anyhow::Ok(value))
        .build()
        .expect("a workflow")
}

/// Starts, waits and prints the stored bytes.
fn through(world: &World, workflow: &str, input: &[&str]) -> Vec<u8> {
    let mut start = vec![
        "start",
        workflow,
        "--id",
        "p",
        "--if-exists",
        "replace-finished",
    ];
    start.extend(input);
    start.extend(["--timeout", "20s"]);
    world.ok(&start);
    let mut result = world.command(&["result", "p", "--msgpack"]);
    let result = result.output().expect("the program");
    assert!(result.status.success(), "{result:?}");
    result.stdout
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_lists_empty_maps_and_nothing_come_back_as_they_were() {
    // case 33
    let world = World::new();
    let worker = world.worker(&echo()).await;
    let input = r#"{"a":[],"m":{},"n":null}"#;
    let bytes = b"\x83\xa1a\x90\xa1m\x80\xa1n\xc0";
    crate::world::until("echo is published", async || {
        world.ok(&["definitions"]).contains("echo")
    })
    .await;
    assert_eq!(through(&world, "echo", &["--input", input]), bytes);
    let shown = world.ok_json(&["result", "p"]);
    assert_eq!(shown["result"].to_string(), input);
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_bytes_and_deep_nesting_come_back_as_they_were() {
    // case 34
    let world = World::new();
    let worker = world.worker(&pass()).await;
    crate::world::until("pass is published", async || {
        world.ok(&["definitions"]).contains("pass")
    })
    .await;
    let all: Vec<u8> = (0..=255).collect();
    let deep = [&b"\x81\xa1d".repeat(64)[..], b"\xc0"].concat();
    let keys = [&b"\x81\x01"[..]].concat().repeat(64);
    let payloads = [
        [b"\xc5\x01\x00", &all[..]].concat(),
        deep,
        [&keys[..], b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff"].concat(),
        b"\xcb\x3f\xf0\0\0\0\0\0\0".to_vec(),
    ];
    let file = world.redis.dir().join("payload");
    for bytes in payloads {
        std::fs::write(&file, &bytes).expect("a file");
        let raw = file.display().to_string();
        assert_eq!(through(&world, "pass", &["--input-msgpack", &raw]), bytes);
        let shown = world.ok(&["result", "p"]);
        let json = world.redis.dir().join("payload.json");
        std::fs::write(&json, shown).expect("a file");
        let json = format!("@{}", json.display());
        assert_eq!(through(&world, "pass", &["--input", &json]), bytes);
    }
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[test]
fn what_is_no_payload_is_said_and_nothing_is_sent() {
    let world = World::new();
    let said = |input: &str| {
        let said = world.run(&["start", "pass", "--input", input]);
        assert_eq!(said.code, 2, "{said:?}");
        said.err
    };
    assert!(
        said("{\"a\": }").contains(
            "`{\"a\": }` is no payload: this is no JSON: expected value at line 1 column 7"
        )
    );
    assert!(said("{\"$bytes\": \"%\"}").contains("`%` is no base64"));
    assert!(said("@/no/such/file").contains("`/no/such/file` cannot be read"));
    let file = world.redis.dir().join("garbage");
    std::fs::write(&file, b"\x92\x01\xc1").expect("a file");
    let file = file.display().to_string();
    let said = world.run(&["start", "pass", "--input-msgpack", &file]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("0xc1 at byte 2"), "{said:?}");
    assert_eq!(world.ok_json(&["definitions"]), json!([]));
}
