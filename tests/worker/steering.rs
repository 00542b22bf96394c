//! Pause, resume, retry and delete, through a client, with workers that run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tenure::{
    OnExhausted, RetryFrom, RetryPolicy, TaskError,
    client::{Client, ClientError, Filter},
    codec,
    store::{Control, Inspect, Status, TaskState, memory::MemoryStore},
    task::TaskContext,
    workflow::Workflow,
};
use tokio::sync::Semaphore;

use crate::support::{quick, task, until};

const SOON: Duration = Duration::from_secs(10);

/// A task that waits until it is let go.
fn gated(gate: &Arc<Semaphore>) -> Workflow<u32, u32> {
    let gate = Arc::clone(gate);
    Workflow::builder("gated")
        .task("first", move |n: u32| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await?.forget();
                anyhow::Ok(n + 1)
            }
        })
        .task("second", async |n: u32| anyhow::Ok(n * 10))
        .build()
        .unwrap()
}

// W15 W22
#[tokio::test]
async fn a_pause_lets_the_running_task_settle_and_keeps_what_follows() {
    let gate = Arc::new(Semaphore::new(0));
    let flow = gated(&gate);
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 4).id("i").await.unwrap();
    let record = async |name: &str| {
        let snapshot = handle.snapshot().await.unwrap();
        snapshot.tasks.get(&task(name)).map(|record| record.state)
    };
    until("it runs", async || {
        record("first").await == Some(TaskState::Running)
    })
    .await;
    client.pause("i", "to look", "ada").await.unwrap();
    assert_eq!(handle.status().await.unwrap(), Status::Paused);
    gate.add_permits(1);
    until("it settled", async || {
        record("first").await == Some(TaskState::Completed)
    })
    .await;
    until("what follows is parked", async || {
        store.parked(handle.id()).await.unwrap().len() == 1
    })
    .await;
    assert_eq!(record("second").await, Some(TaskState::Ready));
    let waiting = handle.result_within(Duration::from_millis(100)).await;
    assert!(
        matches!(waiting, Err(ClientError::TimedOut { .. })),
        "a result waits"
    );
    let control = handle.snapshot().await.unwrap().header.control.unwrap();
    assert_eq!(control.control, Control::Pause);
    assert_eq!(control.reason.as_deref(), Some("to look"));
    assert_eq!(control.actor.as_deref(), Some("ada"));
    client.resume("i", "looked", "ada").await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 50);
    worker.shutdown();
    worker.join().await.unwrap();
}

// W15
#[tokio::test]
async fn steering_what_cannot_be_steered_so_is_a_typed_error_that_says_what_to_do() {
    let flow = gated(&Arc::new(Semaphore::new(0)));
    let client = Client::new(MemoryStore::new());
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    let absent = client.pause("nobody", "", "").await.unwrap_err();
    assert!(matches!(absent, ClientError::NotFound { .. }), "{absent}");
    let live = handle.delete().await.unwrap_err();
    assert!(
        live.to_string().contains("cancel or terminate it first"),
        "{live}"
    );
    let running = handle.retry(RetryFrom::Failed, "", "").await.unwrap_err();
    assert!(matches!(running, ClientError::NotDead { .. }), "{running}");
    handle
        .resume("", "")
        .await
        .expect("resuming what runs changes nothing");
    handle.pause("", "").await.unwrap();
    let paused = handle.pause("", "").await.unwrap_err();
    assert!(
        paused.to_string().contains("paused already; resume it"),
        "{paused}"
    );
    handle.cancel("", "").await.unwrap();
    for refused in [
        handle.pause("", "").await.unwrap_err(),
        handle.resume("", "").await.unwrap_err(),
    ] {
        assert!(matches!(refused, ClientError::Over { .. }), "{refused}");
    }
    handle.delete().await.unwrap();
    let gone = handle.delete().await.unwrap_err();
    assert!(matches!(gone, ClientError::NotFound { .. }), "{gone}");
    client
        .start(&flow, 1)
        .id("i")
        .await
        .expect("its id is free");
    let older = handle.pause("", "").await.unwrap_err();
    assert!(matches!(older, ClientError::Replaced { .. }), "{older}");
}

