//! `list`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenure::Client;

use crate::{
    showing::even,
    world::{World, publish, stop, until},
};

fn ids(listed: &Value) -> Vec<&str> {
    let rows = listed["instances"].as_array().expect("instances");
    rows.iter()
        .map(|row| row["id"].as_str().expect("an id"))
        .collect()
}

/// Ten instances that are over, five of them dead; then two delayed and one paused that nobody works on.
async fn thirteen(world: &World) {
    publish(world, &even()).await;
    let worker = world.worker(&even()).await;
    let lines: String = (0..10)
        .map(|n| format!("{{\"id\": \"n-{n}\", \"input\": {n}}}\n"))
        .collect();
    let file = world.redis.dir().join("ten.jsonl");
    std::fs::write(&file, lines).expect("a file");
    world.ok(&[
        "start",
        "even",
        "--label=kind=small",
        "--from",
        &file.display().to_string(),
    ]);
    until("all are over", async || {
        world
            .ok(&["list", "--count", "--status=completed,failed"])
            .starts_with("10:")
    })
    .await;
    stop(worker).await;
    for id in ["late-1", "late-2", "late-3"] {
        world.ok(&[
            "start",
            "even",
            "--input=2",
            "--delay=1h",
            "--id",
            id,
            "--label=kind=late",
        ]);
    }
    let client = Client::new(world.store().await);
    let paused = client.handle("late-3").await.expect("it is there");
    paused.pause("a test", "ada").await.expect("it is paused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_listed_by_what_was_asked_for() {
    let world = World::new();
    assert_eq!(world.ok(&["list"]), "no instances\n");
    thirteen(&world).await;
    let listed = |args: &[&str]| world.ok_json(&[&["list"], args].concat());
    assert_eq!(listed(&[])["instances"].as_array().map(Vec::len), Some(13));
    let failed = listed(&["--status=failed", "--limit=1000"]);
    let odd = BTreeSet::from(["n-1", "n-3", "n-5", "n-7", "n-9"]);
    assert_eq!(ids(&failed).into_iter().collect::<BTreeSet<_>>(), odd);
    assert_eq!(failed["instances"][0]["labels"], json!({"kind": "small"}));
    assert!(
        failed["instances"][0]["error"]
            .as_str()
            .expect("an error")
            .starts_with("look: ")
    );
    assert_eq!(
        ids(&listed(&["--label=kind=late", "--status=paused"])),
        ["late-3"]
    );
    assert_eq!(ids(&listed(&["--prefix=late-1"])), ["late-1"]);
    assert_eq!(ids(&listed(&["--created-before=1h"])), [""; 0]);
    assert_eq!(
        ids(&listed(&["--created-after=1h", "--prefix=late"])).len(),
        3
    );
    assert_eq!(ids(&listed(&["--workflow=other"])), [""; 0]);
    let table = world.ok(&["list", "--status=failed,paused"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("ID      STATUS  WORKFLOW  CREATED"),
        "{table}"
    );
    assert!(lines[1].contains("late-3  paused  even"), "{table}");
    assert!(lines[1].contains("look delayed"), "{table}");
    assert!(lines[2].contains("is odd, which is wrong"), "{table}");
    assert!(lines.iter().all(|line| *line == line.trim_end()), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_on_and_end() {
    let world = World::new();
    thirteen(&world).await;
    let mut seen = BTreeSet::new();
    let mut args = vec!["list".to_owned(), "--limit=4".to_owned()];
    loop {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let page = world.ok_json(&words);
        for id in ids(&page) {
            assert!(seen.insert(id.to_owned()), "{id} came twice");
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        args = ["list", "--limit=4", "--after", next]
            .map(str::to_owned)
            .to_vec();
    }
    assert_eq!(seen.len(), 13);
    let first = world.run(&["list", "--limit=4"]);
    assert_eq!(first.out.lines().count(), 5, "{first:?}");
    assert!(first.err.contains("--after "), "{first:?}");
    let all = world.run(&["list", "--all", "--json"]);
    assert_eq!(all.out.lines().count(), 13, "{all:?}");
    assert_eq!(all.err, "");
    let rows = all
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    assert!(
        rows.into_iter()
            .all(|row| seen.contains(row["id"].as_str().expect("an id")))
    );
    assert_eq!(world.run(&["list", "--after=nonsense"]).code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_counted_by_what_was_asked_for() {
    let world = World::new();
    assert_eq!(world.ok(&["list", "--count"]), "0\n");
    thirteen(&world).await;
    let counted = world.ok_json(&["list", "--count"]);
    let by_status = json!({"completed": 5, "failed": 5, "paused": 1, "running": 2});
    assert_eq!(counted, json!({"total": 13, "by_status": by_status}));
    assert_eq!(
        world.ok(&["list", "--count", "--status=failed,running"]),
        "7: 5 failed, 2 running\n"
    );
    assert_eq!(
        world.ok(&["list", "--count", "--label=kind=small"]),
        "10: 5 completed, 5 failed\n"
    );
}
