use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tenure::{
    Approval, Client, ClientError, Handle, MemoryStore, Status, Workflow, codec,
    ids::Partition,
    store::{ErrorKind, Inspect, SignalRequest, TaskState},
    worker::WorkerHandle,
    workflow::AnyWorkflow,
};
use tokio::sync::Notify;

use crate::support::{Fault, Flaky, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(3600);

fn work(store: &MemoryStore, flow: impl Into<AnyWorkflow>) -> WorkerHandle {
    let worker = quick(store.clone()).workflow(flow);
    worker.build().unwrap().spawn()
}

async fn same(n: u32) -> anyhow::Result<u32> {
    Ok(n)
}

/// `a` waits for `go`, `b` gets what it brings.
fn waits() -> Workflow<u32, u32> {
    Workflow::builder("waits")
        .task("a", same)
        .await_signal::<u32>("go")
        .task("b", async |n: u32| anyhow::Ok(n + 1))
        .build()
        .unwrap()
}

async fn reached<O>(handle: &Handle<O>, node: &str) {
    until("the node waits", async || {
        let tasks = handle.snapshot().await.unwrap().tasks;
        tasks
            .get(&task(node))
            .is_some_and(|task| task.state == TaskState::Waiting)
    })
    .await;
}

#[tokio::test]
async fn a_waiting_instance_goes_on_with_the_payload_of_its_signal() {
    let (store, flow) = (MemoryStore::new(), waits());
    let client = Client::new(store.clone());
    let _worker = work(&store, &flow);
    let handle = client.start(&flow, 1).id("x").await.unwrap();
    reached(&handle, "go").await;
    let signalled = client.signal("x", "go", &41_u32).await.unwrap();
    assert_eq!(
        (signalled.id(), signalled.run()),
        (handle.id(), handle.run())
    );
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
}

#[tokio::test]
async fn signals_that_come_before_their_wait_are_taken_in_their_order() {
    let store = MemoryStore::new();
    let flow = Workflow::builder("two")
        .task("a", same)
        .await_signal::<u32>("first")
        .signal("go")
        .fork(|f| {
            f.branch(|b| b)
                .branch(|b| b.await_signal::<u32>("second").signal("go"))
        })
        .join("both", async |both: (u32, u32)| anyhow::Ok(both))
        .build()
        .unwrap();
    let handle = Client::new(store.clone()).start(&flow, 0).await.unwrap();
    for n in [7_u32, 8] {
        handle.signal("go", &n).await.unwrap();
    }
    let _worker = work(&store, &flow);
    assert_eq!(handle.result_within(SOON).await.unwrap(), (7, 8));
    assert!(handle.snapshot().await.unwrap().early.is_empty());
}

// case 49
#[tokio::test]
async fn waits_at_any_place_are_passed() {
    let store = MemoryStore::new();
    let flow = Workflow::builder::<u32>("places")
        .await_signal::<u32>("first")
        .delay("nap", Duration::from_millis(5))
        .await_signal::<u32>("after-a-delay")
        .fork_each(["l", "r"], |key, b| {
            b.task(format!("t-{key}"), same)
                .await_signal::<u32>(format!("end-of-{key}"))
        })
        .join("sum", async |all: Vec<u32>| {
            anyhow::Ok(all.iter().sum::<u32>())
        })
        .await_signal::<u32>("last")
        .build()
        .unwrap();
    let _worker = work(&store, &flow);
    let client = Client::new(store.clone());
    for early in [true, false] {
        let handle = client.start(&flow, 1).await.unwrap();
        let names = ["first", "after-a-delay", "end-of-r", "end-of-l", "last"];
        for (n, name) in (10_u32..).zip(names) {
            if !early {
                reached(&handle, name).await;
            }
            handle.signal(name, &n).await.unwrap();
        }
        assert_eq!(handle.result_within(SOON).await.unwrap(), 14);
        let snapshot = handle.snapshot().await.unwrap();
        assert_eq!((snapshot.open, snapshot.waits.len()), (0, 0));
    }
}

#[tokio::test]
async fn who_goes_on_without_a_signal_gets_none_and_else_what_it_brings() {
    let store = MemoryStore::new();
    let wait = |timeout| {
        Workflow::builder("perhaps")
            .task("a", same)
            .await_signal::<Approval>("approval")
            .or_none_after(timeout)
            .task("b", async |approval: Option<Approval>| {
                anyhow::Ok(approval.is_some_and(|approval| approval.is_approved()))
            })
            .build()
            .unwrap()
    };
    let (short, long) = (wait(Duration::from_millis(20)), wait(LONG));
    assert_eq!(short.hash(), long.hash());
    let client = Client::new(store.clone());
    let worker = work(&store, &short);
    let handle = client.start(&short, 1).await.unwrap();
    assert!(!handle.result_within(SOON).await.unwrap());
    worker.shutdown();
    worker.join().await.unwrap();
    let _worker = work(&store, &long);
    let handle = client.start(&long, 1).await.unwrap();
    let yes = Approval::approved("ada").because("it is little");
    handle.signal("approval", &yes).await.unwrap();
    assert!(handle.result_within(SOON).await.unwrap());
}

#[tokio::test]
async fn a_wait_that_takes_too_long_fails_the_instance_and_names_the_signal() {
    let store = MemoryStore::new();
    let flow = Workflow::builder("late")
        .task("a", same)
        .await_signal::<u32>("wait")
        .signal("go")
        .timeout(Duration::from_millis(20))
        .build()
        .unwrap();
    let _worker = work(&store, &flow);
    let handle = Client::new(store.clone()).start(&flow, 1).await.unwrap();
    let failed = handle.result_within(SOON).await.unwrap_err();
    let ClientError::Failed { error, .. } = failed else {
        panic!("{failed}");
    };
    assert_eq!((error.kind, error.task), (ErrorKind::Timeout, task("wait")));
    assert_eq!(error.message, "no signal `go` came within 20ms");
    let late = handle.signal("go", &1_u32).await.unwrap_err();
    let over = ClientError::Over {
        id: handle.id().clone(),
        status: Status::Failed,
    };
    assert_eq!(late.to_string(), over.to_string());
}

/// A wait for `go` that is over while another workflow has the only slot, until `release`; `twice`: the entry by which it
/// was entered stands there once more. The signal comes then. What the wait brings.
async fn signalled_too_late(within: Duration, twice: bool) -> Option<u32> {
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
    let flow = Workflow::builder::<u32>("late")
        .await_signal::<u32>("go")
        .or_none_after(within)
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let waits = client.start(&flow, 1).await.unwrap();
    let list = flow.graph().lists().into_iter().next().unwrap();
    let entry = store
        .ready(Partition::default(), &list, 1)
        .await
        .unwrap()
        .pop();
    let worker = quick(store.clone()).workflow(&busy).workflow(&flow);
    let _worker = worker.concurrency(1).build().unwrap().spawn();
    reached(&waits, "go").await;
    let first = client.start(&busy, ()).await.unwrap();
    until("the slot is busy", async || {
        first.snapshot().await.unwrap().started_at.is_some()
    })
    .await;
    if twice {
        store.repeat_entry(&entry.unwrap());
        let tasks = waits.snapshot().await.unwrap().tasks;
        let state = tasks[&task("go")].state;
        assert_eq!(state, TaskState::Waiting, "it stands before the timer's");
    }
    until("the wait is over", async || {
        let tasks = waits.snapshot().await.unwrap().tasks;
        tasks[&task("go")].state == TaskState::Ready
    })
    .await;
    waits.signal("go", &7_u32).await.unwrap();
    release.notify_one();
    waits.result_within(SOON).await.unwrap()
}

// case 59
#[tokio::test]
async fn a_wait_is_over_in_time_while_all_slots_are_busy() {
    // Too late, whenever a slot is free for what follows.
    assert_eq!(
        signalled_too_late(Duration::from_millis(30), false).await,
        None
    );
}

// Found by the model: the node has the signal when its other entry says that it is late.
#[tokio::test]
async fn a_wait_that_was_late_and_is_entered_again_keeps_the_signal_that_it_has() {
    assert_eq!(
        signalled_too_late(Duration::from_millis(500), true).await,
        Some(7)
    );
}

#[tokio::test]
async fn a_payload_of_another_type_fails_the_task_that_reads_it_for_good_and_says_so() {
    let (store, flow) = (MemoryStore::new(), waits());
    let _worker = work(&store, &flow);
    let handle = Client::new(store.clone()).start(&flow, 1).await.unwrap();
    handle.signal("go", "many").await.unwrap();
    let failed = handle.result_within(SOON).await.unwrap_err();
    let ClientError::Failed { error, .. } = failed else {
        panic!("{failed}");
    };
    let attempt = (error.kind, error.attempt, error.task);
    assert_eq!(attempt, (ErrorKind::Permanent, 1, task("b")));
    assert!(error.message.contains("u32"), "{}", error.message);
}

// case 33
#[tokio::test]
async fn the_payload_of_a_signal_is_the_same_bytes_as_result() {
    let store = MemoryStore::new();
    let flow = Workflow::builder::<u32>("bytes")
        .await_signal::<serde_json::Value>("go")
        .build()
        .unwrap();
    let _worker = work(&store, &flow);
    let client = Client::new(store.clone());
    // {"a": [], "m": {}, "n": null}
    let payload = Bytes::from_static(b"\x83\xa1a\x90\xa1m\x80\xa1n\xc0");
    let handle = client.start(&flow, 1).id("x").await.unwrap();
    client
        .signal_bytes("x", "go", payload.clone())
        .await
        .unwrap();
    assert_eq!(handle.result_bytes_within(SOON).await.unwrap(), payload);
}

// case 23
#[tokio::test]
async fn a_signal_whose_hint_nobody_hears_is_found_where_it_is_stored() {
    let (store, flow) = (Flaky::new(MemoryStore::new()), waits());
    store.fail("mailbox", Fault::Refuse, usize::MAX);
    let worker = quick(store.clone()).workflow(&flow);
    let _worker = worker.build().unwrap().spawn();
    let client = Client::new(store.inner.clone());
    let handle = client.start(&flow, 1).await.unwrap();
    reached(&handle, "go").await;
    handle.signal("go", &1_u32).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    assert!(store.calls("mailbox") > 0);
}

// case 55
#[tokio::test]
async fn a_signal_whose_reply_is_lost_is_repeated_and_counts_once() {
    let (store, flow) = (Flaky::new(MemoryStore::new()), waits());
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 1).await.unwrap();
    store.fail("signal", Fault::LoseReply, 2);
    handle.signal("go", &1_u32).await.unwrap();
    assert_eq!(store.calls("signal"), 3);
    assert_eq!(handle.snapshot().await.unwrap().early.len(), 1);
    // A client that gives up says under which id it can be sent again.
    store.fail("signal", Fault::LoseReply, 1);
    let hasty = client.clone().with_patience(Duration::ZERO);
    let unknown = hasty.signal(handle.id().as_str(), "go", &2_u32).await;
    let Err(ClientError::SignalUnknown { signal, .. }) = unknown else {
        panic!("{unknown:?}");
    };
    handle
        .signal("go", &2_u32)
        .id(signal.as_str())
        .await
        .unwrap();
    assert_eq!(handle.snapshot().await.unwrap().early.len(), 2);
}

