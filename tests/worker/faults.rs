use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tenure::{
    client::{Client, ClientError, Handle},
    ids::InstanceId,
    store::{
        ErrorKind, Inspect, TaskState,
        memory::{Damage, MemoryStore},
    },
    worker::WorkerHandle,
    workflow::Workflow,
};
use tokio::{sync::Notify, time::Instant};

use crate::support::{Fault, Flaky, Gauge, instance, partition, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

fn counting(calls: &Arc<AtomicU32>) -> Workflow<u32, u32> {
    let calls = Arc::clone(calls);
    let count = move |n: u32| {
        calls.fetch_add(1, Ordering::SeqCst);
        async move { anyhow::Ok(n + 1) }
    };
    Workflow::builder("counting")
        .task("a", count.clone())
        .task("b", count)
        .build()
        .unwrap()
}

// W16: whichever call fails, and whether or not it was carried out, a task runs once and the worker goes on.
#[tokio::test]
async fn failing_calls_cost_time_and_nothing_else() {
    for call in ["claim", "settle", "extend", "tick", "publish", "mailbox"] {
        for fault in [Fault::Refuse, Fault::LoseReply] {
            let calls = Arc::new(AtomicU32::new(0));
            let flow = counting(&calls);
            let store = Flaky::new(MemoryStore::new());
            store.fail(call, fault, 3);
            let client = Client::new(store.inner.clone());
            let handle = client.start(&flow, 1).await.unwrap();
            let worker = quick(store.clone())
                .workflow(&flow)
                .build()
                .unwrap()
                .spawn();
            let result = handle.result_within(SOON).await;
            assert_eq!(result.unwrap(), 3, "{call} {fault:?}");
            assert_eq!(calls.load(Ordering::SeqCst), 2, "{call} {fault:?}");
            let tasks = handle.snapshot().await.unwrap().tasks;
            assert!(
                tasks.values().all(|t| t.attempt == 1 && t.crashes == 0),
                "{call} {fault:?}"
            );
            worker.shutdown();
            worker.join().await.unwrap();
        }
    }
}

// case 55: the reply to a claim is lost, the repeat gets the same claim, no crash is counted.
#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_found_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let flow = counting(&calls);
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.inner.clone());
    let handle = client.start(&flow, 1).await.unwrap();
    store.fail("claim", Fault::LoseReply, 1);
    let worker = quick(store.clone())
        .claim_ttl(Duration::from_secs(60))
        .workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    assert_eq!(
        handle.snapshot().await.unwrap().tasks[&task("a")].attempt,
        1
    );
}

// case 25 case 57: away for longer than the claims hold.
#[tokio::test]
async fn results_are_stored_after_an_outage_of_twice_the_ttl() {
    let (inside, gate) = (Gauge::default(), Arc::new(Notify::new()));
    let (seen, wait) = (inside.clone(), Arc::clone(&gate));
    let flow = Workflow::builder("outage")
        .task("a", move |n: u32| {
            let guard = seen.enter();
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                drop(guard);
                anyhow::Ok(n)
            }
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.inner.clone());
    let ttl = MILLIS(150);
    let worker = quick(store.clone())
        .claim_ttl(ttl)
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let mut handles = Vec::new();
    for n in 0..10 {
        handles.push(client.start(&flow, n).await.unwrap());
    }
    until("all run", async || inside.now() == 10).await;
    store.set_away(true);
    tokio::time::sleep(ttl).await;
    gate.notify_waiters();
    until("all have ended", async || inside.now() == 0).await;
    tokio::time::sleep(ttl).await;
    assert_eq!(inside.all(), 10, "nothing was interrupted");
    store.set_away(false);
    for (n, handle) in (0..).zip(&handles) {
        assert_eq!(handle.result_within(SOON).await.unwrap(), n);
        assert_eq!(
            handle.snapshot().await.unwrap().tasks[&task("a")].attempt,
            1
        );
    }
    assert_eq!(inside.all(), 10, "nothing ran twice");
    assert!(!worker.health().ended);
}

