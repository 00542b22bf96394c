//! What it costs to keep many claims alive.

use tokio_util::sync::CancellationToken;

use super::{fill, in_time, stop, worker_with_ttl};
use crate::bench::{
    Bench,
    check::{self, Expected},
    flow::{self, Shape, Witness},
    place::Place,
    row::Row,
};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let place = bench.place().await?;
    let rows = vec![cost(bench, &place).await?];
    place.leave().await?;
    Ok(rows)
}

async fn cost(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let gate = CancellationToken::new();
    let witness = Witness::holding(gate.clone());
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    let claims = bench.sizes.claims;
    fill(place, &workflow, 0, claims).await?;
    let ttl = bench.sizes.heartbeat_ttl;
    let worker = worker_with_ttl(place, &workflow, claims, ttl)?;
    in_time(witness.until_runs(claims), "not all handlers began").await?;
    // Every claim is extended once in a third of its TTL: whole thirds see each as often.
    let third = ttl / 3;
    let thirds = bench
        .sizes
        .window
        .as_secs()
        .div_ceil(third.as_secs())
        .max(1);
    let before = place.meter.mark().await?;
    tokio::time::sleep(third * u32::try_from(thirds)?).await;
    let spent = place.meter.mark().await?.since(&before);
    let still = check::Found::now(place).await?.running;
    anyhow::ensure!(
        still == claims,
        "{claims} claims should still be held, and {still} are"
    );
    gate.cancel();
    check::until_completed(place, claims).await?;
    stop(&worker).await?;
    check::runs(witness.runs(), claims)?;
    let expected = Expected {
        completed: claims,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    let extensions = claims * thirds;
    Ok(Row::new("heartbeats", "extensions", extensions)
        .costs(&spent)
        .figure("claims", claims as f64, "")
        .figure("TTL", ttl.as_secs_f64(), "s")
        .figure("Redis busy", 100.0 * spent.redis / spent.seconds, "%")
        .figure("in scripts", 100.0 * spent.scripts / spent.seconds, "%"))
}
