//! The worker process that the tests start.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use serde::{Deserialize, Serialize};
use tenure::{RedisStore, Worker};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    job::{self, Kind},
    ledger::{Ledger, Phase},
};

/// The environment variable that makes this program a worker, and says which.
pub(crate) const SETUP: &str = "TENURE_TEST_WORKER";

/// A worker process. Times in milliseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) url: String,
    pub(crate) ledger: PathBuf,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) ttl: u64,
    pub(crate) concurrency: usize,
    pub(crate) drain: u64,
    /// Threads of its runtime; 0 is a runtime on the main thread.
    pub(crate) threads: usize,
    pub(crate) reap: u64,
    /// After a second crash of a task.
    pub(crate) crash_delay: u64,
}

/// What the environment asks for, if it asks.
pub(crate) fn setup() -> Option<Setup> {
    let setup = std::env::var(SETUP).ok()?;
    Some(serde_json::from_str(&setup).expect("the setup of a worker process is JSON"))
}

/// Runs the worker until SIGTERM.
pub(crate) fn run(setup: Setup) -> ExitCode {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let mut runtime = match setup.threads {
        0 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(threads);
            runtime
        }
    };
    let runtime = runtime
        .enable_all()
        .build()
        .expect("a runtime can be built");
    match runtime.block_on(work(setup)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the worker process failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn work(setup: Setup) -> anyhow::Result<()> {
    let ledger = Ledger::open(&setup.ledger);
    let mut terminate = signal(SignalKind::terminate())?;
    let store = RedisStore::connect(&setup.url).await?;
    let mut worker = Worker::builder(store)
        .concurrency(setup.concurrency)
        .claim_ttl(Duration::from_millis(setup.ttl))
        .drain_timeout(Duration::from_millis(setup.drain))
        .reap_interval(Duration::from_millis(setup.reap))
        .crash_delay(Duration::from_millis(setup.crash_delay));
    for kind in setup.kinds {
        worker = worker.workflow(job::workflow(kind, &ledger));
    }
    let worker = worker.build()?.spawn();
    ledger.write(Phase::Up, worker.id().as_str(), "-", 0, 0);
    let stopper = worker.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stopper.shutdown();
    });
    worker.join().await?;
    Ok(())
}