#[tokio::test]
async fn signals_that_lead_nowhere_are_errors_that_say_what_to_do() {
    let (store, flow) = (MemoryStore::new(), waits());
    let client = Client::new(store.clone());
    let refused = |error: ClientError| (error.to_string(), error.is_retryable());
    let (text, _) = refused(client.signal("x", "go", &1_u32).await.unwrap_err());
    assert!(text.contains("no instance `x`"), "{text}");
    let handle = client.start(&flow, 1).id("x").await.unwrap();
    let (text, _) = refused(client.signal("x", "gone", &1_u32).await.unwrap_err());
    assert!(
        text.contains("no wait for signal `gone`, it has those for `go`"),
        "{text}"
    );
    let (text, _) = refused(client.signal("x", "no name", &1_u32).await.unwrap_err());
    assert!(text.contains("signal name"), "{text}");
    for _ in 0..SignalRequest::MAX_EARLY {
        handle.signal("go", &1_u32).await.unwrap();
    }
    let (text, again) = refused(handle.signal("go", &1_u32).await.unwrap_err());
    assert!(text.contains("1000 signals") && again, "{text}");
    let later = client.start(&flow, 1).id("x");
    let later = later
        .if_exists(tenure::IdPolicy::TerminateAndReplace)
        .await
        .unwrap();
    let (text, _) = refused(handle.signal("go", &1_u32).await.unwrap_err());
    assert!(text.contains("was replaced by a later start"), "{text}");
    later.signal("go", &1_u32).await.unwrap();
    later.cancel("", "").await.unwrap();
    let (text, _) = refused(client.signal("x", "go", &1_u32).await.unwrap_err());
    assert!(text.contains("over already: cancelled"), "{text}");
}

