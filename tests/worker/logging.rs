use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tenure::{
    client::Client,
    ids::{ListName, Nonce, QueueName, WorkerId},
    reaper::Reaper,
    store::{ClaimRequest, Parking, Store, TaskLimits, memory::MemoryStore},
    time::{Clock, Timestamp},
    workflow::{RetryPolicy, Workflow},
};
use tokio_util::sync::CancellationToken;

use crate::support::{Fault, Flaky, partition, quick, until};

const SOON: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// What is logged on this thread from now on.
    fn all() -> (Self, tracing::subscriber::DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// What was logged since the last call.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

// W52
#[tokio::test]
async fn the_log_names_worker_instance_task_and_attempt_with_a_level_by_weight() {
    let (lines, _guard) = Lines::all();
    let calls = AtomicU32::new(0);
    let flow = Workflow::builder("logged")
        .task("charge", move |n: u32| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                tracing::info!("inside the handler");
                if call == 0 {
                    anyhow::bail!("card reader offline")
                }
                Ok(n)
            }
        })
        .retry(RetryPolicy::fixed(Duration::from_millis(1)).max_attempts(3))
        .task("ship", |_: u32| async { Err::<(), _>("no stock") })
        .retry(RetryPolicy::none())
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let worker = quick(store.clone())
        .id("w-9")
        .workflow(&flow)
        .build()
        .unwrap()
        .spawn();
    let handle = Client::new(store)
        .start(&flow, 1)
        .id("order-1")
        .await
        .unwrap();
    handle.result_within(SOON).await.unwrap_err();
    worker.shutdown();
    worker.join().await.unwrap();
    let text = lines.text();
    let line = |part: &str| text.lines().find(|l| l.contains(part)).unwrap_or_default();
    for part in ["card reader offline", "inside the handler", "no stock"] {
        for field in ["worker=w-9", "instance=order-1", "attempt=1"] {
            assert!(
                line(part).contains(field),
                "`{field}` of `{part}` in\n{text}"
            );
        }
    }
    let retried = line("card reader offline");
    assert!(
        retried.contains("WARN") && retried.contains("task=charge"),
        "{retried}"
    );
    assert!(
        retried.contains("max_attempts=3") && retried.contains("next_attempt_in="),
        "{retried}"
    );
    let failed = line("no stock");
    assert!(
        failed.contains("ERROR") && failed.contains("task=ship"),
        "{failed}"
    );
}

// R07 R09 R15 R16
#[tokio::test]
async fn a_reaper_names_whom_it_lost_by_weight_and_is_silent_otherwise() {
    let (lines, _guard) = Lines::all();
    let flow = Workflow::builder("reaped")
        .task("charge", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap();
    let clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    let store = Flaky::new(MemoryStore::with_clock(clock.clone()));
    let client = Client::new(store.clone());
    let start = client.start(&flow, 1).id("order-1").max_crashes(1);
    start.await.unwrap();
    let reaper = Reaper::builder(store.clone())
        .outage_pause(Duration::ZERO)
        .build()
        .unwrap();
    lines.take();
    reaper.tick().await.unwrap();
    assert_eq!(lines.take(), "", "nothing has expired");

    for (outcome, level) in [("ready again", "WARN"), ("instance failed", "ERROR")] {
        let list = ListName {
            queue: QueueName::default(),
            definition: flow.hash(),
        };
        let request = ClaimRequest {
            partition: partition(),
            worker: WorkerId::new("w-dead").unwrap(),
            nonce: Nonce::random(),
            want: 1,
            lists: vec![list],
            ttl: Duration::from_millis(100),
            limits: TaskLimits::new().into(),
            parking: Parking::Never,
        };
        assert_eq!(store.claim(request).await.unwrap().claims.len(), 1);
        clock.step(500);
        lines.take();
        let report = reaper.tick().await.unwrap();
        let failed = usize::from(level == "ERROR");
        assert_eq!((report.requeued(), report.failed()), (1 - failed, failed));
        let text = lines.take();
        for part in [
            level,
            outcome,
            "instance=order-1",
            "task=charge",
            "lost_worker=w-dead",
        ] {
            assert!(text.contains(part), "`{part}` in {text}");
        }
        reaper.tick().await.unwrap();
        assert_eq!(lines.take(), "", "told once");
    }

    store.fail("tick", Fault::Refuse, 1);
    let token = CancellationToken::new();
    let reaper = Reaper::builder(store.clone()).interval(Duration::from_millis(10));
    let reaper = reaper.build().unwrap();
    let before = store.calls("tick");
    let goes_on = until("it goes on after the error", async || {
        store.calls("tick") > before + 1
    });
    tokio::select! {
        () = reaper.run(token) => panic!("it ended"),
        () = goes_on => {}
    }
    let text = lines.take();
    assert!(
        text.contains("WARN") && text.contains("cannot be reached"),
        "{text}"
    );
}
