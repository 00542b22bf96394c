//! `apalis-redis`. `--bare` turns its locks and events off. Chains are a `SteppedFlow`.

use std::{sync::Arc, time::Duration};

use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};
use apalis_workflow::SteppedFlow;
use peers_common::{Args, Ledger, Peer, Result, Shape, payload, payload_index, used_memory};
use redis::{AsyncCommands, aio::MultiplexedConnection};
use tokio::task::{LocalSet, spawn_local};

const QUEUE: &str = "bench";
/// Jobs of one `push_bulk`.
const BULK: usize = 1_000;
/// How often an idle worker looks: nothing wakes it when a job is pushed.
const LOOK: Duration = Duration::from_millis(100);

struct Apalis {
    storage: RedisStorage<String>,
    redis: MultiplexedConnection,
    ledger: Arc<Ledger>,
    args: Args,
}

fn main() -> Result<()> {
    let args = Args::parse()?;
    // Workers run in the main task, as in its documentation; their tasks are spawned.
    let local = LocalSet::new();
    args.block_on(local.run_until(peers_common::load::<Apalis>(args.clone())))
}

fn config(args: &Args) -> Config {
    let config = Config::default()
        .queue(QUEUE)
        .batch_size(args.slots)
        .lock_tasks(!args.bare)
        .emit_events(!args.bare);
    if args.tuned {
        config
            .heartbeat_interval(Duration::from_secs(1))
            .missed_heartbeats(3)
    } else {
        config
    }
}

impl Apalis {
    fn step(
        &self,
        task: usize,
    ) -> impl Fn(
        String,
    )
        -> futures::future::BoxFuture<'static, std::result::Result<String, BoxDynError>>
    + Clone
    + Send
    + Sync
    + 'static {
        let ledger = Arc::clone(&self.ledger);
        move |input: String| {
            let ledger = Arc::clone(&ledger);
            Box::pin(async move {
                ledger.run(payload_index(&input), task).await;
                Ok(input)
            })
        }
    }
}

impl Peer for Apalis {
    async fn connect(args: &Args, ledger: Arc<Ledger>) -> Result<Self> {
        if args.shape == Shape::Fan {
            return Err("apalis: no fan".into());
        }
        let connection = apalis_redis::connect(args.url.as_str()).await?;
        let redis = peers_common::connect(&args.url).await?;
        Ok(Self {
            storage: RedisStorage::new(connection).with_config(config(args)),
            redis,
            ledger,
            args: args.clone(),
        })
    }

    async fn enqueue(&mut self, from: usize, count: usize) -> Result<()> {
        let last = from + count;
        for from in (from..last).step_by(BULK) {
            let jobs = (from..(from + BULK).min(last)).map(payload).collect();
            self.storage.push_bulk(jobs).await?;
        }
        Ok(())
    }

    async fn work(&mut self) -> Result<()> {
        let backend = self.storage.clone().poll_with_interval(LOOK);
        let name = format!("worker-{}", std::process::id());
        let builder = WorkerBuilder::new(name)
            .backend(backend)
            .concurrency(self.args.slots);
        match self.args.shape {
            Shape::Chain => {
                let flow = SteppedFlow::new("chain")
                    .and_then(self.step(0))
                    .and_then(self.step(1))
                    .and_then(self.step(2));
                let worker = builder.parallelize(tokio::spawn).build(flow);
                spawn_local(async move { ended(worker.run().await) });
            }
            _ => {
                let worker = builder.parallelize(tokio::spawn).build(self.step(0));
                spawn_local(async move { ended(worker.run().await) });
            }
        }
        Ok(())
    }

    async fn completed(&mut self) -> Result<usize> {
        let done = config(&self.args).done_jobs_set();
        Ok(self.redis.scard(done).await?)
    }

    fn commits_per_job(&self) -> usize {
        self.args.shape.tasks()
    }

    async fn bytes(&mut self) -> Result<u64> {
        used_memory(&mut self.redis).await
    }

    async fn round_trip(&mut self, job: usize) -> Result<bool> {
        self.storage.push(payload(job)).await?;
        Ok(false)
    }
}

/// A worker never ends by itself.
fn ended<E: std::fmt::Debug>(outcome: std::result::Result<(), E>) {
    eprintln!("apalis: the worker ended: {outcome:?}");
    std::process::exit(1);
}
