use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tenure::{
    client::{Client, ClientError},
    store::{ErrorKind, Inspect, memory::MemoryStore},
    task::TaskError,
    workflow::{RetryPolicy, Workflow},
};

use tokio::time::Instant;

use crate::support::{Gauge, instance, partition, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

fn failed_with(error: ClientError) -> tenure::store::ErrorRecord {
    match error {
        ClientError::Failed { error, .. } => *error,
        other => panic!("not failed: {other}"),
    }
}

// W35 W36 W37
#[tokio::test]
async fn an_error_is_retried_and_its_record_kept() {
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let flow = Workflow::builder("flaky")
        .task("a", move |n: u32| {
            let call = seen.fetch_add(1, Ordering::SeqCst);
            async move {
                if call < 2 {
                    anyhow::bail!("not yet ({call})")
                }
                Ok(n)
            }
        })
        .retry(RetryPolicy::fixed(MILLIS(20)).max_attempts(5))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let begin = Instant::now();
    let handle = Client::new(store.clone())
        .start(&flow, 4)
        .id("i")
        .await
        .unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 4);
    assert!(begin.elapsed() >= MILLIS(40), "two waits of 20 ms");
    let record = handle
        .snapshot()
        .await
        .unwrap()
        .tasks
        .remove(&task("a"))
        .unwrap();
    assert_eq!((record.attempt, record.failures, record.crashes), (3, 2, 0));
    let errors = store.errors(&instance("i")).await.unwrap();
    let messages: Vec<_> = errors
        .iter()
        .map(|e| (e.attempt, e.message.as_str()))
        .collect();
    assert_eq!(messages, [(2, "not yet (1)"), (1, "not yet (0)")]);
    assert!(
        errors
            .iter()
            .all(|e| e.kind == ErrorKind::Error && e.worker.is_some())
    );
}

// W37 case 42: a delay so long that the time that the failures themselves take is nothing beside it.
#[tokio::test]
async fn retries_of_tasks_that_fail_together_are_spread_over_a_fifth_of_the_delay() {
    const TASKS: usize = 1000;
    let delay = Duration::from_secs(1000);
    let flow = Workflow::builder("together")
        .task("a", |(): ()| async { Err::<(), _>("all at once") })
        .retry(RetryPolicy::fixed(delay).max_attempts(2))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let items = (0..TASKS).map(|_| tenure::client::Start::new(()));
    for started in client.start_many(&flow, items).await {
        started.unwrap();
    }
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let mut due = Vec::new();
    until("all have failed once", async || {
        let delayed = store.delayed(partition(), TASKS).await.unwrap();
        due = delayed.iter().map(|(_, at)| at.as_millis()).collect();
        due.len() == TASKS
    })
    .await;
    let spread = due.iter().max().unwrap() - due.iter().min().unwrap();
    let spread = Duration::from_millis(u64::try_from(spread).unwrap());
    assert!(spread >= delay / 5, "{spread:?}");
    // Not two heaps at the ends: every tenth of the time has its share.
    let from = *due.iter().min().unwrap();
    let tenth = i64::try_from(spread.as_millis()).unwrap() / 10;
    for part in 0..10 {
        let part = from + part * tenth..from + (part + 1) * tenth;
        let there = due.iter().filter(|at| part.contains(at)).count();
        assert!((TASKS / 40..TASKS / 4).contains(&there), "{there}");
    }
}

// W38 W39 W41
#[tokio::test]
async fn out_of_attempts_the_instance_fails_with_the_last_message() {
    let calls = Gauge::default();
    let seen = calls.clone();
    let flow = Workflow::builder("hopeless")
        .task("a", move |(): ()| {
            let _one = seen.enter();
            async { Err::<(), _>("no luck") }
        })
        .retry(RetryPolicy::fixed(MILLIS(1)).max_attempts(3))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    assert_eq!((error.message.as_str(), error.attempt), ("no luck", 3));
    assert_eq!(calls.all(), 3);
}

