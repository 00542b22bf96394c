//! `cancel`, `terminate`, `pause`, `resume`, `retry`, `delete`.

use std::{
    io::Write,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tenure::{Client, Start, Status, TaskError, Workflow};

use crate::{
    terminal::Terminal,
    world::{Said, World, until},
};

fn hold() -> Workflow<u32, u32> {
    Workflow::builder("hold")
        .task("enter", async |n: u32| anyhow::Ok(n))
        .await_signal::<u32>("go")
        .build()
        .expect("a workflow")
}

/// Instances that live, without a worker.
async fn held(world: &World, ids: &[&str]) -> Client {
    let client = Client::new(world.store().await);
    for id in ids {
        let start = client.start(&hold(), 1).id(*id).label("tenant", "acme");
        start.await.expect("a start");
    }
    client
}

async fn status(client: &Client, id: &str) -> Status {
    let handle = client.handle(id).await.expect("a handle");
    handle.status().await.expect("a status")
}

fn outcomes(said: &Said) -> Vec<(String, String)> {
    let rows = said.json();
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let rows = rows.as_array().expect("a list").iter();
    rows.map(|row| (text(row, "id"), text(row, "outcome")))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_id_has_its_outcome_and_the_worst_is_the_exit_code() {
    let world = World::new();
    let client = held(&world, &["a", "b", "c", "d"]).await;
    assert_eq!(world.ok(&["cancel", "a"]), "a: cancelled\n");
    assert_eq!(
        world.ok(&["cancel", "a"]),
        "a: nothing to do, it is cancelled already\n"
    );
    let said = world.run(&["cancel", "nobody", "b"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.starts_with("nobody: there is no"), "{said:?}");
    assert!(said.out.ends_with("b: cancelled\n"), "{said:?}");
    assert!(said.err.contains("1 cancelled, 1 not found"), "{said:?}");
    let said = world.run(&["terminate", "b", "nobody", "c", "--json"]);
    assert_eq!(said.code, 4, "{said:?}");
    let told = [("b", "refused"), ("nobody", "not_found"), ("c", "done")];
    let told = told.map(|(id, outcome)| (id.to_owned(), outcome.to_owned()));
    assert_eq!(outcomes(&said), told);
    let said = world.run(&["delete", "c", "d"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("c: deleted\n"), "{said:?}");
    assert!(said.out.contains("d: refused: "), "{said:?}");
    assert_eq!(status(&client, "d").await, Status::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_and_a_resume_tell_what_was_so_already() {
    let world = World::new();
    let client = held(&world, &["a"]).await;
    assert_eq!(
        world.ok(&["resume", "a"]),
        "a: nothing to do, it is running already\n"
    );
    world.ok(&["pause", "a", "--reason", "lunch", "--actor", "ada"]);
    let snapshot = client.handle("a").await.expect("a handle").snapshot().await;
    let control = snapshot.expect("a snapshot").header.control;
    let control = control.expect("who paused it");
    assert_eq!(control.reason.as_deref(), Some("lunch"));
    assert_eq!(control.actor.as_deref(), Some("ada"));
    assert!(world.ok(&["pause", "a"]).contains("paused already"));
    let resumed = world
        .command(&["resume", "a"])
        .env("USER", "grace")
        .output();
    let said: Said = resumed.expect("the program").into();
    assert_eq!(said.out, "a: resumed\n", "{said:?}");
    let snapshot = client.handle("a").await.expect("a handle").snapshot().await;
    let control = snapshot.expect("a snapshot").header.control;
    let actor = control.and_then(|control| control.actor).expect("somebody");
    assert!(actor.starts_with("grace@"), "{actor}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_is_not_obeyed_unasked() {
    let world = World::new();
    let client = held(&world, &["x-1", "x-2", "y-1"]).await;
    let said = world.run(&["cancel", "--prefix", "x-"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("2 instances would be"), "{said:?}");
    assert!(said.err.contains("--yes"), "{said:?}");
    assert_eq!(status(&client, "x-1").await, Status::Running);

    let shown = world.ok(&["cancel", "--prefix", "x-", "--dry-run"]);
    let mut ids: Vec<&str> = shown.lines().collect();
    ids.sort_unstable();
    assert_eq!(ids, ["x-1", "x-2"]);
    let plan = world.ok_json(&["cancel", "--all", "--dry-run"]);
    assert_eq!(plan["count"], 3);
    assert_eq!(status(&client, "x-1").await, Status::Running);

    let said = world.run(&[
        "cancel",
        "--prefix",
        "x-",
        "--label",
        "tenant=acme",
        "--yes",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
    assert!(said.err.contains("2 cancelled"), "{said:?}");
    assert_eq!(status(&client, "x-2").await, Status::Cancelled);
    assert_eq!(status(&client, "y-1").await, Status::Running);

    let said = world.run(&["cancel", "--prefix", "x-", "--yes"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert!(said.err.contains("no instance to cancel"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_terminal_a_person_is_asked() {
    let world = World::new();
    let client = held(&world, &["a", "b"]).await;
    let mut terminal = Terminal::run(world.command(&["cancel", "--all"]));
    terminal.until_shown("Go on? [y/N]").await;
    assert!(terminal.shown().contains("2 instances would be cancelled"));
    terminal.type_in("\n");
    assert_eq!(terminal.code().await, Some(1));
    assert_eq!(status(&client, "a").await, Status::Running);

    let mut terminal = Terminal::run(world.command(&["cancel", "--all"]));
    terminal.until_shown("Go on? [y/N]").await;
    terminal.type_in("y\n");
    assert_eq!(terminal.code().await, Some(0));
    terminal.until_shown("2 cancelled").await;
    assert_eq!(status(&client, "a").await, Status::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_come_from_standard_input() {
    let world = World::new();
    let client = held(&world, &["a", "b", "c"]).await;
    let mut program = world
        .command(&["pause", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut input = program.stdin.take().expect("its input");
    input.write_all(b"a\n\nb\r\n").expect("ids");
    drop(input);
    let said: Said = program.wait_with_output().expect("its end").into();
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "c: paused\na: paused\nb: paused\n");
    assert_eq!(status(&client, "b").await, Status::Paused);
}

#[test]
fn what_contradicts_itself_is_refused_before_anything_is_done() {
    let world = World::new();
    for (args, hint) in [
        (&["cancel"][..], "--all"),
        (&["cancel", "a", "--all"], "not both"),
        (&["cancel", "a", "--prefix", "a"], "not both"),
        (&["resume", "--status", "failed"], "--status can be paused"),
        (&["retry", "a", "--from", "x", "--from-start"], "--from"),
        (&["pause", "--created-before", "soon"], "2h"),
    ] {
        let said = world.run(args);
        assert_eq!(said.code, 2, "{args:?}: {said:?}");
        assert!(said.err.contains(hint), "{args:?}: {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_none_does_not_stop_the_others() {
    let world = World::new();
    let client = held(&world, &["a", "b"]).await;
    let said = world.run(&["cancel", "a", "no\u{1}id", "b", "--json"]);
    assert_eq!(said.code, 2, "{said:?}");
    let kinds: Vec<String> = outcomes(&said).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["done", "failed", "done"]);
    assert_eq!(status(&client, "b").await, Status::Cancelled);
    let away = ["cancel", "a", "--redis", "redis://127.0.0.1:1"];
    assert_eq!(world.run(&away).code, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_finds_all_while_workers_move_them_and_what_ended_is_no_fault() {
    let world = World::new();
    let slow = Workflow::builder("slow")
        .task("first", async |n: u32| anyhow::Ok(n))
        .delay("rest", Duration::from_millis(20))
        .task("second", async |n: u32| anyhow::Ok(n))
        .await_signal::<u32>("go")
        .build()
        .expect("a workflow");
    let worker = world.worker(&slow).await;
    let client = Client::new(world.store().await);
    let starts = (0..400).map(|n| Start::new(n).id(format!("s-{n}")));
    let started = client.start_many(&slow, starts).await;
    assert!(started.iter().all(Result::is_ok));
    until("the command finds nothing more", async || {
        let said = world.run(&["cancel", "--workflow", "slow", "--yes"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.err.contains("no instance to cancel")
    })
    .await;
    let counts = client.counts().await.expect("counts");
    assert_eq!(counts.finished.get(&Status::Cancelled), Some(&400));
    worker.shutdown();
    worker.join().await.expect("its end");
}

/// Reserves, and fails to charge as long as it is told to; counts how often each was done.
fn order(broken: &Arc<AtomicU32>, reserved: &Arc<AtomicU32>) -> Workflow<u32, u32> {
    let (broken, reserved) = (broken.clone(), reserved.clone());
    Workflow::builder("order")
        .task("reserve", move |n: u32| {
            let reserved = reserved.clone();
            async move {
                reserved.fetch_add(1, Ordering::SeqCst);
                anyhow::Ok(n)
            }
        })
        .task("charge", move |n: u32| {
            let broken = broken.clone();
            async move {
                match broken.load(Ordering::SeqCst) {
                    0 => Ok(n),
                    code => Err(TaskError::permanent(format!("declined: code {code}"))),
                }
            }
        })
        .build()
        .expect("a workflow")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_instance_is_retried_where_it_is_said() {
    let world = World::new();
    let (broken, reserved) = (Arc::new(AtomicU32::new(7)), Arc::new(AtomicU32::new(0)));
    let order = order(&broken, &reserved);
    let worker = world.worker(&order).await;
    let client = Client::new(world.store().await);
    let handle = client.start(&order, 1).id("o-1").await.expect("a start");
    let becomes = async |wanted: Status| {
        until("it ends", async || {
            handle.status().await.expect("a status") == wanted
        })
        .await;
    };
    becomes(Status::Failed).await;
    let said = world.run(&["retry", "o-1", "--from", "deliver"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("it can be retried from"), "{said:?}");

    world.ok(&["retry", "o-1"]);
    becomes(Status::Failed).await;
    assert_eq!(reserved.load(Ordering::SeqCst), 1, "only what failed");
    world.ok(&["retry", "o-1", "--from", "reserve"]);
    becomes(Status::Failed).await;
    assert_eq!(reserved.load(Ordering::SeqCst), 2);
    broken.store(0, Ordering::SeqCst);
    let said = world.run(&[
        "retry",
        "--workflow",
        "order",
        "--from-start",
        "--yes",
        "--json",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json(), json!([{ "id": "o-1", "outcome": "done" }]));
    becomes(Status::Completed).await;
    assert_eq!(reserved.load(Ordering::SeqCst), 3);
    let said = world.run(&["retry", "o-1"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("only one that failed"), "{said:?}");
    worker.shutdown();
    worker.join().await.expect("its end");
}
