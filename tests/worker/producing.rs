use std::time::Duration;

use bytes::Bytes;
use tenure::{
    client::{Client, ClientError, Handle, Start, StartMeta},
    codec,
    ids::{InstanceId, WorkflowName},
    store::{IdPolicy, Inspect, Status, Store, memory::MemoryStore},
    workflow::Workflow,
};

use tokio::time::Instant;

use crate::support::{Fault, Flaky, instance, partition, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;

fn echo() -> Workflow<u32, u32> {
    Workflow::builder("echo")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap()
}

// R22
#[tokio::test]
async fn a_start_takes_all_that_can_be_said_about_it() {
    let flow = echo();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let handle = client
        .start(&flow, 1)
        .idempotency_key("message-7")
        .delay(MILLIS(20))
        .label("tenant", "acme")
        .label("tier", "gold")
        .created_by("import")
        .max_crashes(2)
        .await
        .unwrap();
    assert_eq!(handle.id().as_str(), "message-7");
    let snapshot = handle.snapshot().await.unwrap();
    assert_eq!(snapshot.max_crashes, 2);
    assert_eq!(snapshot.header.workflow.as_str(), "echo");
    let meta = StartMeta::decode(&snapshot.meta.unwrap()).unwrap();
    assert_eq!(meta.labels["tenant"], "acme");
    assert_eq!(meta.labels["tier"], "gold");
    assert_eq!(meta.created_by.as_deref(), Some("import"));
    assert_eq!(store.delayed(partition(), 10).await.unwrap().len(), 1);

    let again = client
        .start(&flow, 99)
        .idempotency_key("message-7")
        .await
        .unwrap();
    assert_eq!(again.run(), handle.run());
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    assert_eq!(again.result_within(SOON).await.unwrap(), 1);
}

#[tokio::test]
async fn a_start_at_a_time_that_has_passed_begins_at_once() {
    let flow = echo();
    let store = MemoryStore::new();
    let long_ago = chrono::DateTime::from_timestamp(1_000_000, 0).unwrap();
    let handle = Client::new(store.clone())
        .start(&flow, 1)
        .at(long_ago)
        .await
        .unwrap();
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
}

// case 37
#[tokio::test]
async fn a_taken_id_is_handled_as_the_policy_says() {
    let flow = echo();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let start = |policy| client.start(&flow, 1).id("i").if_exists(policy);
    let first = start(IdPolicy::Fail).await.unwrap();
    match start(IdPolicy::Fail).await.unwrap_err() {
        ClientError::AlreadyExists { id, run, status } => {
            assert_eq!(
                (id, run, status),
                (instance("i"), first.run(), Status::Running)
            );
        }
        other => panic!("{other}"),
    }
    assert_eq!(
        start(IdPolicy::UseExisting).await.unwrap().run(),
        first.run()
    );
    let refused = start(IdPolicy::ReplaceFinished).await.unwrap_err();
    assert!(
        matches!(refused, ClientError::AlreadyExists { .. }),
        "{refused}"
    );
    let second = start(IdPolicy::TerminateAndReplace).await.unwrap();
    assert_ne!(second.run(), first.run());
    for error in [
        first.result_within(SOON).await.unwrap_err(),
        first.status().await.unwrap_err(),
        first.cancel("", "").await.unwrap_err(),
    ] {
        assert!(matches!(error, ClientError::Replaced { .. }), "{error}");
    }
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    assert_eq!(second.result_within(SOON).await.unwrap(), 1);
    assert!(start(IdPolicy::ReplaceFinished).await.is_ok());
}

// case 75
#[tokio::test]
async fn of_two_starts_of_one_id_in_one_call_the_first_is_replaced() {
    let flow = echo();
    let client = Client::new(MemoryStore::new());
    let item = |n| {
        Start::new(n)
            .id("i")
            .if_exists(IdPolicy::TerminateAndReplace)
    };
    let handles = client.start_many(&flow, [item(1), item(2)]).await;
    let error = handles[0]
        .as_ref()
        .unwrap()
        .result_within(SOON)
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Replaced { .. }), "{error}");
    assert_eq!(
        handles[1].as_ref().unwrap().status().await.unwrap(),
        Status::Running
    );
}

