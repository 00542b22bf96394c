//! `dead`: by error, one by one, retried and discarded.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tenure::{Client, Status, TaskError, WorkerHandle, Workflow};

use crate::world::{World, until};

/// Odd ones are declined, each with a code of its own; even ones break otherwise. Both until it is mended.
fn pay(mended: &Arc<AtomicBool>) -> Workflow<u32, u32> {
    let mended = mended.clone();
    Workflow::builder("pay")
        .task("charge", move |n: u32| {
            let mended = mended.load(Ordering::SeqCst);
            async move {
                match (mended, n % 2) {
                    (true, _) => Ok(n),
                    (_, 1) => Err(format!("declined: code {n}, card pay-{n}")),
                    _ => Err("no route to the bank\nat all".to_owned()),
                }
                .map_err(TaskError::permanent)
            }
        })
        .build()
        .expect("a workflow")
}

/// Five dead instances: pay-1 to pay-5.
async fn cemetery(world: &World, mended: &Arc<AtomicBool>) -> (Client, WorkerHandle) {
    let pay = pay(mended);
    let worker = world.worker(&pay).await;
    let client = Client::new(world.store().await);
    for n in 1..=5 {
        let start = client.start(&pay, n).id(format!("pay-{n}"));
        start.await.expect("a start");
    }
    until("all are dead", async || {
        let counts = client.counts().await.expect("counts");
        counts.finished.get(&Status::Failed) == Some(&5)
    })
    .await;
    (client, worker)
}

async fn end(worker: WorkerHandle) {
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dead_are_grouped_by_what_they_died_of() {
    let world = World::new();
    assert_eq!(world.ok(&["dead"]), "no dead instances\n");
    let (_, worker) = cemetery(&world, &Arc::default()).await;
    let table = world.ok(&["dead"]);
    assert!(
        table.starts_with("5 dead instances, 2 kinds of errors\n"),
        "{table}"
    );
    let found = world.ok_json(&["dead"]);
    assert_eq!(
        (&found["instances"], &found["more"]),
        (&5.into(), &false.into())
    );
    let groups = found["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 2);
    let declined = &groups[0];
    assert_eq!(declined["count"], 3);
    assert_eq!(declined["task"], "charge");
    assert_eq!(declined["error"], "declined: code #, card #");
    let example = declined["example"].as_str().expect("an id");
    assert!(["pay-1", "pay-3", "pay-5"].contains(&example));
    assert_eq!(groups[1]["error"], "no route to the bank\nat all");
    let bounded = world.ok(&["dead", "--limit", "2"]);
    assert!(bounded.starts_with("the newest 2 dead"), "{bounded}");
    let none = world.ok(&["dead", "--workflow", "other"]);
    assert_eq!(none, "no dead instances\n");
    let said = world.run(&["dead", "--status", "completed"]);
    assert_eq!(said.code, 2, "{said:?}");
    end(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dead_of_one_group_are_listed() {
    let world = World::new();
    let (_, worker) = cemetery(&world, &Arc::default()).await;
    let table = world.ok(&["dead", "list"]);
    assert_eq!(table.lines().count(), 6, "{table}");
    assert!(table.contains("no route to the bank…"), "{table}");
    let groups = world.ok_json(&["dead"]);
    let group = groups["groups"][0]["group"].as_str().expect("a name");
    let listed = world.ok_json(&["dead", "list", "--error", group]);
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|row| row["group"] == group));
    assert!(
        listed
            .iter()
            .any(|row| row["error"] == "declined: code 3, card pay-3")
    );
    let said = world.run(&["dead", "list", "--error", group, "--limit", "2"]);
    assert_eq!((said.code, said.out.lines().count()), (0, 3), "{said:?}");
    assert!(said.err.contains("--limit"), "{said:?}");
    end(worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_group_is_retried_and_the_other_discarded() {
    let world = World::new();
    let mended = Arc::new(AtomicBool::new(false));
    let (client, worker) = cemetery(&world, &mended).await;
    let found = world.ok_json(&["dead"]);
    let group = |at: usize| found["groups"][at]["group"].as_str().expect("a name");
    for args in [
        &["dead", "retry"][..],
        &["dead", "discard", "--all", "--prefix", "p"],
    ] {
        let said = world.run(args);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("which of the dead?"), "{said:?}");
    }
    let said = world.run(&["dead", "retry", "--error", group(0)]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("3 instances would be retried"),
        "{said:?}"
    );

    mended.store(true, Ordering::SeqCst);
    let said = world.run(&["dead", "retry", "--error", group(0), "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("3 retried"), "{said:?}");
    until("they complete", async || {
        let counts = client.counts().await.expect("counts");
        counts.finished.get(&Status::Completed) == Some(&3)
    })
    .await;
    let said = world.run(&["dead", "discard", "--error", group(1), "--yes", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.json().as_array().map(Vec::len), Some(2));
    assert_eq!(world.ok(&["dead"]), "no dead instances\n");
    for args in [&["dead", "list"][..], &["dead", "retry", "--yes"]] {
        let said = world.run(&[args, &["--error", group(0)]].concat());
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.err.contains(group(0)), "{said:?}");
    }
    end(worker).await;
}
