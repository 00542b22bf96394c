//! What durability costs: the same load without an append-only file, with one that is synced once a second, and with one
//! that is synced before each answer.

use super::start_and_drain;
use crate::bench::{Bench, flow::Shape, place::Place, row::Row, server::Persistence};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for (name, persistence) in [
        ("no AOF", Persistence::None),
        ("everysec", Persistence::EverySecond),
        ("always", Persistence::Always),
    ] {
        let place = Place::own(persistence).await?;
        let shape = Shape::Chain(1);
        let [_, mut drain] = start_and_drain(&place, bench, shape, bench.sizes.tasks).await?;
        drain.load = format!("AOF: {name}");
        rows.push(drain);
    }
    if let [_, everysec, always] = &mut rows[..] {
        let quotient = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
        let figures = [
            ("against everysec", quotient(always.rate, everysec.rate)),
            (
                "raw against everysec",
                quotient(always.reference, everysec.reference),
            ),
        ];
        for (name, value) in figures {
            if let Some(value) = value {
                *always = always.clone().figure(name, value, "");
            }
        }
    }
    Ok(rows)
}
