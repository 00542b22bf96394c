//! `tenure worker`: a worker process that runs until it is told to stop.

use std::{path::PathBuf, time::Duration};

use tenure::{Worker, WorkerHandle};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    connect::Connection,
    demo::{Ledger, orders, refund},
};

/// Options of `tenure worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
    /// Run the workflows `demo-orders` (that of `tenure demo`) and `demo-refund`: handlers are Rust code, so a worker of your own is a program of your own
    #[arg(long, required = true)]
    demo: bool,
    /// Tasks at once
    #[arg(long, default_value_t = 100, value_name = "N")]
    concurrency: usize,
    /// How long a claim holds without a heartbeat
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    claim_ttl: Duration,
    /// How long running tasks may take to finish after SIGTERM
    #[arg(long, default_value = "30s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    drain_timeout: Duration,
    /// File to which the demo's handlers append what they did
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// Runs the worker.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let store = args.connection.open().await?;
    let ledger = args.ledger.as_deref().map(Ledger::append_to).transpose()?;
    let workflow = orders::workflow(ledger)?;
    let worker = Worker::builder(store)
        .workflow(&workflow)
        .workflow(&refund::workflow()?)
        .concurrency(args.concurrency)
        .claim_ttl(args.claim_ttl)
        .drain_timeout(args.drain_timeout)
        .build()?
        .spawn();
    stop_on_signal(worker.clone())?;
    worker.join().await?;
    Ok(())
}

/// SIGTERM and Ctrl-C start a graceful shutdown; a second signal does no more than the first.
fn stop_on_signal(worker: WorkerHandle) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down: running tasks finish first");
        worker.shutdown();
    });
    Ok(())
}
