//! `tenure bench-worker`: a worker process of a benchmark. It is told what to do by its arguments, says `ready` when it
//! has connected, begins with the first line on its standard input and shuts down when that ends, so that it never
//! outlives the benchmark.

use std::{num::NonZeroUsize, time::Duration};

use tenure::{Namespace, RedisStore, Worker};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio_util::sync::CancellationToken;

use super::flow::{Latency, Shape, Witness, workflow};

/// Options of `tenure bench-worker`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long, env = "TENURE_REDIS_URL", hide_env_values = true)]
    redis: String,
    #[arg(long)]
    namespace: Namespace,
    #[arg(long)]
    shape: Shape,
    #[arg(long)]
    concurrency: usize,
    #[arg(long, value_parser = humantime::parse_duration)]
    claim_ttl: Duration,
    #[arg(long, default_value = "1")]
    pub(crate) threads: NonZeroUsize,
    /// Handlers never return
    #[arg(long)]
    hold: bool,
}

/// Runs the worker.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let store = RedisStore::builder(&args.redis)
        .namespace(args.namespace)
        .connect()
        .await?;
    let witness = if args.hold {
        Witness::holding(CancellationToken::new())
    } else {
        Witness::new(Latency::Nothing)
    };
    let worker = Worker::builder(store)
        .workflow(workflow(args.shape, &witness)?)
        .concurrency(args.concurrency)
        .claim_ttl(args.claim_ttl)
        .build()?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    println!("ready");
    if lines.next_line().await?.is_none() {
        return Ok(());
    }
    let worker = worker.spawn();
    until_closed(&mut lines).await?;
    worker.shutdown();
    worker.join().await?;
    Ok(())
}

async fn until_closed(lines: &mut Lines<BufReader<Stdin>>) -> anyhow::Result<()> {
    while lines.next_line().await?.is_some() {}
    Ok(())
}
