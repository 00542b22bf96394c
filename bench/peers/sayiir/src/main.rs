//! sayiir on Postgres: one process with as many `PooledWorker`s as there are slots, since each runs one task at a time.

use std::{sync::Arc, time::Duration};

use peers_common::{Args, Ledger, Peer, Result, Shape, payload, payload_index};
use sayiir_core::workflow::WorkflowStatus;
use sayiir_postgres::{PoolOptions, PostgresBackend};
use sayiir_runtime::{WorkflowClient, prelude::*};
use sqlx::PgPool;
use tokio::task::JoinSet;

type Backend = PostgresBackend<JsonCodec>;
type Flow = Workflow<JsonCodec, String, ()>;

/// Submissions in flight: there is none for many.
const SUBMITTED_AT_ONCE: usize = 32;
/// Connections of the pool.
const CONNECTIONS: u32 = 32;
/// How often an idle worker looks; notifications wake it before.
const LOOK: Duration = Duration::from_secs(1);

struct Sayiir {
    backend: Backend,
    client: Arc<WorkflowClient<Backend>>,
    workflow: Arc<Flow>,
    pool: PgPool,
    workers: Vec<WorkerHandle<Backend>>,
    args: Args,
}

fn main() -> Result<()> {
    let args = Args::parse()?;
    args.block_on(peers_common::load::<Sayiir>(args.clone()))
}

fn workflow(shape: Shape, ledger: &Arc<Ledger>) -> Result<Flow> {
    let step = |task: usize| {
        let ledger = Arc::clone(ledger);
        move |input: String| {
            let ledger = Arc::clone(&ledger);
            async move {
                ledger.run(payload_index(&input), task).await;
                Ok::<_, BoxError>(input)
            }
        }
    };
    let context = WorkflowContext::new("bench", Arc::new(JsonCodec), Arc::new(()));
    let builder = WorkflowBuilder::new(context);
    let built = match shape {
        Shape::Single => builder.then("only", step(0)).build(),
        Shape::Chain => builder
            .then("first", step(0))
            .then("second", step(1))
            .then("third", step(2))
            .build(),
        Shape::Fan => {
            let ledger = Arc::clone(ledger);
            let mut fork = builder
                .then("begin", |input: String| async { Ok(input) })
                .fork();
            for task in 0..10 {
                fork = fork.branch(&format!("branch-{task}"), step(task));
            }
            fork.join("join", move |outputs| {
                let ledger = Arc::clone(&ledger);
                async move {
                    let first: String = outputs.get_by_id("branch-0")?;
                    ledger.run(payload_index(&first), 10).await;
                    Ok(first)
                }
            })
            .build()
        }
    };
    Ok(built?)
}

impl Peer for Sayiir {
    async fn connect(args: &Args, ledger: Arc<Ledger>) -> Result<Self> {
        let options = PoolOptions {
            max_connections: Some(CONNECTIONS),
            ..PoolOptions::default()
        };
        let backend = Backend::connect_with_options(&args.url, options).await?;
        Ok(Self {
            client: Arc::new(WorkflowClient::new(backend.clone())),
            backend,
            workflow: Arc::new(workflow(args.shape, &ledger)?),
            pool: PgPool::connect(&args.url).await?,
            workers: Vec::new(),
            args: args.clone(),
        })
    }

    async fn enqueue(&mut self, from: usize, count: usize) -> Result<()> {
        let mut tasks = JoinSet::new();
        for lane in 0..SUBMITTED_AT_ONCE {
            let (client, workflow) = (Arc::clone(&self.client), Arc::clone(&self.workflow));
            tasks.spawn(async move {
                for job in (from + lane..from + count).step_by(SUBMITTED_AT_ONCE) {
                    client
                        .submit(&workflow, format!("job-{job}"), payload(job))
                        .await?;
                }
                Ok::<_, sayiir_runtime::RuntimeError>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    async fn work(&mut self) -> Result<()> {
        for slot in 0..self.args.slots {
            let name = format!("worker-{}-{slot}", std::process::id());
            let mut worker = PooledWorker::new(name, self.backend.clone(), TaskRegistry::new());
            if self.args.tuned {
                worker = worker.with_claim_ttl(Some(Duration::from_secs(3)));
            }
            let workflows = vec![(*self.workflow.definition_hash(), Arc::clone(&self.workflow))];
            self.workers.push(worker.spawn(LOOK, workflows));
        }
        Ok(())
    }

    async fn completed(&mut self) -> Result<usize> {
        let count: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM sayiir_workflow_snapshots WHERE lower(status) = 'completed'",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(usize::try_from(count)?)
    }

    fn commits_per_job(&self) -> usize {
        1
    }

    async fn bytes(&mut self) -> Result<u64> {
        let bytes: i64 = sqlx::query_scalar("SELECT pg_database_size(current_database())")
            .fetch_one(&self.pool)
            .await?;
        Ok(u64::try_from(bytes)?)
    }

    async fn round_trip(&mut self, job: usize) -> Result<bool> {
        let id = format!("job-{job}");
        self.client
            .submit(&self.workflow, id.clone(), payload(job))
            .await?;
        // There is nothing to wait on but the status.
        while !matches!(self.client.status(&id).await?, WorkflowStatus::Completed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(true)
    }
}
