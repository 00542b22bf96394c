//! Timers: how late they are while many others wait.

use std::time::Duration;

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use tenure::{Client, Start, time::Timestamp};

use super::{CALL, CALLS, Flow, SLOTS, id, in_time, stop, worker};
use crate::bench::{
    Bench,
    check::{self, Expected},
    clock,
    flow::{self, Latency, Payload, Shape, Witness},
    place::Place,
    row::Row,
};

/// Timers that only wait are due this long from now, and later.
const LATER: Duration = Duration::from_secs(3600);
/// How long after their start timers that are measured begin to be due.
const SOON: Duration = Duration::from_secs(1);
/// How many are due in a second.
const RATE: u64 = 500;

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let place = bench.place().await?;
    let rows = vec![lateness(bench, &place).await?];
    place.leave().await?;
    Ok(rows)
}

async fn lateness(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let witness = Witness::new(Latency::UntilFirst);
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let (client, waiting) = (place.client(), bench.sizes.timers);
    let references = [bench.reference(place).await?];
    let later = clock::micros() + micros(LATER);
    start(&client, &workflow, 0..waiting, |number| {
        later + number * 1000
    })
    .await?;
    let count = (RATE * bench.sizes.window.as_secs()).min(waiting);
    let worker = worker(place, &workflow, SLOTS)?;
    let soon = clock::micros() + micros(SOON);
    // Whole milliseconds, as timers are kept: less than that is nobody's fault.
    let due = |number| (soon + (number - waiting) * 1_000_000 / RATE) / 1000 * 1000;
    let before = place.meter.mark().await?;
    start(&client, &workflow, waiting..waiting + count, due).await?;
    in_time(witness.until_runs(count), "not all timers fired").await?;
    check::until_completed(place, count).await?;
    let spent = place.meter.mark().await?.since(&before);
    stop(&worker).await?;
    check::runs(witness.runs(), count)?;
    let expected = Expected {
        completed: count,
        delayed: waiting,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(Row::new("timers", "timers", count)
        .costs(&spent)
        .latency("due to handler", &witness.take_latency())
        .against(&references)
        .figure("waiting", waiting as f64, ""))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Starts instances that begin at a time, in microseconds.
async fn start(
    client: &Client,
    workflow: &Flow,
    numbers: std::ops::Range<u64>,
    due: impl Fn(u64) -> u64,
) -> anyhow::Result<()> {
    let last = numbers.end;
    let calls = numbers.step_by(CALL as usize).map(|first| {
        let items = (first..(first + CALL).min(last)).map(|number| delayed(number, due(number)));
        let items: anyhow::Result<Vec<_>> = items.collect();
        async move {
            for answer in client.start_many(workflow, items?).await {
                answer.context("a timer could not be started")?;
            }
            anyhow::Ok(())
        }
    });
    stream::iter(calls)
        .buffer_unordered(CALLS)
        .try_collect()
        .await
}

fn delayed(number: u64, due: u64) -> anyhow::Result<Start<Payload>> {
    let time = Timestamp::from_millis(i64::try_from(due / 1000)?)
        .to_datetime()
        .context("a time that can be written")?;
    Ok(Start::new(Payload::at(due)).instance(id(number)?).at(time))
}
