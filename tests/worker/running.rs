use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tenure::{
    client::Client,
    codec,
    engine::{FollowUp, Next},
    ids::RunId,
    store::{
        Begin, ErrorKind, IdPolicy, Inspect, StartItem, StartReply, Status, Store, TaskState,
        memory::MemoryStore,
    },
    task::{TaskContext, TaskError},
    worker::{Fate, Worker},
    workflow::Workflow,
};
use tokio::{
    sync::{Barrier, Notify},
    time::Instant,
};

use crate::support::{Fault, Flaky, Gauge, instance, partition, quick, task, until};

const SOON: Duration = Duration::from_secs(10);

// W04 W21 W24 W42 W43 W48
#[tokio::test]
async fn a_workflow_runs_from_its_start_to_its_result() {
    let flow = Workflow::builder("sum")
        .task("double", |n: u32| async move { anyhow::Ok(n * 2) })
        .task("add-one", |n: u32| async move { anyhow::Ok(n + 1) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, 20).id("one").await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 41);
    assert_eq!(handle.status().await.unwrap(), Status::Completed);
    let snapshot = handle.snapshot().await.unwrap();
    assert_eq!(snapshot.open, 0);
    assert!(
        snapshot
            .tasks
            .values()
            .all(|t| t.attempt == 1 && t.failures == 0)
    );
    worker.shutdown();
    assert_eq!(worker.join().await.unwrap().settled, 2);
}

// W51 W44
#[tokio::test]
async fn branches_of_a_fork_run_at_once_and_meet_in_the_join() {
    let meet = Arc::new(Barrier::new(2));
    let (left, right) = (Arc::clone(&meet), meet);
    let flow = Workflow::builder("fork")
        .task("first", |n: u32| async move { anyhow::Ok(n) })
        .fork(|f| {
            f.branch(|b| {
                b.task("left", move |n: u32| {
                    let meet = Arc::clone(&left);
                    async move {
                        meet.wait().await;
                        anyhow::Ok(n + 1)
                    }
                })
            })
            .branch(|b| {
                b.task("right", move |n: u32| {
                    let meet = Arc::clone(&right);
                    async move {
                        meet.wait().await;
                        anyhow::Ok(format!("{n}"))
                    }
                })
            })
        })
        .join("close", |(a, b): (u32, String)| async move {
            anyhow::Ok(format!("{a} {b}"))
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, 7).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), "8 7");
}

