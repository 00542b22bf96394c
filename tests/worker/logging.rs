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
    store::memory::MemoryStore,
    workflow::{RetryPolicy, Workflow},
};

use crate::support::quick;

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

// W52
#[tokio::test]
async fn the_log_names_worker_instance_task_and_attempt_with_a_level_by_weight() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
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
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
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
