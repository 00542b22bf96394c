//! `functions`: what can be done with `redis-cli` alone stores and does what a client does.

use std::{collections::BTreeMap, time::Duration};

use tenure::{
    Client, RedisStore, Workflow,
    store::Store,
    workflow::{Graph, Startable},
};
use tenure_test_support::RedisServer;
use tokio::{sync::mpsc, time::Instant};

use crate::world::{World, until};

pub(crate) const NS: &str = "tenure";

/// A function's answer, or what it says is wrong.
pub(crate) fn fcall(world: &World, name: &str, args: &[&str]) -> Result<String, String> {
    let words: Vec<&str> = ["FCALL", name, "0", NS]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    world.redis.try_run(&words).map_err(|e| e.to_string())
}

pub(crate) fn installed() -> World {
    let world = World::new();
    world.ok(&["functions", "install"]);
    world
}

pub(crate) fn graph<W: Startable>(workflow: &W) -> &Graph {
    workflow.graph().expect("a workflow has its graph")
}

pub(crate) async fn publish<W: Startable>(store: &RedisStore, workflow: &W) {
    let graph = graph(workflow);
    let bytes = graph.to_bytes().expect("bytes");
    store
        .publish(graph.name(), graph.hash(), bytes)
        .await
        .expect("its publication");
}

pub(crate) fn echo(name: &str) -> Workflow<String, String> {
    Workflow::builder(name)
        .task("say", async |text: String| anyhow::Ok(format!("{text}!")))
        .build()
        .expect("a workflow")
}

pub(crate) fn approval() -> Workflow<String, String> {
    Workflow::builder::<String>("approval")
        .await_signal::<String>("yes")
        .task("say", async |text: String| anyhow::Ok(text))
        .build()
        .expect("a workflow")
}

#[test]
fn the_library_is_installed_replaced_shown_and_removed() {
    let world = World::new();
    let version = RedisStore::functions_version();
    let none = world.run(&["functions", "show"]);
    assert_eq!(none.code, 3, "{none:?}");
    assert_eq!(
        world.ok(&["functions", "install"]),
        format!("installed the functions of Tenure {version}\n")
    );
    assert!(
        world
            .ok(&["functions", "install"])
            .contains("were there already")
    );
    let older = RedisStore::functions().replacen(&version, "0.0.1 (0ld)", 1);
    let _: String = world.redis.run(&["FUNCTION", "LOAD", "REPLACE", &older]);
    assert!(
        world
            .ok(&["functions", "show"])
            .contains("0.0.1 (0ld); this is")
    );
    assert_eq!(
        world.ok(&["functions", "install"]),
        format!("installed the functions of Tenure {version}, in place of those of 0.0.1 (0ld)\n")
    );
    assert_eq!(world.ok_json(&["functions", "show"])["installed"], version);
    world.ok(&["functions", "remove"]);
    assert_eq!(world.run(&["functions", "show"]).code, 3);
    assert!(
        world
            .ok(&["functions", "remove"])
            .contains("were not installed")
    );
}

