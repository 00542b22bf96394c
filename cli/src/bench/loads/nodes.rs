//! One Redis node and three, with the instances spread over partitions.

use super::start_and_drain;
use crate::bench::{Bench, flow::Shape, place::Place, row::Row};

/// Enough for each node to have some.
const PARTITIONS: u16 = 12;

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (nodes, partitions) in [(1, 1), (3, PARTITIONS)] {
        let place = if nodes == 1 {
            bench.place().await?
        } else {
            Place::cluster(nodes, partitions).await?
        };
        let shape = Shape::Chain(1);
        let [_, mut drain] = start_and_drain(&place, bench, shape, bench.sizes.tasks).await?;
        drain.load = format!("Redis nodes: {nodes}");
        let partitions = place.partitions();
        rows.push(drain.figure("partitions", partitions.into(), ""));
        place.leave().await?;
    }
    Ok(rows)
}
