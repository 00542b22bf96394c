//! `events`, and what a shell needs to complete.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tenure::{Client, Workflow};

use crate::world::{World, publish};

fn wait() -> Workflow<(), ()> {
    Workflow::builder::<()>("wait")
        .await_signal::<()>("word")
        .build()
        .expect("a workflow")
}

/// The program while it listens.
struct Listening {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Listening {
    /// Begins to listen, and makes sure that it does: instances are terminated until it tells of one.
    async fn begin(world: &World, args: &[&str], seen: impl Fn(&str) -> bool) -> Self {
        publish(world, &wait()).await;
        let mut command = world.command(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let ending = end_until(world);
        let first = tokio::task::spawn_blocking(move || (lines.next(), lines));
        let (first, lines) = tokio::select! {
            first = first => first.expect("a line"),
            () = ending => unreachable!("it goes on"),
        };
        let first = first.expect("a line").expect("a line");
        assert!(seen(&first), "{first}");
        Self { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().expect("a line").expect("a line")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("its end");
    }
}

/// Terminates one instance after another.
async fn end_until(world: &World) {
    let client = Client::new(world.store().await);
    for n in 0.. {
        end(&client, &format!("probe-{n}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn end(client: &Client, id: &str) {
    let nothing = client.start_named(&"wait".parse().expect("a name"), b"\xc0"[..].into());
    let handle = nothing.id(id).await.expect("it is started");
    handle.terminate("a test", "ada").await.expect("it is over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_told_in_lines_as_they_happen() {
    let world = World::new();
    let mut told = Listening::begin(&world, &["events", "--follow"], |line| {
        line.contains("  probe-") && line.ends_with("running → terminated")
    })
    .await;
    let client = Client::new(world.store().await);
    end(&client, "mine").await;
    while !told.next().ends_with("  mine  running → terminated") {}
    let id = Pid::from_raw(i32::try_from(told.child.id()).expect("a process id"));
    kill(id, Signal::SIGINT).expect("it is told to stop");
    let end = told.child.wait().expect("its end");
    let signal = std::os::unix::process::ExitStatusExt::signal(&end);
    assert_eq!(
        signal,
        Some(Signal::SIGINT as i32),
        "a shell calls that 130"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_told_in_json_and_as_many_as_were_wanted() {
    let world = World::new();
    let args = [
        "events",
        "--json",
        "--status=terminated",
        "--prefix=probe-",
        "--limit=2",
    ];
    let is_told = |line: &str| {
        let told: Value = serde_json::from_str(line).expect("JSON");
        told["to"] == "terminated" && told["from"] == "running" && told["run"].is_string()
    };
    let mut told = Listening::begin(&world, &args, is_told).await;
    let client = Client::new(world.store().await);
    end(&client, "other").await;
    end(&client, "probe-last").await;
    assert!(is_told(&told.next()));
    let end = told.child.wait().expect("its end");
    assert!(end.success(), "{end:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_told_where_changes_may_have_been_missed() {
    let mut world = World::new();
    let mut told = Listening::begin(&world, &["events"], |line| line.contains("probe-")).await;
    world.redis.stop();
    world.redis.restart();
    let missed = "-- changes may have been missed here: the connection was broken";
    while told.next() != missed {}
    let mut json = Listening::begin(&world, &["events", "--json"], |line| {
        line.contains("probe-")
    })
    .await;
    world.redis.stop();
    world.redis.restart();
    while json.next() != r#"{"missed":true,"events":null}"# {}
}

#[test]
fn listening_ends_in_time() {
    let world = World::new();
    assert_eq!(world.ok(&["events", "--for=20ms"]), "");
}

#[test]
fn shells_complete_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = world.ok(&["completions", shell]);
        assert!(
            text.contains("definitions") && text.contains("if-exists"),
            "{shell}"
        );
    }
}
