//! Instances of one task: started in bulk and drained, then both at a steady rate.

use std::time::Duration;

use anyhow::Context;
use tenure::Client;
use tokio::{task::JoinSet, time::Instant};

use super::{Flow, SLOTS, id, in_time, shape_on_new_place, stop, worker};
use crate::bench::{
    Bench,
    check::{self, Expected},
    clock,
    flow::{self, Latency, Payload, Shape, Witness},
    place::Place,
    row::Row,
};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let shape = Shape::Chain(1);
    let mut rows: Vec<Row> = shape_on_new_place(bench, shape, "single", bench.sizes.tasks)
        .await?
        .into();
    let place = bench.place().await?;
    rows.push(open_loop(bench, &place).await?);
    place.leave().await?;
    Ok(rows)
}

/// Starts come at their times, however long the ones before take, and a latency counts from the moment at which its start
/// was to be sent: what waits is counted as waiting.
async fn open_loop(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let witness = Witness::new(Latency::UntilFirst);
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let rate = bench.sizes.rate;
    let count = (bench.sizes.window.as_secs() * rate).min(bench.sizes.tasks.max(rate));
    let worker = worker(place, &workflow, SLOTS)?;
    let references = [bench.reference(place).await?];
    let before = place.meter.mark().await?;
    send(&place.client(), &workflow, count, rate).await?;
    in_time(witness.until_runs(count), "the starts were not worked off").await?;
    check::until_completed(place, count).await?;
    let spent = place.meter.mark().await?.since(&before);
    stop(&worker).await?;
    check::runs(witness.runs(), count)?;
    let expected = Expected {
        completed: count,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    let mut row = Row::new(format!("single: {rate} starts/s"), "tasks", count)
        .spent(&spent)
        .latency("due start to handler", &witness.take_latency())
        .against(&references);
    // The rate was given: it says nothing about what is possible.
    row.ratio = None;
    Ok(row)
}

/// Sends start number `n` at `n / rate` seconds, each with a call of its own.
async fn send(client: &Client, workflow: &Flow, count: u64, rate: u64) -> anyhow::Result<()> {
    let (zero, began) = (clock::micros(), Instant::now());
    let mut sent = JoinSet::new();
    for number in 0..count {
        let due = Duration::from_secs_f64(number as f64 / rate as f64);
        tokio::time::sleep_until(began + due).await;
        let payload = Payload::at(zero + u64::try_from(due.as_micros())?);
        let (client, workflow) = (client.clone(), workflow.clone());
        sent.spawn(async move {
            client
                .start(&workflow, payload)
                .instance(id(number)?)
                .await
                .context("an instance could not be started")
                .map(drop)
        });
        while let Some(joined) = sent.try_join_next() {
            joined??;
        }
    }
    while let Some(joined) = sent.join_next().await {
        joined??;
    }
    Ok(())
}
