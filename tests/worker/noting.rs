use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tenure::{
    Client, ClientError, MemoryStore, TaskContext, TaskError, Workflow, task::StateError,
    workflow::RetryPolicy,
};
use tokio::sync::Notify;

use crate::support::{Fault, Flaky, quick, until};

const SOON: Duration = Duration::from_secs(10);

// W27
#[tokio::test]
async fn progress_is_seen_while_the_task_runs_and_by_its_next_attempt() {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let flow = Workflow::builder("steps")
        .task("walk", move |ctx: TaskContext, (): ()| {
            let wait = Arc::clone(&wait);
            async move {
                let before: Option<u32> = ctx.last_progress().await?;
                let first = before.unwrap_or(0) + 1;
                ctx.progress(&first)?;
                wait.notified().await;
                ctx.progress(&(first + 1))?;
                if ctx.is_last() {
                    return Ok(before);
                }
                Err(TaskError::new("the road is closed"))
            }
        })
        .retry(RetryPolicy::fixed(Duration::from_millis(1)).max_attempts(2))
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone()).start(&flow, ()).await.unwrap();
    let now = async || handle.progress::<u32>("walk").await.unwrap();
    until("the first word is there", async || now().await == Some(1)).await;
    go.notify_one();
    // What was said last in the first attempt came with its end, though a second had not passed.
    until("the second attempt goes on from there", async || {
        now().await == Some(3)
    })
    .await;
    go.notify_one();
    assert_eq!(handle.result_within(SOON).await.unwrap(), Some(2));
    assert_eq!(now().await, Some(4), "it stays when the task has ended");
    assert!(store.calls("note") <= 4, "{} notes", store.calls("note"));
}