#[tokio::test]
async fn many_are_started_with_few_calls_and_an_answer_for_each() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    client.start(&flow, 0).id("taken").await.unwrap();
    let items = (0..1200).map(|n| {
        Start::new(n).id(match n {
            7 => "taken".to_owned(),
            8 => "not/allowed".to_owned(),
            n => format!("i-{n}"),
        })
    });
    let answers = client.start_many(&flow, items).await;
    assert_eq!(store.calls("start"), 1 + 3);
    assert_eq!(answers.len(), 1200);
    for (n, answer) in answers.iter().enumerate() {
        match (n, answer) {
            (7, answer) => assert!(matches!(answer, Err(ClientError::AlreadyExists { .. }))),
            (8, answer) => assert!(matches!(answer, Err(ClientError::Id(_)))),
            (n, answer) => assert_eq!(answer.as_ref().unwrap().id().as_str(), format!("i-{n}")),
        }
    }
}

// case 36
#[tokio::test]
async fn an_input_over_the_limit_is_refused_with_both_numbers_and_its_neighbours_start() {
    let flow = Workflow::builder("text")
        .task("a", |s: String| async move { anyhow::Ok(s.len()) })
        .build()
        .unwrap();
    let client = Client::new(MemoryStore::builder().max_payload(100).build());
    let items = ["short".to_owned(), "x".repeat(500), "short".to_owned()];
    let answers = client.start_many(&flow, items.map(Start::new)).await;
    assert!(answers[0].is_ok() && answers[2].is_ok());
    match answers[1].as_ref().unwrap_err() {
        ClientError::TooLarge {
            size: 503,
            limit: 100,
            ..
        } => {}
        other => panic!("{other}"),
    }
    let labelled = Start::new("short".to_owned()).label("long", "x".repeat(500));
    let items = [Start::new("short".to_owned()), labelled];
    let answers = client.start_many(&flow, items).await;
    assert!(answers[0].is_ok());
    let error = answers[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("the labels of"), "{error}");
}

// case 55 case 22
#[tokio::test]
async fn a_start_whose_reply_is_lost_is_repeated_and_starts_once() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    store.fail("start", Fault::LoseReply, 2);
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    assert_eq!(store.calls("start"), 3);
    assert_eq!(handle.status().await.unwrap(), Status::Running);
    store.fail("control", Fault::LoseReply, 2);
    handle
        .cancel("", "")
        .await
        .expect("the repeat finds it done");
}

#[tokio::test]
async fn reads_outlive_lost_answers() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    store.fail("header", Fault::Refuse, 2);
    client.handle("i").await.unwrap();
    store.fail("header", Fault::LoseReply, 2);
    assert_eq!(handle.status().await.unwrap(), Status::Running);
    store.fail("snapshot", Fault::Refuse, 2);
    handle.snapshot().await.unwrap();
    store.fail("counts", Fault::Refuse, 2);
    assert_eq!(client.counts().await.unwrap().ready.len(), 1);
    let impatient = client.with_patience(Duration::ZERO);
    store.fail("header", Fault::Refuse, 1);
    let error = impatient.handle("i").await.unwrap_err();
    assert!(matches!(error, ClientError::Store(_)), "{error}");
}

#[tokio::test]
async fn a_start_without_any_answer_is_unknown() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone()).with_patience(MILLIS(50));
    store.set_away(true);
    let error = client.start(&flow, 1).id("i").await.unwrap_err();
    assert!(
        matches!(error, ClientError::Unknown { .. }) && !error.is_retryable(),
        "{error}"
    );
    let errors = client
        .start_many(&flow, [Start::new(1), Start::new(2)])
        .await;
    assert!(
        errors
            .iter()
            .all(|e| matches!(e, Err(ClientError::Unknown { .. })))
    );
}

#[tokio::test]
async fn ids_that_are_not_allowed_are_refused_in_words() {
    let flow = echo();
    let client = Client::new(MemoryStore::new());
    for id in ["", "a/b", "a~b", "a\0b"] {
        let error = client.start(&flow, 1).id(id).await.unwrap_err();
        assert!(matches!(error, ClientError::Id(_)), "{id:?}: {error}");
    }
    let placed = InstanceId::placed("customer-1", "order-1").unwrap();
    let handle = client
        .start(&flow, 1)
        .instance(placed.clone())
        .await
        .unwrap();
    assert_eq!(*handle.id(), placed);
    let absurd = client
        .start(&flow, 1)
        .delay(Duration::MAX)
        .await
        .unwrap_err();
    assert!(matches!(absurd, ClientError::Option(_)), "{absurd}");
}

