//! Draining from queues of different lengths: a long one must not be slower.

use std::time::Duration;

use super::{SLOTS, fill, in_time, stop, worker};
use crate::bench::{
    Bench,
    check::{self, Expected, Found},
    flow::{self, Latency, Shape, Witness},
    place::Place,
    row::Row,
};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for depth in &bench.sizes.depths {
        let place = bench.place().await?;
        let mut row = at_depth(bench, &place, *depth).await?;
        if let Some((first, rate)) = rows.first().and_then(|first| Some((first, first.rate?))) {
            let name = format!("against {}", first.load);
            row = row
                .rate
                .map_or(row.clone(), |own| row.figure(name, own / rate, ""));
        }
        rows.push(row);
        place.leave().await?;
    }
    Ok(rows)
}

/// Drains a bounded number of tasks above this depth.
async fn at_depth(bench: &Bench, place: &Place, depth: u64) -> anyhow::Result<Row> {
    let (witness, drained) = (Witness::new(Latency::Nothing), bench.sizes.drained);
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let total = depth + drained;
    fill(place, &workflow, 0, total).await?;
    let mut references = vec![bench.reference(place).await?];
    let before = place.meter.mark().await?;
    let worker = worker(place, &workflow, SLOTS)?;
    let ended = async {
        while witness.ended() < drained {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    in_time(ended, "the tasks did not end").await?;
    let count = witness.ended();
    let spent = place.meter.mark().await?.since(&before);
    stop(&worker).await?;
    references.push(bench.reference(place).await?);
    let found = Found::now(place).await?;
    check::runs(witness.runs(), found.completed)?;
    let expected = Expected {
        completed: found.completed,
        ready: total - found.completed,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(Row::new(format!("depth {depth}"), "tasks", count)
        .spent(&spent)
        .against(&references))
}
