//! A deployment with a mistake lets instances die; after the fix they go on from the task that failed.
//!
//! Run it with `cargo run --example retry_dead -- redis://127.0.0.1:6379`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use anyhow::{bail, ensure};
use tenure::{
    Client, ClientError, RedisStore, RetryFrom, RetryPolicy, Worker, Workflow, client::Filter,
};

/// The price service: wrong until it is mended.
#[derive(Debug, Clone, Default)]
struct Prices(Arc<AtomicBool>);

impl Prices {
    fn of(&self, item: u32) -> anyhow::Result<u32> {
        if !self.0.load(Ordering::SeqCst) {
            bail!("no price for item {item}");
        }
        Ok(item * 100)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1);
    let store = RedisStore::connect(address.as_deref().unwrap_or("redis://127.0.0.1:6379")).await?;
    let client = Client::new(store.clone());
    let (prices, reserved) = (Prices::default(), Arc::new(AtomicU32::new(0)));
    let (service, counter) = (prices.clone(), Arc::clone(&reserved));
    let order = Workflow::builder("retried-order")
        .task("reserve", move |item: u32| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move { anyhow::Ok(item) }
        })
        .task("price", move |item: u32| {
            let price = service.of(item);
            async move { price }
        })
        .retry(RetryPolicy::none())
        .build()?;
    let worker = Worker::builder(store).workflow(&order).build()?.spawn();

    let mut orders = Vec::new();
    for item in 1..=10 {
        orders.push(client.start(&order, item).await?);
    }
    for handle in &orders {
        let error = handle.result().await.expect_err("there are no prices");
        ensure!(matches!(error, ClientError::Failed { .. }), "{error}");
    }
    println!("{} orders are dead", orders.len());

    prices.0.store(true, Ordering::SeqCst);
    let dead = Filter::new().workflow(order.name().clone());
    let retried = client
        .retry_all(RetryFrom::Failed, dead)
        .reason("prices are back")
        .actor("ops");
    let retried = retried.run().await?;
    ensure!(retried.done == 10 && retried.failed.is_empty());
    for (handle, item) in orders.iter().zip(1..) {
        ensure!(handle.result().await? == item * 100);
    }
    ensure!(
        reserved.load(Ordering::SeqCst) == 10,
        "what was done is not done again"
    );
    println!("all of them are priced, none was reserved twice");

    worker.shutdown();
    worker.join().await?;
    Ok(())
}