// W28 case 4 case 52: another worker has it now.
#[tokio::test]
async fn a_lost_claim_drops_the_handler_and_stores_nothing() {
    let inside = Gauge::default();
    let seen = inside.clone();
    let flow = Workflow::builder("lost")
        .task("a", move |n: u32| {
            let guard = seen.enter();
            let first = seen.all() == 1;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                drop(guard);
                anyhow::Ok(n)
            }
        })
        // The instance goes on, so that the claim is lost and not cancelled.
        .delay("rest", Duration::from_secs(3600))
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.inner.clone());
    let ttl = MILLIS(150);
    let first = quick(store.clone())
        .id("first")
        .claim_ttl(ttl)
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = client.start(&flow, 5).id("i").await.unwrap();
    until("it runs", async || inside.now() == 1).await;
    // The first worker is cut off for so long that its claim and its presence are gone.
    store.set_away(true);
    let second = quick(store.inner.clone())
        .id("second")
        .claim_ttl(ttl)
        .workflow(&flow);
    let _second = second.build().unwrap().spawn();
    let record = async || {
        handle
            .snapshot()
            .await
            .unwrap()
            .tasks
            .remove(&task("a"))
            .unwrap()
    };
    until("the second has stored it", async || {
        record().await.state == TaskState::Completed
    })
    .await;
    assert_eq!(inside.now(), 1, "the first worker knows nothing yet");
    let begin = Instant::now();
    store.set_away(false);
    until("the first learned that it lost", async || inside.now() == 0).await;
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    until("its slot is free", async || first.health().running == 0).await;
    let record = record().await;
    assert_eq!(
        (record.attempt, record.worker.unwrap().as_str()),
        (2, "second")
    );
    assert_eq!(
        store.claim_key(&instance("i"), &task("a")).await.unwrap(),
        None
    );
}

