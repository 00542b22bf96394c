//! A worker with nothing else to do: how soon it begins, how soon the caller has the result, how soon a cancellation is
//! heard, and what it asks Redis meanwhile.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use tenure::{TaskContext, TaskError, Workflow};

use super::{Flow, SLOTS, fill, id, in_time, stop, worker};
use crate::bench::{
    Bench,
    check::{self, Expected},
    clock,
    flow::{self, Latency, Payload, Shape, Witness},
    measure::histogram,
    place::Place,
    row::Row,
};

/// Between two starts: long enough for the worker to have parked again.
const PAUSE: Duration = Duration::from_millis(4);
/// Samples that are thrown away.
const WARM_UP: u64 = 20;

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let place = bench.place().await?;
    let mut rows = starts(bench, &place).await?;
    place.leave().await?;
    let place = bench.place().await?;
    rows.push(signals(bench, &place).await?);
    place.leave().await?;
    let place = bench.place().await?;
    rows.push(cancellations(bench, &place).await?);
    place.leave().await?;
    let place = bench.place().await?;
    rows.push(nothing(bench, &place).await?);
    place.leave().await?;
    Ok(rows)
}

/// One start after the other.
async fn starts(bench: &Bench, place: &Place) -> anyhow::Result<Vec<Row>> {
    let witness = Witness::new(Latency::UntilFirst);
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let (worker, client) = (worker(place, &workflow, SLOTS)?, place.client());
    let references = [bench.reference(place).await?];
    let (samples, mut results) = (bench.sizes.samples, histogram());
    for number in 0..WARM_UP + samples {
        if number == WARM_UP {
            witness.take_latency();
            results.reset();
        }
        tokio::time::sleep(PAUSE).await;
        let began = clock::micros();
        let handle = client
            .start(&workflow, Payload::at(began))
            .instance(id(number)?)
            .await?;
        in_time(handle.result(), "there was no result").await??;
        results.saturating_record(clock::micros() - began);
    }
    check::until_completed(place, WARM_UP + samples).await?;
    stop(&worker).await?;
    check::runs(witness.runs(), WARM_UP + samples)?;
    let expected = Expected {
        completed: WARM_UP + samples,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(vec![
        Row::new("idle: start to handler", "starts", samples)
            .latency("start to handler", &witness.take_latency())
            .against(&references),
        Row::new("idle: start to result", "starts", samples)
            .latency("start to result", &results)
            .against(&references),
    ])
}

/// Instances that wait for a signal, which is sent to one after the other.
async fn signals(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let witness = Witness::new(Latency::UntilFirst);
    let workflow = flow::behind_a_signal(&witness)?;
    let samples = (bench.sizes.samples / 5).max(10);
    let client = place.client();
    fill(place, &workflow, 0, samples).await?;
    let worker = worker(place, &workflow, SLOTS)?;
    // The worker works off the waits' beginnings first, if there is anything to do for them.
    check::until(place, PAUSE, |found| found.ready + found.running == 0).await?;
    for number in 0..samples {
        tokio::time::sleep(PAUSE).await;
        let target = id(number)?;
        client
            .signal(&target, flow::SIGNAL, &Payload::now())
            .await
            .context("a signal could not be sent")?;
        in_time(witness.until_runs(number + 1), "no handler began").await?;
    }
    check::until_completed(place, samples).await?;
    stop(&worker).await?;
    check::runs(witness.runs(), samples)?;
    let expected = Expected {
        completed: samples,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(Row::new("idle: signal to handler", "signals", samples)
        .latency("signal to handler", &witness.take_latency()))
}

/// Instances whose only task waits to be cancelled.
async fn cancellations(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let witness = Witness::new(Latency::Nothing);
    let workflow = waiting(&witness)?;
    let (worker, client) = (worker(place, &workflow, SLOTS)?, place.client());
    let samples = (bench.sizes.samples / 5).max(10);
    let mut told = histogram();
    for number in 0..samples {
        let handle = client
            .start(&workflow, Payload::now())
            .instance(id(number)?)
            .await?;
        in_time(witness.until_runs(number + 1), "no handler began").await?;
        tokio::time::sleep(PAUSE).await;
        let began = clock::micros();
        handle.cancel("", "").await?;
        let heard = async {
            while witness.ended() <= number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        in_time(heard, "a handler was not told of its cancellation").await?;
        told.saturating_record(witness.told().saturating_sub(began));
    }
    stop(&worker).await?;
    let expected = Expected {
        cancelled: samples,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(Row::new("idle: cancel to token", "cancellations", samples)
        .latency("cancel to token", &told))
}

/// A workflow whose handler waits for its cancellation and notes when it came.
fn waiting(witness: &Arc<Witness>) -> anyhow::Result<Flow> {
    let witness = Arc::clone(witness);
    let handler = move |ctx: TaskContext, payload: Payload| {
        let witness = Arc::clone(&witness);
        async move {
            witness.begun();
            ctx.cancellation().cancelled().await;
            witness.cancelled_at(clock::micros());
            Ok::<_, TaskError>(payload)
        }
    };
    Ok(Workflow::builder("waiting").task("wait", handler).build()?)
}

/// What a worker asks Redis when there is nothing to do.
async fn nothing(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let workflow = flow::workflow(Shape::Chain(1), &Witness::new(Latency::Nothing))?;
    let worker = worker(place, &workflow, SLOTS)?;
    // The first seconds are those of a worker that has just connected.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = place.meter.mark().await?;
    tokio::time::sleep(bench.sizes.window).await;
    let spent = place.meter.mark().await?.since(&before);
    stop(&worker).await?;
    check::counts(place, Expected::default()).await?;
    let row = Row::new(
        "idle: nothing to do",
        "seconds",
        spent.seconds.round() as u64,
    );
    let pings = spent.each.iter().find(|(name, _)| name == "ping");
    let calls = spent.calls + pings.map_or(0.0, |(_, calls)| *calls);
    Ok(row
        .costs(&spent)
        .figure("commands", calls / spent.seconds, "/s"))
}