// W40: panics and timeouts end the instance as errors do, each recognisable; the worker goes on.
#[tokio::test]
async fn out_of_attempts_a_panic_or_a_timeout_ends_the_instance_too() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let flow = Workflow::builder("ways-to-end")
        .task("a", |n: u32| async move {
            match n {
                0 => panic!("boom"),
                1 => std::future::pending().await,
                n => anyhow::Ok(n),
            }
        })
        .retry(RetryPolicy::fixed(MILLIS(1)).max_attempts(2))
        .timeout(MILLIS(40))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(1)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store);
    for (n, kind) in [(0, ErrorKind::Panic), (1, ErrorKind::Timeout)] {
        let handle = client.start(&flow, n).await.unwrap();
        let error = failed_with(handle.result_within(SOON).await.unwrap_err());
        assert_eq!((error.kind, error.attempt), (kind, 2));
        let record = &handle.snapshot().await.unwrap().tasks[&task("a")];
        assert_eq!(record.failures, 2);
    }
    let handle = client.start(&flow, 7).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
    assert!(!worker.health().ended);
}

// W37
#[tokio::test]
async fn a_permanent_error_is_never_retried() {
    let calls = Gauge::default();
    let seen = calls.clone();
    let flow = Workflow::builder("permanent")
        .task("a", move |(): ()| {
            let _one = seen.enter();
            async { Err::<(), _>(TaskError::permanent("card stolen")) }
        })
        .retry(RetryPolicy::fixed(MILLIS(1)).max_attempts(9))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert_eq!(error.message, "card stolen");
    assert_eq!(calls.all(), 1);
}

// W37
#[tokio::test]
async fn a_handler_chooses_the_time_of_its_retry() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&times);
    let flow = Workflow::builder("retry-after")
        .task("a", move |(): ()| {
            let mut times = seen.lock().unwrap();
            times.push(Instant::now());
            let first = times.len() == 1;
            async move {
                if first {
                    return Err(TaskError::retry_after("come back", MILLIS(60)));
                }
                Ok(())
            }
        })
        .retry(RetryPolicy::fixed(Duration::from_secs(3600)).max_attempts(2))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    handle.result_within(SOON).await.unwrap();
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= MILLIS(60));
}

// W32 W34 W35 case 13: with a TTL of a minute, which nobody waits for.
#[tokio::test]
async fn a_panic_is_retried_at_once_and_its_message_kept() {
    // Printing a backtrace can take longer than all the rest.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let calls = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&calls);
    let flow = Workflow::builder("panics")
        .task("a", move |n: u32| {
            let call = seen.fetch_add(1, Ordering::SeqCst);
            async move {
                assert!(call > 0, "x");
                anyhow::Ok(n)
            }
        })
        .retry(RetryPolicy::fixed(Duration::ZERO).max_attempts(2))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .claim_ttl(Duration::from_secs(60))
        .workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store.clone())
        .start(&flow, 1)
        .id("i")
        .await
        .unwrap();
    let begin = Instant::now();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
    assert!(begin.elapsed() < Duration::from_secs(1));
    let errors = store.errors(&instance("i")).await.unwrap();
    assert_eq!(
        (errors[0].kind, errors[0].message.as_str()),
        (ErrorKind::Panic, "x")
    );
}

// W25 W28 W31 case 45
#[tokio::test]
async fn a_timeout_drops_the_handler_within_milliseconds() {
    let inside = Gauge::default();
    let (seen, ticks) = (inside.clone(), Arc::new(AtomicU32::new(0)));
    let ticking = Arc::clone(&ticks);
    let flow = Workflow::builder("slow")
        .task("a", move |(): ()| {
            let guard = seen.enter();
            let ticks = Arc::clone(&ticking);
            async move {
                loop {
                    ticks.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(MILLIS(5)).await;
                    assert!(guard_lives(&guard));
                }
                #[expect(unreachable_code, reason = "gives the closure its type")]
                anyhow::Ok(())
            }
        })
        .retry(RetryPolicy::none())
        .timeout(MILLIS(80))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let begin = Instant::now();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    let took = begin.elapsed();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(
        error.message.contains("`a`") && error.message.contains("80ms"),
        "{}",
        error.message
    );
    assert!(took >= MILLIS(80) && took < MILLIS(400), "{took:?}");
    let stopped = ticks.load(Ordering::SeqCst);
    assert_eq!(inside.now(), 0, "the handler was dropped");
    tokio::time::sleep(MILLIS(20)).await;
    assert_eq!(
        ticks.load(Ordering::SeqCst),
        stopped,
        "the ticks have stopped"
    );
}

