//! `bullmq-official`, the Rust crate of BullMQ. Flows for chains and fans, as its documentation has them.

use std::{sync::Arc, time::Duration};

use bullmq::{
    BulkJob, FlowJob, FlowProducer, FlowProducerOptions, Job, Queue, QueueEvent, QueueEvents,
    QueueEventsOptions, QueueOptions, Worker, WorkerOptions, options::RedisConnectionOptions,
    worker::CancellationToken,
};
use peers_common::{Args, Ledger, Peer, Result, Shape, payload, payload_index, used_memory};
use redis::aio::MultiplexedConnection;

const QUEUE: &str = "bench";
/// Jobs of one `add_bulk`.
const BULK: usize = 1_000;

struct BullMq {
    queue: Queue,
    flows: FlowProducer,
    events: Option<QueueEvents>,
    redis: MultiplexedConnection,
    worker: Option<Worker>,
    ledger: Arc<Ledger>,
    args: Args,
}

fn main() -> Result<()> {
    let args = Args::parse()?;
    args.block_on(peers_common::load::<BullMq>(args.clone()))
}

fn connection(args: &Args) -> RedisConnectionOptions {
    RedisConnectionOptions::new().url(args.url.clone())
}

/// The job's name is the number of its task, its data the payload.
fn flow(shape: Shape, job: usize) -> Result<FlowJob> {
    let node = |task: usize| FlowJob::new(task.to_string(), QUEUE, payload(job));
    Ok(match shape {
        Shape::Single => node(0)?,
        Shape::Chain => node(2)?.add_child(node(1)?.add_child(node(0)?)),
        Shape::Fan => node(10)?.children((0..10).map(node).collect::<bullmq::Result<_>>()?),
    })
}

impl Peer for BullMq {
    async fn connect(args: &Args, ledger: Arc<Ledger>) -> Result<Self> {
        let queue =
            Queue::with_options(QUEUE, QueueOptions::new().connection(connection(args))).await?;
        let flows =
            FlowProducer::with_options(FlowProducerOptions::new().connection(connection(args)))
                .await?;
        let events = if args.load == "idle" {
            let options = QueueEventsOptions {
                connection: connection(args),
                ..QueueEventsOptions::default()
            };
            Some(QueueEvents::with_options(QUEUE, options).await?)
        } else {
            None
        };
        let redis = peers_common::connect(&args.url).await?;
        Ok(Self {
            queue,
            flows,
            events,
            redis,
            worker: None,
            ledger,
            args: args.clone(),
        })
    }

    async fn enqueue(&mut self, from: usize, count: usize) -> Result<()> {
        let last = from + count;
        for from in (from..last).step_by(BULK) {
            let jobs = from..(from + BULK).min(last);
            if self.args.shape == Shape::Single {
                let jobs = jobs.map(|job| BulkJob::new("0", payload(job))).collect();
                self.queue.add_bulk(jobs).await?;
            } else {
                let flows = jobs
                    .map(|job| flow(self.args.shape, job))
                    .collect::<Result<_>>()?;
                self.flows.add_bulk(flows).await?;
            }
        }
        Ok(())
    }

    async fn work(&mut self) -> Result<()> {
        let ledger = Arc::clone(&self.ledger);
        let handler = move |job: Job, _: CancellationToken| {
            let ledger = Arc::clone(&ledger);
            async move {
                let payload = job.data().as_str().unwrap_or_default();
                let task = job.name().parse().unwrap_or_default();
                ledger.run(payload_index(payload), task).await;
                Ok(job.data().clone())
            }
        };
        let mut options = WorkerOptions::new()
            .connection(connection(&self.args))
            .concurrency(self.args.slots);
        if self.args.tuned {
            options = options
                .lock_duration(Duration::from_secs(3))
                .stalled_interval(Duration::from_secs(1));
        }
        self.worker = Some(Worker::with_options(QUEUE, handler, options).await?);
        Ok(())
    }

    async fn completed(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.queue.get_completed_count().await?)?)
    }

    fn commits_per_job(&self) -> usize {
        self.args.shape.tasks()
    }

    async fn bytes(&mut self) -> Result<u64> {
        used_memory(&mut self.redis).await
    }

    async fn round_trip(&mut self, job: usize) -> Result<bool> {
        let added = self.queue.add("0", payload(job)).await?;
        let events = self
            .events
            .as_ref()
            .ok_or("events are for the load `idle`")?;
        while let Some(entry) = events.next_event().await {
            if matches!(&entry.event, QueueEvent::Completed { job_id, .. } if job_id == added.id())
            {
                return Ok(true);
            }
        }
        Err("the events ended".into())
    }
}