#[tokio::test]
async fn a_result_of_another_type_says_so_and_stays_readable() {
    let flow = echo();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    let handle = client.start(&flow, 7).id("i").await.unwrap();
    handle.result_within(SOON).await.unwrap();
    let text = client.handle_typed::<String>("i").await.unwrap();
    let error = text.result_within(SOON).await.unwrap_err();
    assert!(matches!(&error, ClientError::WrongType { .. }), "{error}");
    let untyped = client.handle("i").await.unwrap();
    let bytes = untyped.result_bytes().await.unwrap();
    assert_eq!(codec::decode::<u32>(&bytes).unwrap(), 7);
    assert_eq!(untyped.typed::<u32>().result().await.unwrap(), 7);
}

#[tokio::test]
async fn an_instance_that_is_not_there_is_not_found() {
    let error = Client::new(MemoryStore::new())
        .handle("nobody")
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn waiting_ends_with_its_limit_and_the_instance_goes_on() {
    let flow = echo();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 7).await.unwrap();
    let error = handle.result_within(MILLIS(20)).await.unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    let _worker = quick(store).workflow(&flow).build().unwrap().spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
}

// Woken, not polled: the slow look is every 5 s.
#[tokio::test]
async fn a_result_is_told_and_not_polled_for() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let mut waiting = Vec::new();
    for n in 0..20 {
        let handle = client.start(&flow, n).await.unwrap();
        waiting.push(tokio::spawn(
            async move { handle.result_within(SOON).await },
        ));
    }
    until("all wait", async || store.calls("watch") >= 20).await;
    tokio::time::sleep(MILLIS(30)).await;
    let begin = Instant::now();
    let _worker = quick(store.inner.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    for (n, result) in (0..).zip(waiting) {
        assert_eq!(result.await.unwrap().unwrap(), n);
    }
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(store.calls("mailbox"), 1, "one mailbox for all");
    // One look at first, one when the mailbox is open, one at the end.
    assert!(store.calls("watch") <= 60, "{}", store.calls("watch"));
}

#[tokio::test]
async fn a_wait_survives_a_store_that_is_away_for_a_while() {
    let flow = echo();
    let store = Flaky::new(MemoryStore::new());
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 3).await.unwrap();
    let waiting = tokio::spawn(async move { handle.result_within(SOON).await });
    until("it waits", async || store.calls("watch") >= 1).await;
    store.fail("watch", Fault::Refuse, 2);
    let _worker = quick(store.inner.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    assert_eq!(waiting.await.unwrap().unwrap(), 3);
}

#[tokio::test]
async fn a_producer_that_has_only_the_name_starts_what_a_worker_published() {
    let flow = echo();
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let name = WorkflowName::new("echo").unwrap();
    let input: Bytes = codec::encode(&11).unwrap();
    let error = client.start_named(&name, input.clone()).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::UnknownWorkflow { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("no worker has published"),
        "{error}"
    );

    let _worker = quick(store.clone())
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    until("published", async || {
        store.definition(&name).await.unwrap().is_some()
    })
    .await;
    let handle = client.start_named(&name, input).id("named").await.unwrap();
    let bytes = handle.result_bytes_within(SOON).await.unwrap();
    assert_eq!(codec::decode::<u32>(&bytes).unwrap(), 11);
    assert!(!handle.was_there());
    let again = |id: &str| {
        Start::new(codec::encode(&12).unwrap())
            .id(id)
            .if_exists(IdPolicy::UseExisting)
    };
    let many = client
        .start_many_named(&name, ["named", "other"].map(again))
        .await;
    let many: Vec<Handle> = many.into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!([many[0].was_there(), many[1].was_there()], [true, false]);
    assert_eq!(many[0].run(), handle.run());
    let bytes = many[1].result_bytes_within(SOON).await.unwrap();
    assert_eq!(codec::decode::<u32>(&bytes).unwrap(), 12);
    let snapshot = handle.snapshot().await.unwrap();
    assert!(snapshot.tasks.contains_key(&task("a")));
}
