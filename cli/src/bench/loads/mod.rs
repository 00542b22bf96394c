//! The loads, and what several of them do.

mod aof;
mod chain;
mod depth;
mod fan;
mod heartbeats;
mod idle;
mod memory;
mod nodes;
mod processes;
mod recovery;
mod single;
mod timers;

use std::{future::Future, sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use tenure::{IdPolicy, InstanceId, Start, Worker, WorkerHandle, Workflow};

use super::{
    Bench, check,
    check::Expected,
    clock,
    flow::{self, Latency, Payload, Shape, Witness},
    measure::{Spent, histogram},
    options::Load,
    place::Place,
    reference::IN_FLIGHT,
    row::Row,
};

/// Starts of one call.
const CALL: u64 = 500;
/// Calls in flight while starting in bulk.
const CALLS: usize = 4;
/// Instances that a worker process or an in-process worker runs at once, as many as the reference has in flight.
const SLOTS: u64 = IN_FLIGHT as u64;
/// The library's default.
const CLAIM_TTL: Duration = Duration::from_secs(30);

/// One round of a load.
pub(crate) async fn run(load: Load, bench: &Bench) -> anyhow::Result<Vec<Row>> {
    match load {
        Load::Single => single::run(bench).await,
        Load::Chain => chain::run(bench).await,
        Load::Fan => fan::run(bench).await,
        Load::Idle => idle::run(bench).await,
        Load::Timers => timers::run(bench).await,
        Load::Depth => depth::run(bench).await,
        Load::Memory => memory::run(bench).await,
        Load::Heartbeats => heartbeats::run(bench).await,
        Load::Recovery => recovery::run(bench).await,
        Load::Processes => processes::run(bench).await,
        Load::Aof => aof::run(bench).await,
        Load::Nodes => nodes::run(bench).await,
    }
}

type Flow = Workflow<Payload, Payload>;

/// The id of an instance: as long as ids that people choose.
fn id(number: u64) -> anyhow::Result<InstanceId> {
    Ok(InstanceId::new(format!("order-{number:07}"))?)
}

/// Starts instances `from..from + count`, 500 with a call, four calls in flight. Answers how long the calls took.
async fn fill(
    place: &Place,
    workflow: &Flow,
    from: u64,
    count: u64,
) -> anyhow::Result<Histogram<u64>> {
    let client = place.client();
    let calls = (from..from + count).step_by(CALL as usize).map(|first| {
        let (client, workflow) = (client.clone(), workflow.clone());
        let last = (first + CALL).min(from + count);
        tokio::spawn(async move { fill_call(&client, &workflow, first..last).await })
    });
    let took: Vec<u64> = stream::iter(calls)
        .buffer_unordered(CALLS)
        .map(|joined| joined.context("a start panicked")?)
        .try_collect()
        .await?;
    let mut latency = histogram();
    for micros in took {
        latency.saturating_record(micros);
    }
    Ok(latency)
}

async fn fill_call(
    client: &tenure::Client,
    workflow: &Flow,
    numbers: std::ops::Range<u64>,
) -> anyhow::Result<u64> {
    let began = clock::micros();
    let items: Vec<Start<Payload>> = numbers
        .map(|number| {
            Ok(Start::new(Payload::now())
                .instance(id(number)?)
                .if_exists(IdPolicy::Fail))
        })
        .collect::<anyhow::Result<_>>()?;
    for answer in client.start_many(workflow, items).await {
        answer.context("an instance could not be started")?;
    }
    Ok(clock::micros() - began)
}

/// A worker in this process.
fn worker(place: &Place, workflow: &Flow, slots: u64) -> anyhow::Result<WorkerHandle> {
    worker_with_ttl(place, workflow, slots, CLAIM_TTL)
}

/// A worker in this process whose claims hold as long as this.
fn worker_with_ttl(
    place: &Place,
    workflow: &Flow,
    slots: u64,
    ttl: Duration,
) -> anyhow::Result<WorkerHandle> {
    Ok(Worker::builder(place.store.clone())
        .workflow(workflow)
        .concurrency(usize::try_from(slots)?)
        .claim_ttl(ttl)
        .build()?
        .spawn())
}

/// Shuts a worker down and waits for its end.
async fn stop(worker: &WorkerHandle) -> anyhow::Result<()> {
    worker.shutdown();
    worker.join().await?;
    Ok(())
}

/// What a drain did.
struct Drained {
    spent: Spent,
    latency: Histogram<u64>,
}

/// Drains all of `instances` with a new worker in this process.
async fn drain(
    place: &Place,
    workflow: &Flow,
    witness: &Arc<Witness>,
    instances: u64,
) -> anyhow::Result<Drained> {
    let before = place.meter.mark().await?;
    let worker = worker(place, workflow, SLOTS)?;
    // The handlers say when it is time to look, so that looking costs Redis nothing before.
    let ended = async {
        while witness.ended() < instances {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    in_time(ended, "the instances did not end").await?;
    check::until_completed(place, instances).await?;
    let spent = place.meter.mark().await?.since(&before);
    stop(&worker).await?;
    Ok(Drained {
        spent,
        latency: witness.take_latency(),
    })
}

/// Waits, but not for ever.
async fn in_time<T>(work: impl Future<Output = T>, what: &'static str) -> anyhow::Result<T> {
    const PATIENCE: Duration = Duration::from_secs(600);
    tokio::time::timeout(PATIENCE, work).await.context(what)
}

/// Instances of one form: started in bulk, then drained. Two rows.
async fn start_and_drain(
    place: &Place,
    bench: &Bench,
    shape: Shape,
    instances: u64,
) -> anyhow::Result<[Row; 2]> {
    let kind = match shape {
        Shape::Chain(0 | 1) => Latency::Nothing,
        Shape::Chain(_) | Shape::Fan(_) => Latency::FirstToLast,
    };
    let witness = Witness::new(kind);
    let workflow = flow::workflow(shape, &witness)?;
    let mut references = vec![bench.reference(place).await?];
    let before = place.meter.mark().await?;
    let calls = fill(place, &workflow, 0, instances).await?;
    let filled = place.meter.mark().await?.since(&before);
    let drained = drain(place, &workflow, &witness, instances).await?;
    references.push(bench.reference(place).await?);
    let tasks = instances * shape.tasks();
    check::runs(witness.runs(), tasks)?;
    let expected = Expected {
        completed: instances,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok([
        Row::new("bulk start", "starts", instances)
            .spent(&filled)
            .latency("a call of 500", &calls)
            .against(&references),
        Row::new("drain", "tasks", tasks)
            .spent(&drained.spent)
            .latency("first to last task", &drained.latency)
            .against(&references),
    ])
}

/// The same on a new place, named.
async fn shape_on_new_place(
    bench: &Bench,
    shape: Shape,
    name: &str,
    instances: u64,
) -> anyhow::Result<[Row; 2]> {
    let place = bench.place().await?;
    let mut rows = start_and_drain(&place, bench, shape, instances.max(1)).await?;
    for row in &mut rows {
        row.load = format!("{name}: {}", row.load);
    }
    place.leave().await?;
    Ok(rows)
}
