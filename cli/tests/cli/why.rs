//! `why`: each situation is prepared on a real Redis, and named.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use tenure::{RetryPolicy, Worker, Workflow};
use tokio::sync::Semaphore;

use crate::world::{World, publish, stop, until};

fn echo() -> Workflow<String, String> {
    Workflow::builder("echo")
        .task("say", async |text: String| anyhow::Ok(text))
        .build()
        .expect("a workflow")
}

fn start(world: &World, workflow: &str, id: &str) {
    world.ok(&["start", workflow, "--id", id, "--input", "\"x\""]);
}

/// The first line of the answer, and the exit code.
fn why(world: &World, id: &str) -> (String, i32) {
    let said = world.run(&["why", id]);
    assert!(said.err.is_empty(), "{said:?}");
    let line = said.out.lines().next().unwrap_or_default().to_owned();
    (line, said.code)
}

/// Until `why` says something that begins and ends so.
async fn says(world: &World, id: &str, begin: &str, end: &str) -> String {
    let mut last = String::new();
    until(&format!("{begin} … {end}"), async || {
        last = why(world, id).0;
        last.starts_with(begin) && last.ends_with(end)
    })
    .await;
    last
}

#[tokio::test]
async fn a_paused_instance_names_who_paused_it_and_why() {
    let world = World::new();
    publish(&world, &echo()).await;
    start(&world, "echo", "o-1");
    world.ok(&[
        "pause",
        "o-1",
        "--reason",
        "stock is counted",
        "--actor",
        "ada",
    ]);
    let (said, code) = why(&world, "o-1");
    assert_eq!(
        said,
        "o-1 is paused by ada: stock is counted; nothing of it is claimed until somebody resumes it."
    );
    assert_eq!(code, 0);
    assert!(world.ok(&["why", "o-1"]).contains("tenure resume o-1"));
    assert_eq!(world.ok_json(&["why", "o-1"])["reason"], "paused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_waits_for_a_signal_names_it_and_its_time_limit() {
    let world = World::new();
    let flow = Workflow::builder("loan")
        .task("check", async |text: String| anyhow::Ok(text))
        .await_signal::<String>("approval")
        .timeout(Duration::from_secs(7200))
        .build()
        .expect("a workflow");
    let worker = world.worker(&flow).await;
    until("the definition is published", async || {
        world.ok(&["definitions"]).contains("loan")
    })
    .await;
    start(&world, "loan", "o-2");
    let said = says(&world, "o-2", "o-2 waits for signal `approval` at `", ".").await;
    assert!(said.contains("its patience ends in 1h 59m"), "{said}");
    let told = world.ok_json(&["why", "o-2"]);
    assert_eq!(told["reason"], "signal");
    assert_eq!(told["try"][0], "tenure signal o-2 approval --payload JSON");
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_in_an_hour_is_named_with_its_attempt_and_error() {
    let world = World::new();
    let flow = Workflow::builder("flaky")
        .task("buy", async |_: String| {
            anyhow::bail!("no stock") as anyhow::Result<()>
        })
        .retry(
            RetryPolicy::fixed(Duration::from_secs(3600))
                .jitter(0.0)
                .max_attempts(5),
        )
        .build()
        .expect("a workflow");
    let worker = world.worker(&flow).await;
    until("the definition is published", async || {
        world.ok(&["definitions"]).contains("flaky")
    })
    .await;
    start(&world, "flaky", "o-3");
    let end = "; attempt 1 of 5 failed: no stock";
    let said = says(&world, "o-3", "o-3 waits for a retry of `buy` in 59m ", end).await;
    assert_eq!(said.matches("buy").count(), 1);
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_definition_no_worker_has_says_so_and_what_they_have() {
    let world = World::new();
    publish(&world, &echo()).await;
    start(&world, "echo", "o-4");
    let (said, code) = why(&world, "o-4");
    assert!(
        said.starts_with("o-4 waits for a worker that has `echo` in version "),
        "{said}"
    );
    assert!(
        said.ends_with(": task `say` is ready, and no worker is there at all."),
        "{said}"
    );
    assert_eq!(code, 0, "it goes on when a worker comes");

    let other = Workflow::builder("echo")
        .task("say", async |text: String| anyhow::Ok(text))
        .task("again", async |text: String| anyhow::Ok(text))
        .build()
        .expect("a workflow");
    let worker = world.worker(&other).await;
    let theirs = format!(
        "and the workers have another version of it, {}.",
        other.graph().hash()
    );
    says(
        &world,
        "o-4",
        "o-4 waits for a worker that has `echo`",
        &theirs,
    )
    .await;
    stop(worker).await;
}

/// A process whose handlers never return.
struct Holder(Child);

impl Holder {
    fn start(world: &World) -> Self {
        let mut command: Command = world.command(&[
            "bench-worker",
            "--namespace=tenure",
            "--shape=chain-1",
            "--concurrency=4",
            "--claim-ttl=6s",
            "--hold",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let stdin = child.stdin.as_mut().expect("its input");
        stdin.write_all(b"go\n").expect("it goes");
        stdin.flush().expect("it goes");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn a_dead_workers_claim_is_named_before_it_expires() {
    let world = World::new();
    let mut holder = Holder::start(&world);
    until("the definition is published", async || {
        world.ok_json(&["definitions"])[0]["workflow"].is_string()
    })
    .await;
    let known = world.ok_json(&["definitions"]);
    let workflow = known[0]["workflow"].as_str().expect("a name");
    let input = ["--input", "{\"at\":1,\"pad\":\"x\"}"];
    world.ok(&["start", workflow, "--id", "o-5", input[0], input[1]]);
    let said = says(&world, "o-5", "o-5 is running: worker ", "without another.").await;
    assert!(said.contains("(attempt 1) and sends heartbeats"), "{said}");

    holder.0.kill().expect("it is killed");
    let said = says(
        &world,
        "o-5",
        "o-5 waits for its claim to expire: worker ",
        ".",
    )
    .await;
    assert!(said.contains("was last heard of "), "{said}");
    assert!(said.contains("another worker takes over in "), "{said}");
    let end = "has expired, and a keeper makes it ready again within seconds.";
    let expired = async || {
        let said = why(&world, "o-5").0;
        // What the dead worker said of itself holds longer than its claim.
        said.ends_with(end) || said.ends_with("no worker is there that would take over.")
    };
    until("the claim has expired", expired).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_task_behind_busy_slots_says_how_many_are_ahead() {
    let world = World::new();
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let flow = Workflow::builder("slow")
        .task("hold", move |text: String| {
            let gate = Arc::clone(&opened);
            async move {
                gate.acquire().await?.forget();
                anyhow::Ok(text)
            }
        })
        .build()
        .expect("a workflow");
    let worker = Worker::builder(world.store().await)
        .workflow(&flow)
        .concurrency(2)
        .build()
        .expect("a worker")
        .spawn();
    until("the definition is published", async || {
        world.ok(&["definitions"]).contains("slow")
    })
    .await;
    for id in ["a", "b"] {
        start(&world, "slow", id);
    }
    for id in ["a", "b"] {
        says(&world, id, &format!("{id} is running: worker "), ".").await;
    }
    for id in ["c", "o-6"] {
        start(&world, "slow", id);
    }
    let (said, _) = why(&world, "o-6");
    assert_eq!(
        said,
        "o-6 waits for a free slot: task `hold` is ready, all 2 slots of 1 worker are busy, and 1 task is ahead of it."
    );
    gate.add_permits(4);
    says(&world, "o-6", "o-6 completed ", " ago.").await;
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_instance_names_the_error_and_exits_with_1() {
    let world = World::new();
    let flow = Workflow::builder("doomed")
        .task("pay", async |_: String| {
            anyhow::bail!("card declined") as anyhow::Result<()>
        })
        .retry(RetryPolicy::none())
        .build()
        .expect("a workflow");
    let worker = world.worker(&flow).await;
    until("the definition is published", async || {
        world.ok(&["definitions"]).contains("doomed")
    })
    .await;
    start(&world, "doomed", "o-7");
    let end = " ago, in attempt 1: card declined";
    says(
        &world,
        "o-7",
        "o-7 is dead: task `pay` failed for good ",
        end,
    )
    .await;
    assert_eq!(why(&world, "o-7").1, 1);
    assert!(world.run(&["why", "o-7"]).out.contains("tenure retry o-7"));
    stop(worker).await;
}

#[tokio::test]
async fn a_snapshot_that_misses_a_field_is_damaged_and_the_field_is_named() {
    let world = World::new();
    publish(&world, &echo()).await;
    start(&world, "echo", "o-8");
    let key = "{tenure:0}:instance:o-8";
    assert_eq!(world.redis.run::<u32>(&["HDEL", key, "status"]), 1);
    let (said, code) = why(&world, "o-8");
    assert!(said.starts_with("o-8 is damaged: "), "{said}");
    assert!(said.contains("status"), "{said}");
    assert_eq!(code, 1);
    let text = world.run(&["why", "o-8"]).out;
    assert!(text.contains("tenure doctor --fix"), "{text}");
}

#[tokio::test]
async fn a_task_whose_entry_is_gone_is_lost_and_an_unknown_id_is_not_found() {
    let world = World::new();
    publish(&world, &echo()).await;
    start(&world, "echo", "o-9");
    let list = format!("{{tenure:0}}:ready:default:{}", echo().graph().hash());
    assert_eq!(world.redis.run::<u32>(&["DEL", &list]), 1);
    let (said, code) = why(&world, "o-9");
    assert!(
        said.starts_with("o-9 has lost its place: task `say` is open"),
        "{said}"
    );
    assert_eq!(code, 1);
    assert_eq!(world.run(&["why", "nobody"]).code, 3);
}
