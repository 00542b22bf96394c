//! `show`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tenure::{Client, RetryPolicy, TaskContext, Workflow};

use crate::world::{World, publish, stop, until};

/// Fails at odd numbers.
pub(crate) fn even() -> Workflow<u64, u64> {
    Workflow::builder("even")
        .task("look", async |n: u64| {
            anyhow::ensure!(n.is_multiple_of(2), "{n} is odd,\nwhich is wrong");
            Ok(n)
        })
        .retry(RetryPolicy::none())
        .build()
        .expect("a workflow")
}

/// Looks at an amount, asks a person and mails beside it, and closes.
fn loan() -> Workflow<u64, String> {
    Workflow::builder("loan")
        .task("look", async |n: u64| {
            anyhow::ensure!(n < 1000, "{n} is too much,\nby far");
            Ok(n)
        })
        .retry(RetryPolicy::fixed(Duration::from_millis(1)).max_attempts(2))
        .fork(|f| {
            f.branch(|b| b.task("mail", async |n: u64| anyhow::Ok(n)))
                .branch(|b| {
                    b.delay("rest", Duration::from_millis(1))
                        .await_signal::<String>("approval")
                })
        })
        .join("close", async |(n, word): (u64, String)| {
            anyhow::Ok(format!("{n} {word}"))
        })
        .build()
        .expect("a workflow")
}

