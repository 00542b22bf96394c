//! An external executor: a worker that has only the structure of a workflow. Every task goes to one function, with its
//! payload as MessagePack: for code that is in another process, or not in Rust.
//!
//! Run it on a Redis with `cargo run --example external -- redis://127.0.0.1:6379`.

use std::sync::Arc;

use bytes::Bytes;
use tenure::{
    Client, Namespace, RedisStore, TaskContext, TaskError, Worker, Workflow, codec, store::Store,
    workflow::Graph,
};

/// What a script in another language would do: looks at the task's name and at the payload.
async fn execute(ctx: TaskContext, input: Bytes) -> Result<Bytes, TaskError> {
    let output = match ctx.task().as_str() {
        "reserve" => {
            let items: u32 = codec::decode(&input)?;
            codec::encode(&(items * 10))?
        }
        "ship" => {
            let price: u32 = codec::decode(&input)?;
            codec::encode(&format!("shipped for {price}"))?
        }
        other => return Err(TaskError::permanent(format!("nobody can do `{other}`"))),
    };
    Ok(output)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or("redis://127.0.0.1:6379".to_owned());
    let store = RedisStore::builder(url)
        .namespace(Namespace::new("example-external")?)
        .connect()
        .await?;
    store.remove_namespace().await?;

    // Published by whoever owns the workflow; here by hand, without its handlers ever being called.
    let order = Workflow::builder("order")
        .task("reserve", async |_: u32| Err::<u32, _>("not here"))
        .task("ship", async |_: u32| Err::<String, _>("not here"))
        .build()?;
    let definition = order.graph().to_bytes()?;
    store
        .publish(order.name(), order.hash(), definition)
        .await?;

    // The executor knows a name alone, and reads the structure.
    let (_, definition) = store
        .definition(order.name())
        .await?
        .expect("published above");
    let graph = Arc::new(Graph::from_bytes(&definition)?);
    let mut worker = Worker::builder(store.clone())
        .external(Arc::clone(&graph), execute)
        .build()?;

    let client = Client::new(store.clone());
    let handle = client
        .start_named(order.name(), codec::encode(&7_u32)?)
        .id("order-1")
        .await?;

    // Driven by hand, one task after the other; `worker.spawn()` would run them by itself.
    let mut tasks = Vec::new();
    while let Some(driven) = worker.run_once().await? {
        println!("{} is {:?}", driven.task, driven.fate);
        tasks.push(driven.task.to_string());
    }
    assert_eq!(tasks, ["reserve", "ship"]);
    let result: String = handle.typed().result().await?;
    assert_eq!(result, "shipped for 70");
    println!("{result}");

    store.remove_namespace().await?;
    Ok(())
}
