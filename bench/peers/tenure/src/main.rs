//! Tenure, through its library; and the raw reference that every rate is compared with.

mod reference;

use std::{sync::Arc, time::Duration};

use peers_common::{Args, Ledger, Peer, Result, Shape, payload, payload_index, used_memory};
use redis::aio::MultiplexedConnection;
use tenure::{
    Client, RedisStore, Start, Status, TaskError, Worker, WorkerHandle, Workflow, ids::Partition,
};

/// Instances of one call of the client, which sends them in calls of 500.
const BULK: usize = 10_000;

struct Tenure {
    client: Client,
    store: RedisStore,
    workflow: Workflow<String, String>,
    redis: MultiplexedConnection,
    worker: Option<WorkerHandle>,
    args: Args,
}

fn main() -> Result<()> {
    let args = Args::parse()?;
    args.block_on(async {
        match args.load.as_str() {
            "reference" => reference::run(&args).await,
            _ => peers_common::load::<Tenure>(args.clone()).await,
        }
    })
}

fn workflow(shape: Shape, ledger: &Arc<Ledger>) -> Result<Workflow<String, String>> {
    let step = |task: usize| {
        let ledger = Arc::clone(ledger);
        move |input: String| {
            let ledger = Arc::clone(&ledger);
            async move {
                ledger.run(payload_index(&input), task).await;
                Ok::<_, TaskError>(input)
            }
        }
    };
    let built = match shape {
        Shape::Single => Workflow::builder("single").task("only", step(0)).build(),
        Shape::Chain => Workflow::builder("chain")
            .task("first", step(0))
            .task("second", step(1))
            .task("third", step(2))
            .build(),
        Shape::Fan => {
            let ledger = Arc::clone(ledger);
            Workflow::builder("fan")
                .fork_each(0..10, |n, branch| {
                    branch.task(format!("branch-{n}"), step(n))
                })
                .join("join", move |inputs: Vec<String>| {
                    let ledger = Arc::clone(&ledger);
                    async move {
                        ledger.run(payload_index(&inputs[0]), 10).await;
                        Ok::<_, TaskError>(inputs.into_iter().next().unwrap_or_default())
                    }
                })
                .build()
        }
    };
    Ok(built?)
}

impl Peer for Tenure {
    async fn connect(args: &Args, ledger: Arc<Ledger>) -> Result<Self> {
        let store = RedisStore::connect(&args.url).await?;
        let redis = peers_common::connect(&args.url).await?;
        Ok(Self {
            client: Client::new(store.clone()),
            store,
            workflow: workflow(args.shape, &ledger)?,
            redis,
            worker: None,
            args: args.clone(),
        })
    }

    async fn enqueue(&mut self, from: usize, count: usize) -> Result<()> {
        for from in (from..from + count).step_by(BULK) {
            let to = (from + BULK).min(self.args.count);
            let items = (from..to).map(|job| Start::new(payload(job)));
            for started in self.client.start_many(&self.workflow, items).await {
                started?;
            }
        }
        Ok(())
    }

    async fn work(&mut self) -> Result<()> {
        let mut worker = Worker::builder(self.store.clone())
            .workflow(&self.workflow)
            .concurrency(self.args.slots);
        if self.args.tuned {
            worker = worker.claim_ttl(Duration::from_secs(3));
        }
        self.worker = Some(worker.build()?.spawn());
        Ok(())
    }

    async fn completed(&mut self) -> Result<usize> {
        let counts = self.client.store().counts(Partition::default()).await?;
        Ok(counts
            .finished
            .get(&Status::Completed)
            .copied()
            .unwrap_or(0))
    }

    fn commits_per_job(&self) -> usize {
        1
    }

    async fn bytes(&mut self) -> Result<u64> {
        used_memory(&mut self.redis).await
    }

    async fn round_trip(&mut self, job: usize) -> Result<bool> {
        let handle = self.client.start(&self.workflow, payload(job)).await?;
        handle.result().await?;
        Ok(true)
    }
}