/// The lines from one to the next empty one.
fn block<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| *line != head).skip(1);
    lines.take_while(|line| !line.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_waits_is_shown_with_its_tasks_and_its_graph() {
    let world = World::new();
    assert_eq!(world.run(&["show", "l"]).code, 3);
    publish(&world, &loan()).await;
    let worker = world.worker(&loan()).await;
    world.ok(&[
        "start",
        "loan",
        "--id=l",
        "--input=7",
        "--label=tenant=acme",
        "--created-by=ada",
    ]);
    let mut shown = String::new();
    until("it waits", async || {
        shown = world.ok(&["show", "l"]);
        let tasks = block(&shown, "tasks");
        tasks
            .iter()
            .any(|task| task.ends_with("waits for signal approval"))
            && tasks
                .iter()
                .any(|task| task.starts_with("  mail      completed"))
    })
    .await;
    assert!(shown.starts_with("`l` is running, started "), "{shown}");
    assert!(shown.contains("\n  labels      tenant=acme\n"), "{shown}");
    assert!(shown.contains("Z by ada\n"), "{shown}");
    assert!(shown.contains("\n  input       7\n"), "{shown}");
    let graph = [
        "  look         completed",
        "  ├─ mail      completed",
        "  └─ rest      completed  delay of 1ms",
        "     approval  waiting    wait for signal approval",
        "  close        -          join of 2, 1 arrived",
    ];
    assert_eq!(block(&shown, "graph"), graph, "{shown}");
    let json = world.ok_json(&["show", "l"]);
    assert_eq!(
        json["waits"],
        json!([{"task": "approval", "signal": "approval"}])
    );
    assert_eq!(json["joins"]["close"]["arrived"], 1);
    assert_eq!(json["input"], 7);
    assert_eq!(json["graph"][0]["next"], json!(["mail", "rest"]));
    assert_eq!(json["created_by"], "ada");
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_failed_is_shown_with_the_error_of_each_attempt() {
    let world = World::new();
    publish(&world, &loan()).await;
    let worker = world.worker(&loan()).await;
    let failed = world.run(&["start", "loan", "--id=f", "--input=5000", "--wait"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    stop(worker).await;
    let shown = world.ok(&["show", "f"]);
    let first = shown.lines().next().expect("a line");
    assert!(first.starts_with("`f` failed "), "{first}");
    assert!(
        first.ends_with(": 5000 is too much, by far, in look"),
        "{first}"
    );
    let tasks = block(&shown, "tasks");
    assert!(
        tasks[1].starts_with("  look  failed  2         2"),
        "{shown}"
    );
    assert!(
        tasks[2].ends_with("Z  attempt 1: 5000 is too much,"),
        "{shown}"
    );
    assert_eq!(tasks[3], "      by far", "{shown}");
    assert!(
        tasks[4].ends_with("Z  attempt 2: 5000 is too much,"),
        "{shown}"
    );
    let json = world.ok_json(&["show", "f"]);
    assert_eq!(
        json["tasks"][0]["errors"][1]["message"],
        "5000 is too much,\nby far"
    );
    assert_eq!(json["error"]["attempt"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_payloads_are_cut_unless_all_is_wanted() {
    let world = World::new();
    publish(&world, &even()).await;
    let long = format!("\"{}\"", "é".repeat(100_000));
    let file = world.redis.dir().join("long.json");
    std::fs::write(&file, &long).expect("a file");
    world.ok(&[
        "start",
        "even",
        "--id=long",
        "--input",
        &format!("@{}", file.display()),
    ]);
    world.ok(&[
        "start",
        "even",
        "--id=some",
        "--input",
        &format!("\"{}\"", "x".repeat(1000)),
    ]);
    let shown = world.ok(&["show", "long"]);
    assert!(
        shown.contains("  input       195.3 KiB: --full shows it"),
        "{shown}"
    );
    assert!(world.ok(&["show", "long", "--full"]).contains(&long));
    assert!(
        world
            .ok(&["show", "some"])
            .contains("xxx… (1003 bytes: --full shows all)")
    );
    assert_eq!(
        world.ok_json(&["show", "long"])["values"]["input"],
        json!({"bytes": 200_005})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_followed_to_its_end() {
    let world = World::new();
    publish(&world, &loan()).await;
    let worker = world.worker(&loan()).await;
    world.ok(&["start", "loan", "--id=l", "--input=7"]);
    until("it waits", async || {
        world.ok(&["show", "l"]).contains("waits for signal")
    })
    .await;
    let mut command = world.command(&["show", "l", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = move || lines.next().transpose().expect("a line");
    // The graph comes last: then it follows.
    while !next().expect("a line").starts_with("  close") {}
    world.ok(&["signal", "l", "approval", "--payload=\"yes\""]);
    let mut rest = Vec::new();
    while let Some(line) = next() {
        rest.push(line);
    }
    let told = rest.join("\n");
    assert!(told.contains("  approval  waiting → completed"), "{told}");
    assert!(told.contains("  close  new → completed"), "{told}");
    assert!(
        told.contains("  l  running → completed\n\n`l` completed "),
        "{told}"
    );
    assert!(told.ends_with("\"7 yes\""), "{told}");
    assert!(child.wait().expect("its end").success());

    let started = ["start", "loan", "--id=f", "--input=5000", "--delay=100ms"];
    world.ok(&started);
    let failed = world.run(&["show", "f", "--follow", "--json"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let lines: Vec<Value> = failed
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.last().expect("a line")["status"], "failed");
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_of_an_unpublished_definition_is_shown_without_its_graph() {
    let world = World::new();
    let client = Client::new(world.store().await);
    client
        .start(&even(), 1)
        .id("n")
        .await
        .expect("it is started");
    let shown = world.ok(&["show", "n"]);
    assert!(shown.contains("graph\n  not known: definition "), "{shown}");
    assert_eq!(world.ok_json(&["show", "n"])["graph"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tasks_say_and_share_and_who_steered_is_shown() {
    let world = World::new();
    let talk = Workflow::builder("talk")
        .task("say", async |ctx: TaskContext, n: u64| {
            ctx.progress(&"half")?;
            ctx.set("total", &n).await?;
            anyhow::Ok(n)
        })
        .await_signal::<()>("word")
        .build()
        .expect("a workflow");
    publish(&world, &talk).await;
    let worker = world.worker(&talk).await;
    world.ok(&["start", "talk", "--id=t", "--input=7"]);
    until("it waits", async || {
        world.ok(&["show", "t"]).contains("waits for signal word")
    })
    .await;
    world.ok(&["pause", "t", "--reason=lunch", "--actor=ada"]);
    let shown = world.ok(&["show", "t"]);
    assert!(
        shown.starts_with("`t` is paused by ada (lunch), started "),
        "{shown}"
    );
    assert!(
        shown.contains("\n  steered     pause by ada: lunch\n"),
        "{shown}"
    );
    assert!(shown.contains("\n  progress    say: \"half\"\n"), "{shown}");
    assert!(shown.contains("\n  set         total: 7\n"), "{shown}");
    assert!(!shown.contains("results"), "{shown}");
    let full = world.ok(&["show", "t", "--full"]);
    assert!(full.contains("\nresults\n  say  7\n"), "{full}");
    let json = world.ok_json(&["show", "t", "--full"]);
    assert_eq!(json["values"]["out:say"], json!({"bytes": 1, "value": 7}));
    assert_eq!(
        json["control"],
        json!({"what": "pause", "by": "ada", "reason": "lunch"})
    );
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_is_garbage_is_shown_as_such() {
    let world = World::new();
    publish(&world, &even()).await;
    world.ok(&["start", "even", "--id=g", "--input=1"]);
    let () = world
        .redis
        .run(&["HSET", "{tenure:0}:instance:g", "input", "\u{1}\u{2}"]);
    let shown = world.ok(&["show", "g"]);
    let said = "  input       2 bytes that cannot be read: not MessagePack: the value ends at byte 1, and 1 more follow";
    assert!(shown.contains(said), "{shown}");
}
