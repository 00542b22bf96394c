//! Bytes of one instance with a 100-byte input: queued, running, completed.

use redis::aio::MultiplexedConnection;
use tokio_util::sync::CancellationToken;

use super::{fill, in_time, stop, worker};
use crate::bench::{
    Bench,
    check::{self, Expected},
    flow::{self, Shape, Witness},
    place::Place,
    row::Row,
    stats::{number, section},
};

/// The setting that decides how long a value of a small hash may be.
const SETTING: &str = "hash-max-listpack-value";

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for value in [64, 256] {
        let place = bench.place().await?;
        if place.is_own() {
            configure(&place, value).await?;
            rows.push(measure(bench, &place, &format!("memory: {SETTING} {value}")).await?);
        } else if rows.is_empty() {
            // The settings of a Redis that was given are not touched.
            rows.push(measure(bench, &place, "memory").await?);
        }
        place.leave().await?;
    }
    Ok(rows)
}

async fn configure(place: &Place, value: u32) -> anyhow::Result<()> {
    for node in &place.nodes {
        redis::cmd("CONFIG")
            .arg("SET")
            .arg(SETTING)
            .arg(value)
            .exec_async(&mut node.clone())
            .await?;
    }
    Ok(())
}

async fn measure(bench: &Bench, place: &Place, name: &str) -> anyhow::Result<Row> {
    let gate = CancellationToken::new();
    let witness = Witness::holding(gate.clone());
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let count = bench.sizes.instances;
    let empty = used(place).await?;
    fill(place, &workflow, 0, count).await?;
    let queued = used(place).await?;
    let worker = worker(place, &workflow, count)?;
    in_time(witness.until_runs(count), "not all handlers began").await?;
    let running = used(place).await?;
    gate.cancel();
    check::until_completed(place, count).await?;
    stop(&worker).await?;
    let completed = used(place).await?;
    let expected = Expected {
        completed: count,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    let each = |used: f64| (used - empty) / count as f64;
    Ok(Row::new(name, "instances", count)
        .figure("queued", each(queued), "B")
        .figure("running", each(running), "B")
        .figure("completed", each(completed), "B"))
}

/// Bytes of all nodes, without the buffers of clients: these are the connections', not the instances'.
async fn used(place: &Place) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for node in &place.nodes {
        sum += used_of(&mut node.clone()).await?;
    }
    Ok(sum)
}

async fn used_of(node: &mut MultiplexedConnection) -> anyhow::Result<f64> {
    let memory = section(node, "memory").await?;
    Ok(number(&memory, "used_memory")? - number(&memory, "mem_clients_normal")?)
}