// W51 W46
#[tokio::test]
async fn two_workers_share_the_tasks_of_one_instance() {
    let meet = Arc::new(Barrier::new(2));
    let branch = || {
        let meet = Arc::clone(&meet);
        move |(): ()| {
            let meet = Arc::clone(&meet);
            async move {
                meet.wait().await;
                anyhow::Ok(())
            }
        }
    };
    let flow = Workflow::builder("shared")
        .task("first", |(): ()| async { anyhow::Ok(()) })
        .fork(|f| {
            f.branch(|b| b.task("left", branch()))
                .branch(|b| b.task("right", branch()))
        })
        .join("close", |((), ()): ((), ())| async { anyhow::Ok(()) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let one_slot = |id: &str| {
        let worker = quick(store.clone()).id(id).workflow(&flow).concurrency(1);
        worker.build().unwrap().spawn()
    };
    let _workers = (one_slot("w1"), one_slot("w2"));
    let handle = Client::new(store.clone()).start(&flow, ()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    let tasks = handle.snapshot().await.unwrap().tasks;
    assert_ne!(tasks[&task("left")].worker, tasks[&task("right")].worker);
}

// case 49
#[tokio::test]
async fn delays_at_any_place_are_passed() {
    let flow = Workflow::builder("delays")
        .delay("wait", Duration::from_millis(20))
        .task("middle", |n: u32| async move { anyhow::Ok(n + 1) })
        .delay("wait-more", Duration::from_millis(20))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let begin = Instant::now();
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    assert!(begin.elapsed() >= Duration::from_millis(40));
}

// case 49
#[tokio::test]
async fn delays_between_tasks_and_at_the_end_of_a_branch_are_passed() {
    let wait = Duration::from_millis(20);
    let flow = Workflow::builder("delays-inside")
        .task("first", |n: u32| async move { anyhow::Ok(n + 1) })
        .delay("between", wait)
        .task("second", |n: u32| async move { anyhow::Ok(n + 1) })
        .fork(|f| {
            f.branch(|b| {
                b.task("left", |n: u32| async move { anyhow::Ok(n * 10) })
                    .delay("rest", wait)
            })
            .branch(|b| {
                b.delay("pause", wait)
                    .task("right", |n: u32| async move { anyhow::Ok(n * 100) })
            })
        })
        .join(
            "close",
            |(a, b): (u32, u32)| async move { anyhow::Ok(a + b) },
        )
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone()).workflow(&flow).build().unwrap();
    let _worker = worker.spawn();
    let begin = Instant::now();
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 330);
    assert!(begin.elapsed() >= wait * 2, "one delay after the other");
    let tasks = handle.snapshot().await.unwrap().tasks;
    for name in ["between", "rest", "pause"] {
        assert_eq!(tasks[&task(name)].state, TaskState::Completed, "{name}");
    }
}

// W16: the worker polls every 5 s, the first time at once.
#[tokio::test]
async fn a_worker_begins_with_what_is_there_already() {
    let flow = Workflow::builder("there")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let handle = Client::new(store.clone()).start(&flow, 3).await.unwrap();
    let worker = Worker::builder(store).workflow(&flow).build().unwrap();
    let begin = Instant::now();
    let _worker = worker.spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

// W16 case 18: the worker polls every 5 s, and is woken.
#[tokio::test]
async fn an_idle_worker_is_woken_in_milliseconds() {
    let flow = Workflow::builder("wake")
        .task("a", |(): ()| async { anyhow::Ok(()) })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .unwrap();
    let _worker = worker.spawn();
    until("the worker has looked once", async || {
        store.calls("claim") > 0
    })
    .await;
    let begin = Instant::now();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}

// At most two commands a second when there is nothing to do.
#[tokio::test]
async fn an_idle_worker_is_quiet() {
    let flow = Workflow::builder("quiet")
        .task("a", |(): ()| async { anyhow::Ok(()) })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .unwrap();
    let _worker = worker.spawn();
    until("the worker is parked", async || store.calls("claim") > 1).await;
    let before = store.all_calls();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let calls = store.all_calls() - before;
    assert!((1..=6).contains(&calls), "{calls} calls in 3 s");
}

// W17: two workers with different versions share a queue.
#[tokio::test]
async fn tasks_of_unknown_definitions_block_nobody() {
    let known = Workflow::builder("flow")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let unknown = Workflow::builder("flow")
        .task("other", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let stuck = client.start(&unknown, 1).await.unwrap();
    let _worker = quick(store).workflow(&known).build().unwrap().spawn();
    let handle = client.start(&known, 2).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    let snapshot = stuck.snapshot().await.unwrap();
    assert_eq!(snapshot.header.status, Status::Running);
    assert_eq!(snapshot.tasks[&task("other")].attempt, 0);
}

// W19: it would stand in the way of all others for ever; no worker of this definition has it.
#[tokio::test]
async fn a_task_that_its_definition_does_not_have_ends_its_instance_and_blocks_nobody() {
    let flow = Workflow::builder("flow")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let begin = tenure::engine::begin(flow.graph(), 1);
    let [FollowUp::Ready(first)] = &begin[..] else {
        panic!("{begin:?}")
    };
    let ghost = StartItem {
        id: instance("ghost"),
        run: RunId::unique(),
        policy: IdPolicy::Fail,
        workflow: flow.name().clone(),
        definition: flow.hash(),
        queue: first.list.queue.clone(),
        begin: Begin::Now,
        signals: Vec::new(),
        first: vec![FollowUp::Ready(Next {
            task: task("ghost"),
            ..first.clone()
        })],
        input: codec::encode(&1_u32).unwrap(),
        meta: None,
        max_crashes: 0,
        on_exhausted: tenure::OnExhausted::Fail,
        waiter: None,
    };
    let started = store.start(partition(), vec![ghost]).await.unwrap();
    assert_eq!(started, [StartReply::Started]);
    let worker = quick(store.clone()).workflow(&flow).concurrency(1);
    let _worker = worker.build().unwrap().spawn();
    let handle = client.start(&flow, 2).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    let snapshot = store.snapshot(&instance("ghost")).await.unwrap().unwrap();
    assert_eq!(snapshot.header.status, Status::Failed);
    let error = snapshot.header.error.unwrap();
    assert_eq!((error.kind, error.attempt), (ErrorKind::Permanent, 1));
    assert!(
        error.message.contains("no task `ghost`"),
        "{}",
        error.message
    );
}

// W06: more definitions than one claim call can name.
#[tokio::test]
async fn a_worker_serves_more_lists_than_fit_one_call() {
    let flows: Vec<_> = (0..70)
        .map(|i| {
            Workflow::builder(format!("flow-{i}"))
                .task("a", |n: u32| async move { anyhow::Ok(n) })
                .build()
                .unwrap()
        })
        .collect();
    let store = MemoryStore::new();
    let mut builder = quick(store.clone());
    for flow in &flows {
        builder = builder.workflow(flow);
    }
    let _worker = builder.build().unwrap().spawn();
    let client = Client::new(store);
    for flow in &flows {
        let handle = client.start(flow, 5).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 5);
    }
}

// W03: never more asked for than there are free slots, whatever is waiting.
#[tokio::test]
async fn a_worker_never_runs_more_than_it_has_slots() {
    let gauge = Gauge::default();
    let seen = gauge.clone();
    let flow = Workflow::builder("slots")
        .task("a", move |(): ()| {
            let inside = seen.enter();
            async move {
                tokio::time::sleep(Duration::from_millis(2)).await;
                drop(inside);
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let mut handles = Vec::new();
    for _ in 0..50 {
        handles.push(client.start(&flow, ()).await.unwrap());
    }
    let _worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(3)
        .build()
        .unwrap()
        .spawn();
    for handle in handles {
        handle.result_within(SOON).await.unwrap();
    }
    assert_eq!((gauge.most(), gauge.all()), (3, 50));
    assert!(store.wants().iter().all(|want| *want <= 3));
    // Those that run, and those whose outcomes are on their way.
    assert!(store.most_claimed() <= 6);
}

// A store that is slow or away takes the place of an outcome, not of a task; and not of any number of them.
#[tokio::test]
async fn the_next_task_runs_while_an_outcome_is_stored() {
    let gauge = Gauge::default();
    let seen = gauge.clone();
    let flow = Workflow::builder("handed-over")
        .task("a", move |n: u32| {
            let inside = seen.enter();
            async move {
                tokio::task::yield_now().await;
                drop(inside);
                anyhow::Ok(n)
            }
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let mut handles = Vec::new();
    for n in 0..4 {
        handles.push(client.start(&flow, n).await.unwrap());
    }
    store.fail("settle", Fault::Refuse, usize::MAX);
    let _worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(1)
        .build()
        .unwrap()
        .spawn();
    until("the second task runs", async || gauge.all() == 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(gauge.all(), 2, "its own outcome has to wait, in its slot");
    store.fail("settle", Fault::Refuse, 0);
    for handle in handles {
        handle.result_within(SOON).await.unwrap();
    }
    assert_eq!((gauge.most(), gauge.all()), (1, 4));
}

// At most one call for each task, to commit it and to claim on.
#[tokio::test]
async fn under_load_a_call_commits_and_claims_for_many_tasks() {
    let flow = Workflow::builder("load")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .task("b", |n: u32| async move { anyhow::Ok(n) })
        .task("c", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let items = (0..500).map(tenure::client::Start::new);
    let handles = client.start_many(&flow, items).await;
    assert_eq!(store.calls("start"), 1);
    let _worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(50)
        .build()
        .unwrap()
        .spawn();
    for handle in handles {
        handle.unwrap().result_within(SOON).await.unwrap();
    }
    let calls = store.calls("claim") + store.calls("settle");
    assert!(calls <= 1500, "{calls} calls for 1500 tasks");
}

// A store that refuses for good does not have a whole queue run for nothing.
#[tokio::test]
async fn what_the_store_refuses_takes_the_place_of_other_tasks() {
    let gauge = Gauge::default();
    let seen = gauge.clone();
    let flow = Workflow::builder("refused")
        .task("a", move |n: u32| {
            drop(seen.enter());
            async move { anyhow::Ok(n) }
        })
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    for n in 0..50 {
        client.start(&flow, n).await.unwrap();
    }
    store.fail("settle", Fault::RefuseForGood, usize::MAX);
    let _worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(1)
        .poll_interval(Duration::from_secs(5))
        .build()
        .unwrap()
        .spawn();
    until("the first is refused twice", async || {
        store.calls("settle") >= 2
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(gauge.all() <= 3, "{} handlers ran", gauge.all());
}

// The slot of a large result is free when that is stored, and the worker knows.
#[tokio::test]
async fn large_results_leave_their_slots_when_they_are_stored() {
    let flow = Workflow::builder("large")
        .task("a", |n: u8| async move {
            anyhow::Ok(vec![f64::from(n); 100_000])
        })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let mut handles = Vec::new();
    for n in 0..5 {
        handles.push(client.start(&flow, n).await.unwrap());
    }
    let _worker = quick(store)
        .workflow(&flow)
        .concurrency(1)
        .poll_interval(Duration::from_secs(5))
        .build()
        .unwrap()
        .spawn();
    for handle in handles {
        let result = handle.result_within(SOON).await.unwrap();
        assert_eq!(result.len(), 100_000);
    }
}

// W53
#[tokio::test]
async fn one_task_can_be_driven_by_hand() {
    let flow = Workflow::builder("by-hand")
        .task("a", |n: u32| async move { anyhow::Ok(n + 1) })
        .task("b", |n: u32| async move { anyhow::Ok(n + 1) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let mut worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .unwrap();
    assert_eq!(worker.run_once().await.unwrap(), None);
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    let driven = worker.run_once().await.unwrap().expect("a task");
    assert_eq!(
        (driven.task, driven.attempt, driven.fate),
        (task("a"), 1, Fate::Completed)
    );
    assert_eq!(handle.status().await.unwrap(), Status::Running);
    let driven = worker.run_once().await.unwrap().expect("a task");
    assert_eq!(driven.task, task("b"));
    assert_eq!(worker.run_once().await.unwrap(), None);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
}

// W27
#[tokio::test]
async fn a_task_sees_where_it_runs() {
    struct Greeting(&'static str);
    let flow = Workflow::builder("context")
        .task("look", |ctx: TaskContext, name: String| async move {
            let greeting = ctx.state::<Greeting>().map_or("", |g| g.0);
            anyhow::Ok(format!(
                "{greeting} {name}: {} {} {} {} {}",
                ctx.instance(),
                ctx.idempotency_key(),
                ctx.fence().attempt,
                ctx.attempt(),
                ctx.deadline().is_some()
            ))
        })
        .timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .state(Greeting("Hello"));
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store)
        .start(&flow, "Ada".into())
        .id("i1")
        .await
        .unwrap();
    assert_eq!(
        handle.result_within(SOON).await.unwrap(),
        format!("Hello Ada: i1 {}/look 1 1 true", handle.run())
    );
}

// W05: the same path as typed handlers.
#[tokio::test]
async fn an_external_executor_runs_every_task_of_a_structure() {
    let flow = Workflow::builder("external")
        .task("a", |_: u32| async { Err::<u32, _>("never called") })
        .task("b", |_: u32| async { Err::<u32, _>("never called") })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone()).external(
        Arc::clone(flow.graph()),
        |ctx: TaskContext, input: Bytes| async move {
            let n: u32 = codec::decode(&input).map_err(TaskError::permanent)?;
            let add = if ctx.task().as_str() == "a" { 10 } else { 100 };
            codec::encode(&(n + add)).map_err(TaskError::permanent)
        },
    );
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 111);
}

// W24: larger than what a claim's reply carries.
#[tokio::test]
async fn large_inputs_are_read_after_the_claim() {
    let flow = Workflow::builder("large")
        .task(
            "grow",
            |text: String| async move { anyhow::Ok(text.repeat(2)) },
        )
        .task(
            "measure",
            |text: String| async move { anyhow::Ok(text.len()) },
        )
        .build()
        .unwrap();
    let store = Flaky::new(MemoryStore::new());
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store.clone())
        .start(&flow, "x".repeat(300_000))
        .await
        .unwrap();
    while handle.status().await.unwrap() != Status::Completed {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The input; what the slot had in hand was not read again.
    assert_eq!(store.calls("values"), 1);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 600_000);
    assert_eq!(store.calls("values"), 2);
}

// case 58
#[tokio::test]
async fn a_worker_takes_tasks_of_its_queues_only() {
    let flow = Workflow::builder("queues")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .queue("slow")
        .build()
        .unwrap();
    let other = Workflow::builder("others")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = |id: &str, queue: &str| {
        let worker = quick(store.clone()).id(id).workflow(&flow).workflow(&other);
        worker.queues([queue]).build().unwrap().spawn()
    };
    let _workers = (worker("w-default", "default"), worker("w-slow", "slow"));
    let handle = Client::new(store.clone()).start(&flow, 3).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 3);
    let record = handle
        .snapshot()
        .await
        .unwrap()
        .tasks
        .remove(&task("a"))
        .unwrap();
    assert_eq!(record.worker.unwrap().as_str(), "w-slow");
}

// case 59
#[tokio::test]
async fn timers_fire_while_all_slots_are_busy() {
    let release = Arc::new(Notify::new());
    let wait = Arc::clone(&release);
    let busy = Workflow::builder("busy")
        .task("a", move |(): ()| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                anyhow::Ok(())
            }
        })
        .build()
        .unwrap();
    let later = Workflow::builder("later")
        .task("a", |(): ()| async { anyhow::Ok(()) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let worker = quick(store).workflow(&busy).workflow(&later).concurrency(1);
    let _worker = worker.build().unwrap().spawn();
    let first = client.start(&busy, ()).await.unwrap();
    until("the slot is busy", async || {
        first.snapshot().await.unwrap().started_at.is_some()
    })
    .await;
    let second = client
        .start(&later, ())
        .delay(Duration::from_millis(30))
        .await
        .unwrap();
    until("the timer fired", async || {
        let tasks = second.snapshot().await.unwrap().tasks;
        tasks[&task("a")].state == TaskState::Ready
    })
    .await;
    release.notify_one();
    second.result_within(SOON).await.unwrap();
}