#[tokio::test]
async fn a_thousand_words_are_a_note_or_two() {
    let flow = Workflow::builder("talk")
        .task("talk", |ctx: TaskContext, (): ()| async move {
            for n in 1..=1_000_u32 {
                ctx.progress(&n)?;
                tokio::task::yield_now().await;
            }
            Ok::<_, TaskError>(())
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone()).start(&flow, ()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(handle.progress::<u32>("talk").await.unwrap(), Some(1_000));
    assert_eq!(store.calls("note"), 2, "the first word and the last");
}

#[tokio::test]
async fn a_task_that_notes_nothing_costs_no_note() {
    let flow = Workflow::builder("silent")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone()).start(&flow, 1).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(store.calls("note"), 0);
    assert_eq!(handle.progress::<u32>("a").await.unwrap(), None);
}

// W27 case 25
#[tokio::test]
async fn tasks_of_an_instance_share_values_through_faults() {
    let flow = Workflow::builder("share")
        .task("first", |ctx: TaskContext, (): ()| async move {
            ctx.set("basket", &vec![1, 2, 3]).await?;
            ctx.set("basket", &vec![4]).await?;
            Ok::<_, TaskError>(())
        })
        .task("second", |ctx: TaskContext, (): ()| async move {
            let basket: Option<Vec<u32>> = ctx.get("basket").await?;
            let missing: Option<u32> = ctx.get("missing").await?;
            Ok::<_, TaskError>((basket, missing))
        })
        .build()
        .unwrap();
    for fault in [Fault::Refuse, Fault::LoseReply] {
        let store = Flaky::new(MemoryStore::new());
        store.fail("note", fault, 2);
        let worker = quick(store.clone()).workflow(&flow);
        let _worker = worker.build().unwrap().spawn();
        let handle = Client::new(store).start(&flow, ()).await.unwrap();
        let seen = handle.result_within(SOON).await.unwrap();
        assert_eq!(seen, (Some(vec![4]), None), "{fault:?}");
        let shared: Option<Vec<u32>> = handle.shared("basket").await.unwrap();
        assert_eq!(shared, Some(vec![4]));
        let wrong = handle.shared::<String>("basket").await.unwrap_err();
        assert!(matches!(wrong, ClientError::WrongValue { .. }), "{wrong}");
    }
}

#[tokio::test]
async fn a_task_that_was_lost_sets_nothing_and_hears_it() {
    let held = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&held);
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let flow = Workflow::builder("lost")
        .task("a", move |ctx: TaskContext, (): ()| {
            let (seen, wait) = (Arc::clone(&seen), Arc::clone(&wait));
            async move {
                // What runs elsewhere outlives the handler.
                let spawned = tokio::spawn(async move {
                    wait.notified().await;
                    let told = ctx.set("k", &1).await;
                    let lost = matches!(told, Err(StateError::Lost));
                    seen.store(if lost { 1 } else { 2 }, Ordering::SeqCst);
                });
                spawned.await.map_err(TaskError::new)
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.cancel_grace(Duration::ZERO).build().unwrap().spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    until("it runs", async || {
        handle.snapshot().await.unwrap().started_at.is_some()
    })
    .await;
    handle.cancel("enough", "a test").await.unwrap();
    go.notify_one();
    until("the late writer hears", async || {
        held.load(Ordering::SeqCst) != 0
    })
    .await;
    assert_eq!(held.load(Ordering::SeqCst), 1);
    assert_eq!(handle.shared::<u32>("k").await.unwrap(), None);
}

#[tokio::test]
async fn values_out_of_bounds_are_typed_errors() {
    let ctx = TaskContext::for_test("a").unwrap();
    let key = ctx.set("no spaces", &1).await.unwrap_err();
    assert!(matches!(key, StateError::Key(_)), "{key}");
    let long = "x".repeat(70_000);
    let size = ctx.progress(&long).unwrap_err();
    assert!(size.to_string().contains("at most 65536"), "{size}");
    let size = ctx.set("k", &long).await.unwrap_err();
    assert!(matches!(size, StateError::TooLarge { .. }), "{size}");
    // Without a worker they are kept for this context.
    ctx.set("k", &7).await.unwrap();
    ctx.progress(&"half").unwrap();
    assert_eq!(ctx.get::<u32>("k").await.unwrap(), Some(7));
    assert_eq!(
        ctx.last_progress::<String>().await.unwrap().as_deref(),
        Some("half")
    );
    let wrong = ctx.get::<String>("k").await.unwrap_err();
    assert!(matches!(wrong, StateError::Codec { .. }), "{wrong}");
}

#[tokio::test]
async fn the_result_of_a_task_can_be_had_while_the_instance_goes_on() {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let flow = Workflow::builder("order")
        .task("charge", |n: u32| async move { anyhow::Ok(n * 2) })
        .task("ship", move |n: u32| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                anyhow::Ok(n + 1)
            }
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let client = Client::new(store.clone());
    let start = client
        .start(&flow, 21)
        .id("order-1")
        .label("tenant", "acme");
    let handle = start.await.unwrap();
    let charged = async || handle.task_result::<u32>("charge").await.unwrap();
    until("it is charged", async || charged().await == Some(42)).await;
    assert_eq!(handle.task_result::<u32>("ship").await.unwrap(), None);
    let labels = handle.snapshot().await.unwrap().start_meta().labels;
    assert_eq!(labels["tenant"], "acme");
    go.notify_one();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 43);
    let again = client.start(&flow, 1).id("order-1");
    let newer = again
        .if_exists(tenure::IdPolicy::ReplaceFinished)
        .await
        .unwrap();
    let old = handle.task_result::<u32>("charge").await.unwrap_err();
    assert!(matches!(old, ClientError::Replaced { .. }), "{old}");
    assert_ne!(newer.run(), handle.run());
}

// A handler that blocks its thread: what it says is sent by the heartbeats.
#[test]
fn progress_of_a_blocked_runtime_is_sent_with_a_heartbeat() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let flow = Workflow::builder("blocking")
        .task("spin", |ctx: TaskContext, store: ()| async move {
            let () = store;
            let begin = tokio::time::Instant::now();
            let flaky = ctx.state::<Flaky>().expect("the store");
            ctx.progress(&1)?;
            while flaky.calls("note") == 0 {
                if begin.elapsed() > SOON {
                    return Err(TaskError::permanent("no heartbeat sent it"));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    runtime.block_on(async {
        let worker = quick(store.clone()).workflow(&flow).state(store.clone());
        let _worker = worker.build().unwrap().spawn();
        let handle = Client::new(store.clone()).start(&flow, ()).await.unwrap();
        handle.result_within(2 * SOON).await.unwrap();
        assert_eq!(handle.progress::<u32>("spin").await.unwrap(), Some(1));
    });
}