/// Three branches, of which the one in the middle fails until it is mended, and a count of each branch's runs.
fn forked(mended: &Arc<AtomicU32>, then: OnExhausted) -> Workflow<u32, u32> {
    let mended = Arc::clone(mended);
    Workflow::builder("forked")
        .on_exhausted(then)
        .task("start", async |n: u32| anyhow::Ok(n))
        .fork(|f| {
            f.branch(|b| b.task("left", async |n: u32| anyhow::Ok(n + 1)))
                .branch(|b| {
                    b.task("middle", move |n: u32| {
                        let works = mended.load(Ordering::SeqCst) > 0;
                        async move {
                            if works {
                                return Ok(n + 2);
                            }
                            Err(TaskError::new("it is broken"))
                        }
                    })
                    .retry(RetryPolicy::none())
                })
                .branch(|b| b.task("right", async |n: u32| anyhow::Ok(n + 3)))
        })
        .join("sum", async |(a, b, c): (u32, u32, u32)| {
            anyhow::Ok(a + b + c)
        })
        .build()
        .unwrap()
}

// case 48, case 65, W39
#[tokio::test]
async fn a_dead_fork_is_retried_from_where_one_says_and_its_join_waits_for_all() {
    let mended = Arc::new(AtomicU32::new(0));
    let flow = forked(&mended, OnExhausted::Fail);
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store.clone());
    for from in [
        RetryFrom::Failed,
        RetryFrom::Task(task("left")),
        RetryFrom::Task(task("start")),
        RetryFrom::Start,
    ] {
        mended.store(0, Ordering::SeqCst);
        let handle = client.start(&flow, 10).await.unwrap();
        let died = handle.result_within(SOON).await.unwrap_err();
        assert!(matches!(died, ClientError::Failed { .. }), "{died}");
        if from == RetryFrom::Failed {
            let unknown = RetryFrom::Task(task("nowhere"));
            let unknown = handle.retry(unknown, "", "").await.unwrap_err();
            assert!(unknown.to_string().contains("`start`"), "{unknown}");
        }
        mended.store(1, Ordering::SeqCst);
        handle.retry(from.clone(), "mended", "ops").await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 36, "{from:?}");
        let snapshot = handle.snapshot().await.unwrap();
        let middle = &snapshot.tasks[&task("middle")];
        assert_eq!((middle.attempt, middle.failures), (2, 0), "{from:?}");
        let again = matches!(&from, RetryFrom::Task(name) if *name == task("start"));
        let again = u32::from(again || from == RetryFrom::Start);
        assert_eq!(
            snapshot.tasks[&task("start")].attempt,
            1 + again,
            "{from:?}"
        );
        assert_eq!(snapshot.joins[&task("sum")].arrived, 3);
        let over = handle.retry(RetryFrom::Failed, "", "").await.unwrap_err();
        assert!(matches!(over, ClientError::NotDead { .. }), "{over}");
    }
    worker.shutdown();
    worker.join().await.unwrap();
}

// case 48, W38 W41
#[tokio::test]
async fn out_of_attempts_an_instance_waits_for_a_person_if_its_workflow_says_so() {
    let mended = Arc::new(AtomicU32::new(0));
    let flow = forked(&mended, OnExhausted::Pause);
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 10).await.unwrap();
    until(
        "it is paused, and the other branches are done",
        async || {
            let snapshot = handle.snapshot().await.unwrap();
            let is_done = |name: &str| {
                let record = snapshot.tasks.get(&task(name));
                record.is_some_and(|record| record.state == TaskState::Completed)
            };
            let paused = snapshot.header.status == Status::Paused;
            // What became ready after the pause waits; what ran before it is settled.
            paused && (is_done("left") || is_done("right") || !is_done("sum"))
        },
    )
    .await;
    let header = handle.snapshot().await.unwrap().header;
    let reason = header.control.unwrap().reason.unwrap();
    assert!(reason.contains("`middle` failed: it is broken"), "{reason}");
    mended.store(1, Ordering::SeqCst);
    handle.resume("mended", "ops").await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 36);
    worker.shutdown();
    worker.join().await.unwrap();
}

