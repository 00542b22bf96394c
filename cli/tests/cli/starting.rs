//! `start`, `result` and `signal`.

use std::{io::Write, process::Stdio, time::Duration};

use serde_json::{Value, json};
use tenure::{
    Approval, Client, RetryPolicy, Status, WorkerHandle, Workflow,
    store::{Inspect, Store},
};

use crate::world::{Said, World, publish, stop, until};

/// Doubles numbers, and fails at others than those.
pub(crate) fn double() -> Workflow<Value, i64> {
    Workflow::builder("double")
        .task("double", async |input: Value| {
            input
                .as_i64()
                .map(|n| 2 * n)
                .ok_or_else(|| anyhow::anyhow!("{input} is no number"))
        })
        .retry(RetryPolicy::none())
        .build()
        .expect("a workflow")
}

fn loan() -> Workflow<u64, Approval> {
    Workflow::builder::<u64>("loan")
        .await_signal::<Approval>("approval")
        .build()
        .expect("a workflow")
}

async fn working<I, O>(world: &World, workflow: &Workflow<I, O>) -> WorkerHandle {
    publish(world, workflow).await;
    world.worker(workflow).await
}

/// Runs the program with something on its standard input.
pub(crate) fn fed(world: &World, args: &[&str], input: &str) -> Said {
    let mut command = world.command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("its end").into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_started_with_all_that_was_said() {
    let world = World::new();
    publish(&world, &double()).await;
    let said = world.ok(&[
        "start",
        "double",
        "--id=d",
        "--input=21",
        "--delay=1h",
        "--label=tenant=acme",
        "--label=a=b=c",
        "--created-by=ada",
        "--max-crashes=2",
    ]);
    assert!(said.starts_with("`d` is started, run "), "{said}");
    let client = Client::new(world.store().await);
    let snapshot = client
        .handle("d")
        .await
        .expect("d")
        .snapshot()
        .await
        .expect("it");
    let meta = snapshot.start_meta();
    assert_eq!(meta.created_by.as_deref(), Some("ada"));
    assert_eq!(
        meta.labels,
        [("a".into(), "b=c".into()), ("tenant".into(), "acme".into())].into()
    );
    assert_eq!(snapshot.max_crashes, 2);
    let store = world.store().await;
    let partition = "d"
        .parse::<tenure::InstanceId>()
        .expect("an id")
        .partition(store.partitions());
    let delayed = store.delayed(partition, 10).await.expect("timers");
    let wait = delayed[0].1.since(snapshot.created_at);
    assert_eq!(wait, Duration::from_secs(3600));
    let at = ["start", "double", "--id=e", "--at=2999-01-01T00:00:00Z"];
    let said = world.run(&at);
    assert_eq!(said.code, 0, "{said:?}");
    let meta = client
        .handle("e")
        .await
        .expect("e")
        .snapshot()
        .await
        .expect("it")
        .start_meta();
    assert!(!meta.created_by.expect("somebody").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_id_is_handled_as_the_policy_says() {
    let world = World::new();
    publish(&world, &double()).await;
    let first = world.ok_json(&["start", "double", "--id=d"]);
    assert_eq!(first["existing"], false);
    let taken = world.run(&["start", "double", "--id=d"]);
    assert_eq!(taken.code, 4, "{taken:?}");
    assert!(
        taken.err.contains("`d` exists already (running"),
        "{taken:?}"
    );
    let used = world.ok_json(&["start", "double", "--id=d", "--if-exists=use-existing"]);
    assert_eq!(
        used,
        json!({"id": "d", "run": first["run"], "existing": true})
    );
    let live = world.run(&["start", "double", "--id=d", "--if-exists=replace-finished"]);
    assert_eq!(live.code, 4, "{live:?}");
    let new = world.ok_json(&[
        "start",
        "double",
        "--id=d",
        "--if-exists=terminate-and-replace",
    ]);
    assert_eq!(new["existing"], false);
    assert_ne!(new["run"], first["run"]);
    let wrong = world.run(&["start", "double", "--id=d", "--if-exists=replace"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(
        wrong.err.contains("use-existing, replace-finished"),
        "{wrong:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_waits_for_its_result() {
    let world = World::new();
    let unknown = world.run(&["start", "double"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    let worker = working(&world, &double()).await;
    assert_eq!(
        world.ok(&["start", "double", "--input=21", "--wait"]),
        "42\n"
    );
    assert_eq!(
        fed(&world, &["start", "double", "--input=-", "--wait"], "4").out,
        "8\n"
    );
    let failed = world.run(&["start", "double", "--id=f", "--wait", "--json"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("null is no number"), "{failed:?}");
    assert_eq!(failed.json()["status"], "failed");
    assert_eq!(world.run(&["result", "f"]).code, 1);
    let late = world.run(&["start", "double", "--delay=1h", "--timeout=10ms"]);
    assert_eq!(late.code, 6, "{late:?}");
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_printed_when_it_is_there_or_waited_for() {
    let world = World::new();
    let none = world.run(&["result", "r"]);
    assert_eq!(none.code, 3, "{none:?}");
    publish(&world, &double()).await;
    world.ok(&["start", "double", "--id=r", "--input=1"]);
    let early = world.run(&["result", "r"]);
    assert_eq!(early.code, 6, "{early:?}");
    assert!(early.err.contains("--wait"), "{early:?}");
    assert_eq!(world.run(&["result", "r", "--timeout=20ms"]).code, 6);
    let waiting = world.command(&["result", "r", "--wait", "--json"]);
    let waiting = std::thread::spawn(move || {
        let mut waiting = waiting;
        Said::from(waiting.output().expect("the program"))
    });
    let worker = world.worker(&double()).await;
    let said = tokio::task::spawn_blocking(|| waiting.join().expect("said"))
        .await
        .expect("said");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json()["result"], 2);
    assert_eq!(said.json()["status"], "completed");
    stop(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_reaches_who_waits_for_it_once() {
    let world = World::new();
    let worker = working(&world, &loan()).await;
    world.ok(&["start", "loan", "--id=l", "--input=7"]);
    let wrong = world.run(&["signal", "l", "aproval"]);
    assert_eq!(wrong.code, 4, "{wrong:?}");
    assert!(wrong.err.contains("those for `approval`"), "{wrong:?}");
    assert_eq!(world.run(&["signal", "nobody", "approval"]).code, 3);
    let other = tenure::ids::RunId::unique().to_string();
    assert_eq!(
        world
            .run(&["signal", "l", "approval", "--run", &other])
            .code,
        3
    );
    let yes = serde_json::to_string(&Approval::approved("ada")).expect("JSON");
    let args = [
        "signal",
        "l",
        "approval",
        "--payload",
        &yes,
        "--signal-id=mail-1",
    ];
    assert_eq!(world.ok(&args), "`l` has the signal `approval`\n");
    let result = world.ok_json(&["result", "l", "--timeout=20s"]);
    assert_eq!(
        result["result"],
        serde_json::from_str::<Value>(&yes).expect("JSON")
    );
    let over = world.run(&["signal", "l", "approval", "--payload", &yes]);
    assert_eq!(over.code, 4, "{over:?}");
    let client = Client::new(world.store().await);
    until("it is over", async || {
        client
            .handle("l")
            .await
            .expect("l")
            .status()
            .await
            .expect("its status")
            == Status::Completed
    })
    .await;
    stop(worker).await;
}