#[test]
fn a_server_without_functions_says_so_and_the_scripts_work_there() {
    let world = World {
        redis: RedisServer::with(["--save", "", "--rename-command", "FUNCTION", ""]),
    };
    let said = world.run(&["functions", "install"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("functions export DIR"), "{said:?}");
    let dir = world.redis.dir().join("scripts");
    world.ok(&["functions", "export", dir.to_str().expect("a path")]);
    let counts = std::fs::read_to_string(dir.join("tenure_counts.lua")).expect("a script");
    let lines: Vec<String> = world.redis.run(&["EVAL", &counts, "0", NS]);
    assert_eq!(lines[0], "ready 0");
    let pause = std::fs::read_to_string(dir.join("tenure_pause.lua")).expect("a script");
    let error = world
        .redis
        .try_run::<String>(&["EVAL", &pause, "0", NS, "order-42"])
        .expect_err("no such instance");
    assert!(
        error
            .to_string()
            .contains("no instance `order-42` in `tenure`"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_a_function_started_runs_to_the_result_that_a_client_gets() {
    let world = installed();
    let echo = echo("echo");
    let worker = world.worker(&echo).await;
    let client = Client::new(world.store().await);
    let handle = client
        .start(&echo, "hello".to_owned())
        .await
        .expect("a start");
    assert_eq!(handle.result().await.expect("a result"), "hello!");
    assert_eq!(
        fcall(&world, "tenure_start", &["echo", "by-hand", "\"hello\""]),
        Ok("by-hand".to_owned())
    );
    let result = client
        .handle("by-hand")
        .await
        .expect("a handle")
        .typed::<String>();
    assert_eq!(result.result().await.expect("a result"), "hello!");
    assert_eq!(
        fcall(&world, "tenure_result", &["by-hand"]),
        Ok("\"hello!\"".to_owned())
    );
    let taken =
        fcall(&world, "tenure_start", &["echo", "by-hand", "\"again\""]).expect_err("a taken id");
    assert!(
        taken.contains("`by-hand` is there already, it is completed"),
        "{taken}"
    );
    let again = fcall(
        &world,
        "tenure_start",
        &["echo", "by-hand", "\"again\"", "use-existing"],
    );
    assert_eq!(again, Ok("by-hand".to_owned()));
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_by_function_resumes_an_instance_at_once() {
    let world = installed();
    let (sender, mut began) = mpsc::unbounded_channel();
    let approval = Workflow::builder::<u32>("approval")
        .await_signal::<BTreeMap<String, bool>>("yes")
        .task("say", move |answer: BTreeMap<String, bool>| {
            let sent = sender.send(Instant::now());
            async move { sent.map(|()| answer).map_err(anyhow::Error::from) }
        })
        .build()
        .expect("a workflow");
    let worker = world.worker(&approval).await;
    let client = Client::new(world.store().await);
    let mut took = Vec::new();
    for number in 0..10 {
        let id = format!("loan-{number}");
        let handle = client
            .start(&approval, number)
            .id(&id)
            .await
            .expect("a start");
        until("it waits", async || {
            !handle
                .snapshot()
                .await
                .expect("a snapshot")
                .waits
                .is_empty()
        })
        .await;
        let sent = Instant::now();
        assert_eq!(
            fcall(
                &world,
                "tenure_signal",
                &[&id, "yes", "{\"approved\": true}"]
            ),
            Ok("OK".to_owned())
        );
        took.push(began.recv().await.expect("the handler") - sent);
        assert!(handle.result().await.expect("a result")["approved"]);
    }
    took.sort();
    println!(
        "from FCALL to the handler: median {:?}, longest {:?}",
        took[5], took[9]
    );
    // 50 ms are what scripts/check-redis-cli shows; here other tests share the machine, and less than a poll is enough
    // to tell that it was a hint.
    assert!(took[5] < Duration::from_secs(1), "{took:?}");
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_said_in_plain_words() {
    let world = installed();
    let store = world.store().await;
    publish(&store, &approval()).await;
    assert_eq!(
        fcall(&world, "tenure_start", &["approval", "loan-1", "\"x\""]),
        Ok("loan-1".to_owned())
    );
    for (name, args, says) in [
        (
            "tenure_signal",
            vec!["loan-2", "yes"],
            "no instance `loan-2` in `tenure`",
        ),
        (
            "tenure_signal",
            vec!["loan-1", "no"],
            "no wait for the signal `no`; it has: yes",
        ),
        ("tenure_signal", vec!["loan-1", "yes", "{oops"], "not JSON"),
        (
            "tenure_signal",
            vec!["loan-1", "yes", "[9007199254740993]"],
            "9007199254740993 is beyond 2^53",
        ),
        (
            "tenure_signal",
            vec!["loan-1", "yes", "{\"$bytes\": \"AA==\"}"],
            "use the command `tenure`",
        ),
        (
            "tenure_start",
            vec!["approval", "loan-1"],
            "`loan-1` is there already, it is running",
        ),
        (
            "tenure_start",
            vec!["approvl", "loan-3"],
            "no workflow `approvl` was published in `tenure`; there is: approval",
        ),
        (
            "tenure_start",
            vec!["approval", "a/b"],
            "`a/b` cannot be an id",
        ),
        (
            "tenure_cancel",
            vec!["loan-2"],
            "no instance `loan-2` in `tenure`",
        ),
        (
            "tenure_cancel",
            vec![],
            "usage: tenure_cancel <namespace> <id>",
        ),
        (
            "tenure_show",
            vec!["loan-2"],
            "no instance `loan-2` in `tenure`",
        ),
        (
            "tenure_list",
            vec!["dead"],
            "`dead` is none of ready, running",
        ),
    ] {
        let error = fcall(&world, name, &args).expect_err(says);
        assert!(error.contains(says), "{name} {args:?}: {error}");
    }
    assert_eq!(
        fcall(&world, "tenure_pause", &["loan-1"]),
        Ok("OK".to_owned())
    );
    let twice = fcall(&world, "tenure_pause", &["loan-1"]).expect_err("paused already");
    assert!(twice.contains("`loan-1` is paused already"), "{twice}");
    assert_eq!(
        fcall(&world, "tenure_cancel", &["loan-1"]),
        Ok("OK".to_owned())
    );
    assert_eq!(
        fcall(&world, "tenure_cancel", &["loan-1"]),
        Ok("OK".to_owned()),
        "a repeat is safe"
    );
    let over = fcall(&world, "tenure_resume", &["loan-1"]).expect_err("over");
    assert!(
        over.contains("`loan-1` is cancelled: it cannot be resumed"),
        "{over}"
    );
}
