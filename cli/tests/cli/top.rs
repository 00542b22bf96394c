//! `top`: one frame as text, and the live screen on a terminal.

use nix::sys::signal::Signal;
use tenure::{Client, Status, TaskError, WorkerHandle, Workflow};

use crate::{
    terminal::Terminal,
    world::{World, until},
};

/// One that completed, one that is dead, and one that no worker can run.
async fn busy(world: &World) -> WorkerHandle {
    let pay = Workflow::builder("pay")
        .task("charge", async |n: u32| match n {
            1 => Ok(n),
            _ => Err(TaskError::permanent("the bank declined")),
        })
        .build()
        .expect("a workflow");
    let import = Workflow::builder("import")
        .queue("slow")
        .task("fetch", async |n: u32| anyhow::Ok(n))
        .build()
        .expect("a workflow");
    let worker = world.worker(&pay).await;
    let client = Client::new(world.store().await);
    for n in 1..=2 {
        let start = client.start(&pay, n).id(format!("pay-{n}"));
        start.await.expect("a start");
    }
    let start = client.start(&import, 1).id("import-1");
    start.await.expect("a start");
    until("both are over", async || {
        let counts = client.counts().await.expect("counts");
        let over = |status| counts.finished.get(&status) == Some(&1);
        over(Status::Completed) && over(Status::Failed)
    })
    .await;
    worker
}

async fn end(worker: WorkerHandle) {
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_frame_shows_states_queues_workers_and_failures() {
    let world = World::new();
    assert!(world.ok(&["top", "--once"]).contains("no workers"));
    let worker = busy(&world).await;
    until("the worker says that it is there", async || {
        world.ok(&["workers"]).contains("pay:")
    })
    .await;
    let shown = world.ok(&["top", "--once", "--width", "100"]);
    assert!(shown.contains("ready 1  running 0"), "{shown}");
    assert!(shown.contains("completed 1  failed 1"), "{shown}");
    let row = |with: &str| {
        shown
            .lines()
            .find(|line| line.contains(with))
            .map(str::trim)
    };
    let slow = row(" slow ").expect("its queue");
    assert!(slow.ends_with("no worker"), "{shown}");
    let dead = row("pay-2").expect("the dead one");
    assert!(dead.ends_with("charge  the bank declined"), "{shown}");
    assert!(shown.contains("workers (1)"), "{shown}");
    assert!(!shown.contains("q quit"), "{shown}");
    end(worker).await;
}

#[test]
fn without_a_terminal_it_says_what_programs_can_use() {
    let world = World::new();
    let said = world.run(&["top"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("tenure queues --json"), "{said:?}");
    assert!(said.out.is_empty(), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_choose_and_show_and_q_gives_the_terminal_back() {
    let world = World::new();
    let worker = busy(&world).await;
    let mut terminal = Terminal::run(world.command(&["top", "--every", "100ms"]));
    terminal.until_shown("pay-2").await;
    terminal.type_in("\t\tj\r");
    terminal.until_shown("instance pay-2").await;
    terminal.until_shown("charge  failed, attempt 1").await;
    terminal.type_in("\r");
    terminal.until_shown("newest failures").await;
    assert!(!terminal.is_given_back());
    terminal.type_in("q");
    assert_eq!(terminal.code().await, Some(0));
    until("the shell's screen is back", async || {
        terminal.is_given_back()
    })
    .await;
    end(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_gives_the_terminal_back() {
    let world = World::new();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let mut terminal = Terminal::run(world.command(&["top"]));
        terminal.until_shown("workers").await;
        terminal.signal(signal);
        assert_eq!(terminal.code().await, Some(0), "{signal}");
        until("the shell's screen is back", async || {
            terminal.is_given_back()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_redis_is_said_and_looked_for_until_it_is_back() {
    let mut world = World::new();
    let mut terminal = Terminal::run(world.command(&["top", "--every", "100ms"]));
    terminal.until_shown("workers").await;
    world.redis.stop();
    terminal.until_shown("no answer from Redis").await;
    assert!(terminal.shown().contains("workers"), "what was seen stays");
    world.redis.restart();
    terminal.until_shown("namespace tenure").await;
    terminal.type_in("q");
    assert_eq!(terminal.code().await, Some(0));
}
