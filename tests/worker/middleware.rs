use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use tenure::{
    Client, ClientError, MemoryStore, TaskContext, TaskError, Workflow,
    client::EventFilter,
    codec,
    store::{ErrorKind, Event, Status},
    task::{Middleware, Next},
    workflow::RetryPolicy,
};

use crate::support::{quick, until};

const SOON: Duration = Duration::from_secs(10);

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what passes it.
struct Writes(&'static str, Log);

impl Middleware for Writes {
    async fn handle(
        &self,
        ctx: TaskContext,
        input: Bytes,
        next: Next<'_>,
    ) -> Result<Bytes, TaskError> {
        let say = |what: &str| self.1.lock().unwrap().push(format!("{} {what}", self.0));
        say(&format!("before {} {}", ctx.task(), ctx.attempt()));
        let output = next.run(ctx, input).await;
        say(if output.is_ok() { "ok" } else { "error" });
        output
    }
}

/// Does what it is asked for in place of the handler.
struct Instead(Does);

#[derive(Clone, Copy)]
enum Does {
    Answer,
    Fail,
    Panic,
    Hang,
}

impl Middleware for Instead {
    async fn handle(&self, _: TaskContext, _: Bytes, _: Next<'_>) -> Result<Bytes, TaskError> {
        match self.0 {
            Does::Answer => codec::encode(&7).map_err(TaskError::permanent),
            Does::Fail => Err(TaskError::permanent("not today")),
            Does::Panic => panic!("the middleware is broken"),
            Does::Hang => std::future::pending().await,
        }
    }
}

fn flow() -> Workflow<u32, u32> {
    Workflow::builder("flow")
        .task("a", |n: u32| async move { anyhow::Ok(n + 1) })
        .retry(RetryPolicy::none())
        .timeout(Duration::from_secs(1))
        .task("b", |n: u32| async move { anyhow::Ok(n * 2) })
        .build()
        .unwrap()
}

#[tokio::test]
async fn middleware_stands_around_every_handler_in_the_order_given() {
    let log = Log::default();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(flow())
        .middleware(Writes("outer", Arc::clone(&log)))
        .middleware(Writes("inner", Arc::clone(&log)));
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store).start(&flow(), 1).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 4);
    let around = |task: &str| {
        ["outer", "inner"]
            .map(|name| format!("{name} before {task} 1"))
            .into_iter()
            .chain(["inner ok".to_owned(), "outer ok".to_owned()])
    };
    let expected: Vec<String> = around("a").chain(around("b")).collect();
    assert_eq!(*log.lock().unwrap(), expected);
}

#[tokio::test]
async fn middleware_may_answer_fail_panic_and_hang_as_a_handler_may() {
    for (does, kind) in [
        (Does::Answer, None),
        (Does::Fail, Some(ErrorKind::Permanent)),
        (Does::Panic, Some(ErrorKind::Panic)),
        (Does::Hang, Some(ErrorKind::Timeout)),
    ] {
        let store = MemoryStore::new();
        let worker = quick(store.clone()).workflow(flow());
        let _worker = worker.middleware(Instead(does)).build().unwrap().spawn();
        let handle = Client::new(store).start(&flow(), 1).await.unwrap();
        match (handle.result_within(SOON).await, kind) {
            (Ok(7), None) => {}
            (Err(ClientError::Failed { error, .. }), Some(kind)) => {
                assert_eq!(error.kind, kind);
                assert_eq!(error.task.as_str(), "a");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_cancelled_task_drops_its_middleware() {
    struct Dropped(Log);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.lock().unwrap().push("dropped".into());
        }
    }
    struct Waits(Log);
    impl Middleware for Waits {
        async fn handle(&self, _: TaskContext, _: Bytes, _: Next<'_>) -> Result<Bytes, TaskError> {
            let _guard = Dropped(Arc::clone(&self.0));
            self.0.lock().unwrap().push("waits".into());
            std::future::pending().await
        }
    }
    let log = Log::default();
    let flow = Workflow::builder("endless")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .workflow(&flow)
        .cancel_grace(Duration::ZERO)
        .middleware(Waits(Arc::clone(&log)));
    let _worker = worker.build().unwrap().spawn();
    let handle = Client::new(store).start(&flow, 1).await.unwrap();
    let said = || log.lock().unwrap().join(" ");
    until("it waits", async || said() == "waits").await;
    handle.cancel("enough", "a test").await.unwrap();
    until("it is dropped", async || said() == "waits dropped").await;
}

#[tokio::test]
async fn a_client_hears_of_the_changes_that_it_asks_for() {
    let store = MemoryStore::new();
    let client = Client::new(store.clone());
    let wanted = EventFilter::new()
        .id_prefix("order-")
        .status(Status::Completed);
    let mut events = client.events(wanted).await.unwrap();
    let _worker = quick(store).workflow(flow()).build().unwrap().spawn();
    for id in ["other", "order-2", "order-1"] {
        let start = client.start(&flow(), 1).id(id);
        let start = if id == "order-2" {
            start.delay(SOON)
        } else {
            start
        };
        let handle = start.await.unwrap();
        if id == "order-2" {
            handle.cancel("not this one", "a test").await.unwrap();
        } else {
            handle.result_within(SOON).await.unwrap();
        }
    }
    match events.next().await {
        Some(Event::Changed(event)) => {
            assert_eq!(
                (event.id.as_str(), event.to),
                ("order-1", Status::Completed)
            );
        }
        other => panic!("{other:?}"),
    }
}
