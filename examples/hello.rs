//! The smallest whole: a workflow, a worker and a client in one process, on the store in memory.
//!
//! Run it with `cargo run --example hello`.

use tenure::{MemoryStore, Worker, Workflow};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let hello = Workflow::builder("hello")
        .task("greet", async |name: String| {
            anyhow::Ok(format!("Hello, {name}!"))
        })
        .build()?;
    let worker = Worker::builder(MemoryStore::new())
        .workflow(&hello)
        .build()?
        .spawn();
    let handle = worker.client().start(&hello, "world".to_owned()).await?;
    println!("{}", handle.result().await?);

    worker.shutdown();
    worker.join().await?;
    Ok(())
}