fn guard_lives(_guard: &crate::support::GaugeGuard) -> bool {
    true
}

// W25: however many attempts there are.
#[tokio::test]
async fn a_deadline_ends_all_attempts() {
    let flow = Workflow::builder("deadline")
        .task("a", |(): ()| async {
            tokio::time::sleep(MILLIS(30)).await;
            Err::<(), _>("again")
        })
        .retry(RetryPolicy::fixed(MILLIS(5)).max_attempts(1000))
        .deadline(MILLIS(150))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let begin = Instant::now();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    assert_eq!(error.kind, ErrorKind::Deadline);
    assert!(error.attempt > 1);
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}

// W38 case 12
#[tokio::test]
async fn one_task_that_times_out_leaves_the_nine_others_alone() {
    let flow = Workflow::builder("ten")
        .task("a", |n: u32| async move {
            if n == 3 {
                std::future::pending::<()>().await;
            }
            anyhow::Ok(n)
        })
        .retry(RetryPolicy::none())
        .timeout(MILLIS(50))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store);
    let items = (0..10).map(tenure::client::Start::new);
    let mut completed = 0;
    for handle in client.start_many(&flow, items).await {
        match handle.unwrap().result_within(SOON).await {
            Ok(n) => {
                assert_ne!(n, 3);
                completed += 1;
            }
            Err(error) => assert_eq!(failed_with(error).kind, ErrorKind::Timeout),
        }
    }
    assert_eq!(completed, 9);
    let one_more = client.start(&flow, 77).await.unwrap();
    assert_eq!(one_more.result_within(SOON).await.unwrap(), 77);
    assert!(!worker.health().ended);
}

// case 66: a thread that is blocked past the timeout.
#[tokio::test]
async fn a_handler_that_blocks_past_its_timeout_counts_as_timed_out() {
    let flow = Workflow::builder("blocks")
        .task("a", |(): ()| async {
            std::thread::sleep(MILLIS(120));
            anyhow::Ok(())
        })
        .retry(RetryPolicy::none())
        .timeout(MILLIS(50))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    assert_eq!(error.kind, ErrorKind::Timeout);
}

// case 36
#[tokio::test]
async fn an_output_over_the_limit_fails_the_task_with_both_numbers() {
    let flow = Workflow::builder("too-large")
        .task("a", |(): ()| async { anyhow::Ok("x".repeat(5000)) })
        .retry(RetryPolicy::fixed(MILLIS(1)).max_attempts(3))
        .build()
        .unwrap();
    let store = MemoryStore::builder().max_payload(1000).build();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store).start(&flow, ()).await.unwrap();
    let error = failed_with(handle.result_within(SOON).await.unwrap_err());
    assert_eq!((error.kind, error.attempt), (ErrorKind::Permanent, 1));
    assert!(
        error.message.contains("5003") && error.message.contains("1000"),
        "{}",
        error.message
    );
}

// The result of a task that panics while it is dropped.
#[tokio::test]
async fn a_handler_that_panics_while_it_is_dropped_costs_no_slot() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("boom");
            }
        }
    }
    let flow = Workflow::builder("bomb")
        .task("a", |n: u32| async move {
            if n == 0 {
                let _bomb = Bomb;
                std::future::pending::<()>().await;
            }
            anyhow::Ok(n)
        })
        .retry(RetryPolicy::none())
        .timeout(MILLIS(20))
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let _worker = quick(store.clone())
        .workflow(&flow)
        .concurrency(1)
        .build()
        .unwrap()
        .spawn();
    let client = Client::new(store);
    let first = client.start(&flow, 0).await.unwrap();
    failed_with(first.result_within(SOON).await.unwrap_err());
    let second = client.start(&flow, 1).await.unwrap();
    assert_eq!(second.result_within(SOON).await.unwrap(), 1);
}
