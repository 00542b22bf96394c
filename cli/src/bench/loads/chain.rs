//! Chains: tasks that follow each other.

use super::shape_on_new_place;
use crate::bench::{Bench, flow::Shape, row::Row};

const LENGTHS: [u32; 3] = [3, 9, 40];

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for length in LENGTHS {
        let instances = bench.sizes.tasks / u64::from(length);
        let name = format!("chain of {length}");
        rows.extend(shape_on_new_place(bench, Shape::Chain(length), &name, instances).await?);
    }
    // Starting is the same for all of them; the first says what it costs.
    Ok(first_start_and_all_drains(rows))
}

/// Of rows that come in pairs, start and drain: the first start, and every drain.
pub(super) fn first_start_and_all_drains(rows: Vec<Row>) -> Vec<Row> {
    let wanted = |at: usize| at == 0 || at % 2 == 1;
    rows.into_iter()
        .enumerate()
        .filter(|(at, _)| wanted(*at))
        .map(|(_, row)| row)
        .collect()
}
