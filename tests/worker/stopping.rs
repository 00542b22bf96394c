use std::{sync::Arc, time::Duration};

use tenure::{
    client::Client,
    store::{Inspect, TaskState, memory::MemoryStore},
    worker::{Worker, WorkerError, WorkerHandle},
    workflow::Workflow,
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::support::{Fault, Flaky, Gauge, instance, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

/// A workflow whose task waits until it is let go, and says when it is inside.
fn gated(inside: &Gauge, gate: &Arc<Notify>) -> Workflow<u32, u32> {
    let (inside, gate) = (inside.clone(), Arc::clone(gate));
    Workflow::builder("gated")
        .task("a", move |n: u32| {
            let guard = inside.enter();
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                drop(guard);
                anyhow::Ok(n)
            }
        })
        .build()
        .unwrap()
}

// W07
#[test]
fn a_handle_can_be_shared() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<WorkerHandle>();
    shared::<Client>();
    shared::<tenure::client::Handle<u32>>();
}

// W08 W09
#[tokio::test]
async fn every_caller_of_join_gets_the_outcome() {
    let flow = gated(&Gauge::default(), &Arc::default());
    let worker = quick(MemoryStore::new())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let worker = worker.clone();
            tokio::spawn(async move { worker.join().await })
        })
        .collect();
    worker.shutdown();
    worker.shutdown();
    for join in waiting {
        assert_eq!(join.await.unwrap().unwrap().settled, 0);
    }
    worker.join().await.unwrap();
    assert!(worker.health().ended && worker.health().draining);
}

// W09: a fault of the worker itself, in whichever of its parts.
#[tokio::test]
async fn every_caller_of_join_gets_the_panic_of_the_worker() {
    for (call, part) in [
        ("tick", "keeper"),
        ("claim", "fetcher"),
        ("extend", "heartbeat"),
        ("settle", "settler"),
    ] {
        let flow = Workflow::builder("fault")
            .task("a", |n: u32| async move { anyhow::Ok(n) })
            .build()
            .unwrap();
        let store = Flaky::new(MemoryStore::new());
        let client = Client::new(store.inner.clone());
        store.fail(call, Fault::Panic, 1);
        let worker = quick(store.clone())
            .workflow(&flow)
            .drain_timeout(MILLIS(50));
        let worker = worker.build().unwrap().spawn();
        client.start(&flow, 1).await.unwrap();
        for join in [worker.join(), worker.join()] {
            match tokio::time::timeout(SOON, join).await.expect(part) {
                Err(WorkerError::Panicked { role, message }) => {
                    assert_eq!(role, part);
                    assert_eq!(message, format!("a fault of the store in {call}"));
                }
                other => panic!("{part}: {other:?}"),
            }
        }
        assert!(worker.health().ended);
    }
}

// W11 W12 case 1: the claim is there until the result is.
#[tokio::test]
async fn running_tasks_finish_under_heartbeats_before_the_worker_ends() {
    let (inside, gate) = (Gauge::default(), Arc::new(Notify::new()));
    let flow = gated(&inside, &gate);
    let store = MemoryStore::new();
    let ttl = MILLIS(120);
    let worker = quick(store.clone())
        .workflow(&flow)
        .claim_ttl(ttl)
        .build()
        .unwrap()
        .spawn();
    let idle = quick(store.clone()).workflow(&flow).claim_ttl(ttl);
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    until("it runs", async || inside.now() == 1).await;
    let _idle = idle.build().unwrap().spawn();
    worker.shutdown();
    let begin = Instant::now();
    while begin.elapsed() < ttl * 3 {
        let claim = store.claim_key(&instance("i"), &task("a")).await.unwrap();
        assert_eq!(claim.expect("a claim").0, *worker.id());
        tokio::time::sleep(MILLIS(10)).await;
    }
    let late = client.start(&flow, 2).await.unwrap();
    gate.notify_one();
    assert_eq!(worker.join().await.unwrap().settled, 1);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
    assert_eq!(
        handle.snapshot().await.unwrap().tasks[&task("a")].attempt,
        1
    );
    gate.notify_one();
    assert_eq!(
        late.result_within(SOON).await.unwrap(),
        2,
        "by the other worker"
    );
}

