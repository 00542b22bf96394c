//! All instances of one tenant are paused, and go on later from where they were.
//!
//! Run it with `cargo run --example pause_resume -- redis://127.0.0.1:6379`.

use std::time::Duration;

use anyhow::ensure;
use tenure::{Client, RedisStore, Status, Worker, Workflow, client::Filter};

fn report() -> Result<Workflow<u32, String>, tenure::BuildErrors> {
    Workflow::builder("pausable-report")
        .task("collect", async |number: u32| anyhow::Ok(number * 2))
        .delay("settle-down", Duration::from_millis(300))
        .task("write", async |number: u32| {
            anyhow::Ok(format!("report {number}"))
        })
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1);
    let store = RedisStore::connect(address.as_deref().unwrap_or("redis://127.0.0.1:6379")).await?;
    let client = Client::new(store.clone());
    let report = report()?;
    let worker = Worker::builder(store).workflow(&report).build()?.spawn();

    let mut acme = Vec::new();
    for number in 0..20 {
        acme.push(
            client
                .start(&report, number)
                .label("tenant", "acme")
                .await?,
        );
    }
    let other = client.start(&report, 21).label("tenant", "other").await?;

    let of_acme = || {
        Filter::new()
            .workflow(report.name().clone())
            .label("tenant", "acme")
    };
    let paused = client
        .pause_all(of_acme())
        .reason("unpaid")
        .actor("billing")
        .run()
        .await?;
    ensure!(paused.done == 20 && paused.failed.is_empty());

    // Whoever is not paused goes on; the delays of the others are over by now too, but nothing of them begins.
    ensure!(other.result().await? == "report 42");
    for handle in &acme {
        ensure!(handle.status().await? == Status::Paused);
        let control = handle.snapshot().await?.header.control;
        ensure!(control.and_then(|c| c.reason).as_deref() == Some("unpaid"));
    }

    let mut resuming = client.resume_all(of_acme()).reason("paid").actor("billing");
    while let Some(progress) = resuming.step().await? {
        println!("{} go on", progress.done);
    }
    for (number, handle) in acme.iter().enumerate() {
        ensure!(handle.result().await? == format!("report {}", 2 * number));
    }
    println!("all reports are written");

    worker.shutdown();
    worker.join().await?;
    Ok(())
}