// case 33: the same bytes through a pause, a resume, death and back
#[tokio::test]
async fn payloads_are_the_same_bytes_through_pause_resume_dead_and_back() {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct Odd {
        a: Vec<u8>,
        m: std::collections::BTreeMap<String, u8>,
        n: Option<u8>,
    }
    let odd = Odd {
        a: Vec::new(),
        m: Default::default(),
        n: None,
    };
    let mended = Arc::new(AtomicU32::new(0));
    let works = Arc::clone(&mended);
    let flow = Workflow::builder("odd")
        .task("keep", async |odd: Odd| anyhow::Ok(odd))
        .task("fail", move |_: TaskContext, odd: Odd| {
            let works = works.load(Ordering::SeqCst) > 0;
            async move {
                if works {
                    Ok(odd)
                } else {
                    Err(TaskError::permanent("broken"))
                }
            }
        })
        .build()
        .unwrap();
    let bytes: Bytes = codec::encode(&odd).unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, odd).await.unwrap();
    handle.pause("", "").await.unwrap();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    until("it is parked", async || {
        store.parked(handle.id()).await.unwrap().len() == 1
    })
    .await;
    handle.resume("", "").await.unwrap();
    handle.result_within(SOON).await.unwrap_err();
    mended.store(1, Ordering::SeqCst);
    handle.retry(RetryFrom::Failed, "", "").await.unwrap();
    assert_eq!(handle.result_bytes_within(SOON).await.unwrap(), bytes);
    let fields = ["input", "out:keep"].map(|field| field.parse().unwrap());
    let stored = store
        .values(handle.id(), handle.run(), &fields)
        .await
        .unwrap();
    assert_eq!(stored, [Some(bytes.clone()), Some(bytes)]);
    worker.shutdown();
    worker.join().await.unwrap();
}

// W14 W15
#[tokio::test]
async fn many_are_steered_by_a_filter_page_by_page_and_again_does_no_harm() {
    let flow = gated(&Arc::new(Semaphore::new(0)));
    let client = Client::new(MemoryStore::new());
    for i in 0..25 {
        let tenant = if i < 20 { "acme" } else { "other" };
        client
            .start(&flow, i)
            .label("tenant", tenant)
            .await
            .unwrap();
    }
    let acme = || Filter::new().label("tenant", "acme").limit(7);
    let count = async |status| {
        let all = Filter::new().status(status).limit(100);
        client.list(&all).await.unwrap().instances.len()
    };
    let mut pausing = client.pause_all(acme()).reason("why").actor("who");
    let mut counts = Vec::new();
    while let Some(progress) = pausing.step().await.unwrap() {
        counts.push(progress.done);
    }
    assert!(counts.is_sorted() && counts.len() > 2, "{counts:?}");
    assert_eq!(counts.last(), Some(&20));
    assert_eq!(
        (count(Status::Paused).await, count(Status::Running).await),
        (20, 5)
    );
    let again = client.pause_all(acme()).run().await.unwrap();
    assert_eq!((again.done, again.failed.len()), (0, 0));
    assert_eq!(
        client.resume_all(Filter::new()).run().await.unwrap().done,
        20
    );
    let cancelled = client.cancel_all(acme()).run().await.unwrap();
    assert_eq!(cancelled.done, 20);
    assert_eq!(
        (count(Status::Cancelled).await, count(Status::Running).await),
        (20, 5)
    );
    assert_eq!(
        client
            .terminate_all(Filter::new())
            .run()
            .await
            .unwrap()
            .done,
        5
    );
    assert_eq!(
        client
            .delete_all(Filter::new().limit(3))
            .run()
            .await
            .unwrap()
            .done,
        25
    );
    assert!(
        client
            .list(&Filter::new())
            .await
            .unwrap()
            .instances
            .is_empty()
    );
}
