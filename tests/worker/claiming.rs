use std::{num::NonZeroU16, time::Duration};

use tenure::{
    client::{Client, Start},
    ids::InstanceId,
    store::{Inspect, memory::MemoryStore},
    worker::Worker,
    workflow::{RetryPolicy, Workflow},
};

use crate::support::{Flaky, Gauge, instance, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

// W21: several workers, no fault: nothing runs twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_fault_nothing_runs_twice() {
    let runs = Gauge::default();
    let seen = runs.clone();
    let flow = Workflow::builder("once")
        .task("a", move |n: u32| {
            drop(seen.enter());
            async move { anyhow::Ok(n) }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let workers: Vec<_> = (0..4)
        .map(|_| {
            quick(store.clone())
                .workflow(&flow)
                .concurrency(5)
                .build()
                .unwrap()
                .spawn()
        })
        .collect();
    let client = Client::new(store);
    let handles = client.start_many(&flow, (0..400).map(Start::new)).await;
    for handle in handles {
        handle.unwrap().result_within(SOON).await.unwrap();
    }
    assert_eq!(runs.all(), 400);
    drop(workers);
}

// case 9: heartbeats keep a claim for as long as it takes.
#[tokio::test]
async fn a_task_of_many_ttls_runs_once() {
    let runs = Gauge::default();
    let seen = runs.clone();
    let flow = Workflow::builder("long")
        .task("a", move |(): ()| {
            drop(seen.enter());
            async {
                tokio::time::sleep(MILLIS(600)).await;
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let ttl = MILLIS(60);
    let worker = || {
        quick(store.clone())
            .claim_ttl(ttl)
            .workflow(&flow)
            .build()
            .unwrap()
            .spawn()
    };
    let _workers = (worker(), worker());
    let handle = Client::new(store.clone()).start(&flow, ()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(runs.all(), 1);
    assert_eq!(
        handle.snapshot().await.unwrap().tasks[&task("a")].attempt,
        1
    );
}

// W29: a claim is as long as its TTL to begin with; the first extension is due after a third of it.
#[tokio::test]
async fn tasks_that_are_over_soon_cost_no_heartbeat() {
    let flow = Workflow::builder("short")
        .task("a", |(): ()| async {
            tokio::time::sleep(MILLIS(10)).await;
            anyhow::Ok(())
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let ten_tasks = async |ttl: Duration| {
        let before = store.calls("extend");
        let worker = quick(store.clone()).claim_ttl(ttl).workflow(&flow);
        let worker = worker.build().unwrap().spawn();
        for _ in 0..10 {
            let handle = client.start(&flow, ()).await.unwrap();
            handle.result_within(SOON).await.unwrap();
        }
        worker.shutdown();
        assert_eq!(worker.join().await.unwrap().settled, 10);
        store.calls("extend") - before
    };
    // The worker shows itself when it begins, and once more when its mailbox is open.
    let long = ten_tasks(Duration::from_secs(60)).await;
    assert!((1..=2).contains(&long), "{long} heartbeats");
    let short = ten_tasks(MILLIS(50)).await;
    assert!(short > 2, "{short} heartbeats in six times the interval");
}

// case 10
#[tokio::test]
async fn a_delayed_instance_has_no_claim_and_runs_once() {
    let runs = Gauge::default();
    let seen = runs.clone();
    let flow = Workflow::builder("delayed")
        .task("a", move |(): ()| {
            drop(seen.enter());
            async { anyhow::Ok(()) }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let ttl = MILLIS(60);
    let workers: Vec<_> = (0..5)
        .map(|_| {
            quick(store.clone())
                .claim_ttl(ttl)
                .workflow(&flow)
                .build()
                .unwrap()
                .spawn()
        })
        .collect();
    let client = Client::new(store.clone());
    let handle = client
        .start(&flow, ())
        .id("i")
        .delay(MILLIS(200))
        .await
        .unwrap();
    for _ in 0..10 {
        assert_eq!(
            store.claim_key(&instance("i"), &task("a")).await.unwrap(),
            None
        );
        tokio::time::sleep(MILLIS(10)).await;
    }
    handle.result_within(SOON).await.unwrap();
    assert_eq!(runs.all(), 1);
    drop(workers);
}

// W50: on every path.
#[tokio::test]
async fn no_claim_is_left_when_a_task_has_ended() {
    let flow = Workflow::builder("ends")
        .task("a", |n: u32| async move {
            match n {
                0 => Ok(()),
                1 => Err("fails"),
                2 => panic!("panics"),
                _ => std::future::pending().await,
            }
        })
        .retry(RetryPolicy::none())
        .timeout(MILLIS(30))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store.clone());
    for n in 0..4 {
        let handle = client.start(&flow, n).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.is_ok(), n == 0);
        until("the slot is free", async || worker.health().running == 0).await;
        assert_eq!(
            store.claim_key(handle.id(), &task("a")).await.unwrap(),
            None
        );
    }
}

// All partitions fairly, also with fewer slots than partitions.
#[tokio::test]
async fn a_worker_with_few_slots_serves_all_partitions() {
    let flow = Workflow::builder("partitions")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .task("b", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let partitions = NonZeroU16::new(8).unwrap();
    let store = Flaky::new(MemoryStore::builder().partitions(partitions).build());
    let client = Client::new(store.clone());
    let items = (0..200).map(|n| Start::new(n).id(format!("i-{n}")));
    let handles = client.start_many(&flow, items).await;
    let used: std::collections::HashSet<_> = (0..200)
        .map(|n| {
            InstanceId::new(format!("i-{n}"))
                .unwrap()
                .partition(partitions)
        })
        .collect();
    assert_eq!(used.len(), 8);
    let worker = quick(store.clone()).workflow(&flow).concurrency(2);
    let _worker = worker.build().unwrap().spawn();
    for (n, handle) in (0..).zip(handles) {
        assert_eq!(handle.unwrap().result_within(SOON).await.unwrap(), n);
    }
    assert!(store.wants().iter().all(|want| *want <= 2));
    // Those that run, and those whose outcomes are on their way.
    assert!(store.most_claimed() <= 4);
}

// case 58: the list of a busy worker is served by the one that is free.
#[tokio::test]
async fn a_full_worker_passes_its_hint_on() {
    let (inside, gate) = (
        Gauge::default(),
        std::sync::Arc::new(tokio::sync::Notify::new()),
    );
    let (seen, wait) = (inside.clone(), gate.clone());
    let flow = Workflow::builder("full")
        .task("a", move |n: u32| {
            let guard = seen.enter();
            let wait = wait.clone();
            async move {
                if n == 0 {
                    wait.notified().await;
                }
                drop(guard);
                anyhow::Ok(n)
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::builder()
        .partitions(NonZeroU16::new(2).unwrap())
        .build();
    let client = Client::new(store.clone());
    let worker = |id: &str| {
        let worker = Worker::builder(store.clone())
            .id(id)
            .workflow(&flow)
            .concurrency(1);
        worker.build().unwrap().spawn()
    };
    let _workers = (worker("one"), worker("two"));
    tokio::time::sleep(MILLIS(50)).await;
    client.start(&flow, 0).await.unwrap();
    until("one is busy", async || inside.now() == 1).await;
    let begin = tokio::time::Instant::now();
    for n in 1..20 {
        let handle = client.start(&flow, n).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), n);
    }
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
    gate.notify_one();
}
