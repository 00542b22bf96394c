//! State to read while it runs: how far a task is, values that tasks share, the result of a task by its name.
//!
//! Run it on a Redis with `cargo run --example progress -- redis://127.0.0.1:6379`.

use std::{sync::Arc, time::Duration};

use tenure::{
    Client, Namespace, RedisStore, RetryPolicy, TaskContext, TaskError, Worker, Workflow,
};
use tokio::sync::Notify;

const PAGES: u32 = 6;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or("redis://127.0.0.1:6379".to_owned());
    let store = RedisStore::builder(url)
        .namespace(Namespace::new("example-progress")?)
        .connect()
        .await?;
    store.remove_namespace().await?;

    let seen = Arc::new(Notify::new());
    let go_on = Arc::clone(&seen);
    let import = Workflow::builder("import")
        .task("pages", move |ctx: TaskContext, pages: u32| {
            let go_on = Arc::clone(&go_on);
            async move {
                // A later attempt goes on where the one before it stopped.
                let done = ctx.last_progress::<u32>().await?.unwrap_or(0);
                for page in done + 1..=pages {
                    ctx.progress(&page)?;
                    if page == pages / 2 && ctx.attempt() == 1 {
                        go_on.notified().await;
                        return Err(TaskError::new("the line is broken"));
                    }
                }
                ctx.set("source", &"archive").await?;
                Ok(pages - done)
            }
        })
        .retry(RetryPolicy::fixed(Duration::from_millis(10)).max_attempts(2))
        .task("report", async |ctx: TaskContext, imported: u32| {
            let source: Option<String> = ctx.get("source").await?;
            Ok::<_, TaskError>(format!(
                "{imported} pages from {}",
                source.unwrap_or_default()
            ))
        })
        .build()?;

    let worker = Worker::builder(store.clone())
        .workflow(&import)
        .build()?
        .spawn();
    let client = Client::new(store.clone());
    let handle = client
        .start(&import, PAGES)
        .id("import-1")
        .label("tenant", "acme")
        .await?;

    while handle.progress::<u32>("pages").await? != Some(PAGES / 2) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("half of the pages are there");
    seen.notify_one();

    let report = handle.result().await?;
    println!("{report}");
    assert_eq!(report, "3 pages from archive", "the second attempt went on");
    assert_eq!(handle.progress::<u32>("pages").await?, Some(PAGES));
    assert_eq!(handle.task_result::<u32>("pages").await?, Some(3));
    assert_eq!(
        handle.shared::<String>("source").await?.as_deref(),
        Some("archive")
    );
    let labels = handle.snapshot().await?.start_meta().labels;
    assert_eq!(labels["tenant"], "acme");

    worker.shutdown();
    worker.join().await?;
    store.remove_namespace().await?;
    Ok(())
}