#[tokio::test]
async fn a_signal_starts_its_instance_if_there_is_none() {
    let (store, flow) = (MemoryStore::new(), waits());
    let client = Client::new(store.clone());
    let send = async |id: &str| {
        let start = client.start(&flow, 1).label("by", "signal");
        let signal = client.signal("x", "go", &41_u32).id(id);
        signal.or_start(start).await.unwrap()
    };
    let handle = send("one").await;
    assert_eq!(handle.id().as_str(), "x");
    // The same again, as after a crash of the client, changes nothing; another one is a second signal.
    for (id, early) in [("one", 1), ("two", 2)] {
        assert_eq!(send(id).await.run(), handle.run());
        assert_eq!(handle.snapshot().await.unwrap().early.len(), early);
    }
    let _worker = work(&store, &flow);
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
}

#[test]
fn an_approval_is_read_as_it_is_documented() {
    let no = Approval::rejected("ada").because("too much");
    let bytes = codec::encode(&no).unwrap();
    let read: serde_json::Value = codec::decode(&bytes).unwrap();
    let expected =
        serde_json::json!({"decision": "rejected", "actor": "ada", "reason": "too much"});
    assert_eq!(read, expected);
    let by_hand = serde_json::json!({"decision": "approved", "actor": "bob"});
    let bytes = codec::encode(&by_hand).unwrap();
    let read: Approval = codec::decode(&bytes).unwrap();
    assert_eq!(read, Approval::approved("bob"));
}