/// A store whose settlements fail so often, a task in it, and a worker.
async fn refusing(fault: Fault, times: usize) -> (Handle<u32>, Arc<AtomicU32>, WorkerHandle) {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let flow = Workflow::builder("counting")
        .task("a", move |n: u32| {
            count.fetch_add(1, Ordering::SeqCst);
            async move { anyhow::Ok(n + 1) }
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    store.fail("settle", fault, times);
    let handle = Client::new(store.inner.clone()).start(&flow, 1).await;
    let worker = quick(store).workflow(&flow).build().unwrap().spawn();
    (handle.unwrap(), calls, worker)
}

#[tokio::test]
async fn a_result_that_the_store_refuses_for_good_fails_its_task() {
    let (handle, calls, _worker) = refusing(Fault::RefuseForGood, 1).await;
    let error = handle.result_within(SOON).await.unwrap_err();
    let ClientError::Failed { error, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert!(
        error.message.contains("does not take the result")
            && error.message.contains("nobody knows why"),
        "{}",
        error.message
    );
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_task_whose_failure_is_refused_too_is_given_back() {
    let (handle, calls, _worker) = refusing(Fault::RefuseForGood, 2).await;
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    let record = &handle.snapshot().await.unwrap().tasks[&task("a")];
    assert_eq!((record.attempt, record.failures, record.crashes), (2, 0, 0));
}

#[tokio::test]
async fn a_result_waits_for_a_user_that_is_let_in_again() {
    let (handle, calls, _worker) = refusing(Fault::Login, 3).await;
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

// A record that cannot be read is set aside; all others go on.
#[tokio::test]
async fn an_unreadable_record_stops_nobody() {
    let calls = Arc::new(AtomicU32::new(0));
    let flow = counting(&calls);
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    client.start(&flow, 1).id("broken").await.unwrap();
    store.damage(&instance("broken"), Damage::Format("99".into()));
    let handle = client.start(&flow, 1).await.unwrap();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    assert_eq!(store.counts(partition()).await.unwrap().aside, 1);
}

// W16: the worker waits for it, and claims nothing before it has shown itself.
#[tokio::test]
async fn a_store_that_was_away_at_the_start_is_found_when_it_comes() {
    let calls = Arc::new(AtomicU32::new(0));
    let flow = counting(&calls);
    let store = Flaky::new(MemoryStore::new());
    store.set_away(true);
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    until("it tries", async || {
        store.calls("extend") > 2 && store.calls("publish") > 1
    })
    .await;
    assert_eq!(worker.health().last_contact, None);
    assert_eq!(
        store.calls("claim"),
        0,
        "no claim before the first heartbeat"
    );
    store.set_away(false);
    let handle = Client::new(store.inner.clone())
        .start(&flow, 1)
        .await
        .unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    assert!(worker.health().last_contact.is_some());
}

// case 2: handlers that block every thread of the runtime do not stop heartbeats.
#[test]
fn a_blocked_runtime_keeps_its_claims() {
    let runs = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&runs);
    let flow = Workflow::builder("blocks")
        .task("a", move |(): ()| {
            seen.fetch_add(1, Ordering::SeqCst);
            async {
                std::thread::sleep(MILLIS(500));
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let one_thread = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let (blocked, other) = (one_thread(), one_thread());
    let ttl = MILLIS(100);
    let (flow_a, store_a) = (flow.clone(), store.clone());
    let a = std::thread::spawn(move || {
        blocked.block_on(async {
            let worker = quick(store_a).id("a").claim_ttl(ttl).workflow(&flow_a);
            let worker = worker.build().unwrap().spawn();
            let handle = worker.client().start(&flow_a, ()).id("i").await.unwrap();
            handle.result_within(SOON).await.unwrap();
        });
    });
    other.block_on(async {
        until("a has it", async || runs.load(Ordering::SeqCst) == 1).await;
        let worker = quick(store.clone()).id("b").claim_ttl(ttl).workflow(&flow);
        let _worker = worker.build().unwrap().spawn();
        let id: InstanceId = instance("i");
        let client = Client::new(store.clone());
        let handle = client.handle_typed::<()>(id.as_str()).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        let record = handle
            .snapshot()
            .await
            .unwrap()
            .tasks
            .remove(&task("a"))
            .unwrap();
        assert_eq!((record.attempt, record.worker.unwrap().as_str()), (1, "a"));
    });
    a.join().unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

// case 76: the other way.
#[tokio::test]
async fn a_large_result_that_does_not_get_through_holds_up_no_other() {
    let large = Workflow::builder("large")
        .task("a", |n: usize| async move { anyhow::Ok("x".repeat(n)) })
        .build()
        .unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let small = counting(&calls);
    let store = Flaky::new(MemoryStore::new());
    store.set_too_narrow(true);
    let _worker = quick(store.clone())
        .workflow(&large)
        .workflow(&small)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store.inner.clone());
    let held_up = client.start(&large, 300 * 1024).await.unwrap();
    until("the large result is sent", async || {
        store.calls("large") > 0
    })
    .await;
    let handle = client.start(&small, 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    store.set_too_narrow(false);
    let result = held_up.result_within(SOON).await.unwrap();
    assert_eq!(result.len(), 300 * 1024);
    let tasks = held_up.snapshot().await.unwrap().tasks;
    assert_eq!(tasks[&task("a")].attempt, 1, "it was kept and sent again");
}

// case 22: more lists than one call may name; the store remembers only one call.
#[tokio::test]
async fn claims_of_a_lost_reply_are_had_before_other_lists_are_asked() {
    let flows: Vec<Workflow<u32, u32>> = (0..65)
        .map(|n| {
            Workflow::builder(format!("flow-{n}"))
                .task("a", |n: u32| async move { anyhow::Ok(n) })
                .build()
                .unwrap()
        })
        .collect();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.inner.clone());
    let mut handles = Vec::new();
    for flow in &flows {
        handles.push(client.start(flow, 1).await.unwrap());
    }
    store.fail("claim", Fault::LoseReply, 1);
    let _worker = quick(store.clone())
        .claim_ttl(Duration::from_secs(60))
        .workflows(&flows)
        .build()
        .unwrap()
        .spawn();
    for handle in handles {
        handle.result_within(SOON).await.unwrap();
    }
}
