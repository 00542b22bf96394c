use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tenure::{
    client::{Client, ClientError},
    store::{Inspect, Status, TaskState, memory::MemoryStore},
    task::TaskContext,
    workflow::Workflow,
};

use tokio::time::Instant;

use crate::support::{Gauge, instance, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

// W14 W22 case 44
#[tokio::test]
async fn cancelling_reaches_the_token_of_a_running_task() {
    let told = Arc::new(AtomicBool::new(false));
    let (seen, inside) = (Arc::clone(&told), Gauge::default());
    let entered = inside.clone();
    let flow = Workflow::builder("listens")
        .task("a", move |ctx: TaskContext, (): ()| {
            let (told, guard) = (Arc::clone(&seen), entered.enter());
            async move {
                ctx.cancellation().cancelled().await;
                told.store(true, Ordering::SeqCst);
                drop(guard);
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .claim_ttl(Duration::from_secs(60));
    let worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone())
        .start(&flow, ())
        .id("i")
        .await
        .unwrap();
    until("it runs", async || inside.now() == 1).await;
    // The heartbeats of the start are over then; the next one is 20 s away.
    tokio::time::sleep(MILLIS(50)).await;
    let begin = Instant::now();
    handle.cancel("no longer wanted", "ada").await.unwrap();
    until("the handler heard it", async || told.load(Ordering::SeqCst)).await;
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "by a hint, not by a heartbeat"
    );
    match handle.result_within(SOON).await.unwrap_err() {
        ClientError::Cancelled { reason, actor, .. } => {
            assert_eq!(reason.as_deref(), Some("no longer wanted"));
            assert_eq!(actor.as_deref(), Some("ada"));
        }
        other => panic!("{other}"),
    }
    until("the slot is free", async || worker.health().running == 0).await;
    assert_eq!(
        store.claim_key(&instance("i"), &task("a")).await.unwrap(),
        None
    );
    assert_eq!(
        handle.snapshot().await.unwrap().tasks[&task("a")].state,
        TaskState::Closed
    );
    assert_eq!(inside.all(), 1, "never retried");
}

// W22
#[tokio::test]
async fn a_handler_that_ignores_its_token_is_dropped_after_the_grace() {
    let inside = Gauge::default();
    let entered = inside.clone();
    let flow = Workflow::builder("deaf")
        .task("a", move |(): ()| {
            let guard = entered.enter();
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .cancel_grace(MILLIS(40));
    let worker = worker.build().unwrap().spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    until("it runs", async || inside.now() == 1).await;
    let begin = Instant::now();
    handle.cancel("", "").await.unwrap();
    until("it was dropped", async || inside.now() == 0).await;
    assert!(begin.elapsed() >= MILLIS(40));
    until("the slot is free", async || worker.health().running == 0).await;
}

// W14: at once, in every state.
#[tokio::test]
async fn queued_and_delayed_instances_are_cancelled_at_once() {
    let flow = Workflow::builder("waits")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let queued = client.start(&flow, 1).await.unwrap();
    let delayed = client.start(&flow, 2).delay(MILLIS(30)).await.unwrap();
    for handle in [&queued, &delayed] {
        handle.cancel("why", "who").await.unwrap();
        assert_eq!(handle.status().await.unwrap(), Status::Cancelled);
        handle
            .cancel("again", "who")
            .await
            .expect("a repeat is no error");
    }
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    let live = client.start(&flow, 3).delay(MILLIS(60)).await.unwrap();
    assert_eq!(live.result_within(SOON).await.unwrap(), 3);
    for handle in [queued, delayed] {
        assert_eq!(
            handle.snapshot().await.unwrap().tasks[&task("a")].attempt,
            0
        );
    }
}

// W14
#[tokio::test]
async fn cancelling_what_is_absent_or_over_is_an_error() {
    let flow = Workflow::builder("over")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let absent = client.cancel("nobody", "", "").await.unwrap_err();
    assert!(matches!(absent, ClientError::NotFound { .. }), "{absent}");
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    handle.result_within(SOON).await.unwrap();
    let over = client.cancel("i", "", "").await.unwrap_err();
    assert!(
        matches!(
            over,
            ClientError::Over {
                status: Status::Completed,
                ..
            }
        ),
        "{over}"
    );
}

#[tokio::test]
async fn a_terminated_instance_says_so() {
    let flow = Workflow::builder("terminated")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let client = Client::new(MemoryStore::new());
    let handle = client.start(&flow, 1).await.unwrap();
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.result_within(SOON).await }
    });
    client
        .terminate(handle.id().as_str(), "stuck", "operator")
        .await
        .unwrap();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(&error, ClientError::Terminated { .. }), "{error}");
    assert!(error.to_string().contains("by operator: stuck"), "{error}");
}

// case 46: whatever the order, the reply and the end agree.
#[tokio::test]
async fn a_cancel_beside_a_commit_has_one_outcome_and_says_which() {
    let flow = Workflow::builder("race")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    let (mut cancelled, mut completed) = (0, 0);
    for n in 0..200 {
        let handle = client.start(&flow, n).await.unwrap();
        if n % 2 == 1 {
            tokio::time::sleep(Duration::from_micros(u64::from(n) * 5)).await;
        }
        let said = handle.cancel("", "").await;
        match (said, handle.result_within(SOON).await) {
            (Ok(()), Err(ClientError::Cancelled { .. })) => cancelled += 1,
            (Err(ClientError::Over { .. }), Ok(_)) => completed += 1,
            (said, result) => panic!("{said:?} {result:?}"),
        }
    }
    assert_eq!(cancelled + completed, 200);
    assert!(cancelled > 0 && completed > 0, "{cancelled} {completed}");
}
