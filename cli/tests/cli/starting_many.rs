//! `start --from`.

use serde_json::json;
use tenure::Client;

use crate::{
    starting::{double, fed},
    terminal::Terminal,
    world::{World, publish},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_started_whole_or_not_at_all() {
    let world = World::new();
    publish(&world, &double()).await;
    let file = world.redis.dir().join("many.jsonl");
    let path = file.display().to_string();
    let lines = "{\"id\": \"a\", \"input\": 1}\n\n{\"id\": \"b\", \"inptu\": 1}\nnonsense\n{\"labels\": {\"a\": 1}}\n{\"id\": \"x/y/\"}\n";
    std::fs::write(&file, lines).expect("a file");
    let said = world.run(&["start", "double", "--from", &path]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err
            .contains("4 of 5 lines cannot be read, so nothing was started"),
        "{said:?}"
    );
    assert!(
        said.err
            .contains("line 3: `inptu` is none of id, input, labels, delay, at"),
        "{said:?}"
    );
    assert!(said.err.contains("line 4: this is no JSON"), "{said:?}");
    assert!(
        said.err.contains("line 5: `a` is no text but 1"),
        "{said:?}"
    );
    assert_eq!(world.run(&["result", "a"]).code, 3, "nothing was started");

    let lines = "{\"id\": \"a\", \"input\": 1, \"labels\": {\"l\": \"1\"}}\n{\"id\": \"b\", \"delay\": \"1h\"}\n{}\n";
    std::fs::write(&file, lines).expect("a file");
    let said = world.ok(&["start", "double", "--from", &path, "--label=all=yes"]);
    assert_eq!(said, "3 started\n");
    let client = Client::new(world.store().await);
    let meta = client
        .handle("a")
        .await
        .expect("a")
        .snapshot()
        .await
        .expect("it")
        .start_meta();
    assert_eq!(
        meta.labels,
        [("all".into(), "yes".into()), ("l".into(), "1".into())].into()
    );

    let again = world.run(&["start", "double", "--from", &path]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(
        again
            .out
            .starts_with("1 started, 2 refused\n  line 1: instance `a` exists already"),
        "{again:?}"
    );
    let again = fed(
        &world,
        &[
            "start",
            "double",
            "--from=-",
            "--if-exists=use-existing",
            "--json",
        ],
        lines,
    );
    assert_eq!(again.code, 0, "{again:?}");
    let told = again.json();
    assert_eq!(
        (&told["started"], &told["existing"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(told["refused"], json!([]));
    assert_eq!(told["instances"][1]["id"], "b");
    assert_eq!(told["instances"][1]["line"], 2);
}

/// How many scripts were called.
fn script_calls(world: &World) -> u64 {
    let stats: String = world.redis.run(&["INFO", "commandstats"]);
    let line = stats.split_once("cmdstat_evalsha:calls=");
    let calls = line.and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_are_started_in_few_calls() {
    let world = World::new();
    publish(&world, &double()).await;
    let lines: String = (0..5000)
        .map(|n| format!("{{\"id\": \"m-{n}\", \"input\": {n}}}\n"))
        .collect();
    let calls = script_calls(&world);
    let said = fed(&world, &["start", "double", "--from=-"], &lines);
    assert_eq!(said.out, "5000 started\n", "{said:?}");
    let made = script_calls(&world) - calls;
    assert!(made < 50, "{made} script calls");
    let counts = Client::new(world.store().await)
        .counts()
        .await
        .expect("counts");
    assert_eq!(counts.ready.values().sum::<usize>(), 5000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_how_far_a_file_is() {
    let world = World::new();
    publish(&world, &double()).await;
    let file = world.redis.dir().join("some.jsonl");
    std::fs::write(&file, "{}\n".repeat(3000)).expect("a file");
    let mut terminal =
        Terminal::run(world.command(&["start", "double", "--from", &file.display().to_string()]));
    terminal.until_written("/3000 started").await;
    terminal.until_written("3000 started\r\n").await;
    assert_eq!(terminal.code().await, Some(0));
}