// W12 case 14
#[tokio::test]
async fn what_still_runs_at_the_drain_deadline_is_dropped_and_given_back_uncounted() {
    let (inside, gate) = (Gauge::default(), Arc::new(Notify::new()));
    let flow = gated(&inside, &gate);
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .drain_timeout(MILLIS(30));
    let worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone())
        .start(&flow, 1)
        .id("i")
        .await
        .unwrap();
    until("it runs", async || inside.now() == 1).await;
    worker.shutdown();
    let summary = worker.join().await.unwrap();
    assert_eq!((summary.settled, summary.given_back), (0, 1));
    assert_eq!(inside.now(), 0, "dropped");
    let record = handle
        .snapshot()
        .await
        .unwrap()
        .tasks
        .remove(&task("a"))
        .unwrap();
    assert_eq!(record.state, TaskState::Ready);
    assert_eq!((record.attempt, record.failures, record.crashes), (1, 0, 0));
    assert_eq!(
        store.claim_key(&instance("i"), &task("a")).await.unwrap(),
        None
    );

    let _next = quick(store).workflow(&flow).build().unwrap().spawn();
    gate.notify_one();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
}

// W10
#[tokio::test]
async fn a_worker_whose_handles_are_dropped_drains_and_ends() {
    let (inside, gate) = (Gauge::default(), Arc::new(Notify::new()));
    let flow = gated(&inside, &gate);
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = worker.client();
    let first = client.start(&flow, 1).await.unwrap();
    until("it runs", async || inside.now() == 1).await;
    let copy = worker.clone();
    drop(worker);
    let second = client.start(&flow, 2).await.unwrap();
    until("a clone keeps it alive", async || inside.now() == 2).await;
    drop(copy);
    let third = client.start(&flow, 3).await.unwrap();
    gate.notify_one();
    gate.notify_one();
    assert_eq!(first.result_within(SOON).await.unwrap(), 1);
    assert_eq!(second.result_within(SOON).await.unwrap(), 2);
    tokio::time::sleep(MILLIS(120)).await;
    assert_eq!(third.snapshot().await.unwrap().tasks[&task("a")].attempt, 0);
}

// W11: a token, as a signal handler has it.
#[tokio::test]
async fn a_worker_in_the_foreground_ends_with_its_token() {
    let (inside, gate) = (Gauge::default(), Arc::new(Notify::new()));
    let flow = gated(&inside, &gate);
    let store = MemoryStore::new();
    let token = CancellationToken::new();
    let worker = quick(store.clone()).workflow(&flow).build().unwrap();
    let run = tokio::spawn(worker.run(token.clone()));
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    until("it runs", async || inside.now() == 1).await;
    token.cancel();
    gate.notify_one();
    assert_eq!(run.await.unwrap().unwrap().settled, 1);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
}

// case 58: a worker that has left is nobody's first choice.
#[tokio::test]
async fn work_goes_to_the_worker_that_stays_when_another_has_left() {
    let flow = Workflow::builder("left")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = |id: &str| {
        let worker = Worker::builder(store.clone()).id(id).workflow(&flow);
        worker.build().unwrap().spawn()
    };
    let client = Client::new(store.clone());
    let _stays = worker("stays");
    let warm = client.start(&flow, 0).await.unwrap();
    warm.result_within(SOON).await.unwrap();
    let leaves = worker("leaves");
    until("it has looked", async || {
        leaves.health().last_contact.is_some()
    })
    .await;
    tokio::time::sleep(MILLIS(30)).await;
    leaves.shutdown();
    leaves.join().await.unwrap();
    let begin = Instant::now();
    let handle = client.start(&flow, 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}

// W13
#[tokio::test]
async fn a_worker_and_its_handle_give_access_to_the_store() {
    let flow = Workflow::builder("store")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let worker = quick(MemoryStore::new()).workflow(&flow).build().unwrap();
    let handle = worker.client().start(&flow, 1).await.unwrap();
    let worker = worker.spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
    let again = worker
        .client()
        .handle_typed::<u32>(handle.id())
        .await
        .unwrap();
    assert_eq!(again.run(), handle.run());
    assert_eq!(again.result_within(SOON).await.unwrap(), 1);
}
