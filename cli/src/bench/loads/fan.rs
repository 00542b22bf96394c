//! Forks: one task, many branches, a join.

use super::{chain::first_start_and_all_drains, shape_on_new_place};
use crate::bench::{Bench, flow::Shape, row::Row};

const WIDTHS: [u32; 2] = [10, 100];

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for width in WIDTHS {
        let shape = Shape::Fan(width);
        let instances = bench.sizes.tasks / shape.tasks();
        let name = format!("fan of {width} and join");
        rows.extend(shape_on_new_place(bench, shape, &name, instances).await?);
    }
    Ok(first_start_and_all_drains(rows))
}
