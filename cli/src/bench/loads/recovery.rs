//! A worker process with many claims is killed: how long until another worker runs the last of its tasks again.

use std::time::Duration;

use super::{fill, in_time, stop, worker_with_ttl};
use crate::bench::{
    Bench,
    check::{self, Expected},
    clock,
    crew::{Member, Work},
    flow::{self, Latency, Shape, Witness},
    place::Place,
    row::Row,
};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let place = bench.place().await?;
    let rows = vec![recover(bench, &place).await?];
    place.leave().await?;
    Ok(rows)
}

async fn recover(bench: &Bench, place: &Place) -> anyhow::Result<Row> {
    let (held, ttl) = (bench.sizes.held, bench.sizes.ttl);
    let witness = Witness::new(Latency::Nothing);
    let workflow = flow::workflow(Shape::Chain(1), &witness)?;
    fill(place, &workflow, 0, held).await?;
    let mut victim = Member::start(
        place,
        Work {
            shape: Shape::Chain(1),
            concurrency: held,
            ttl,
            threads: bench.threads,
            hold: true,
        },
    )
    .await?;
    victim.go().await?;
    check::until(place, Duration::from_millis(10), |found| {
        found.running == held && found.ready == 0
    })
    .await?;
    let survivor = worker_with_ttl(place, &workflow, held, ttl)?;
    // The survivor is up and the claims have been extended at least once before the kill.
    tokio::time::sleep(ttl).await;
    anyhow::ensure!(
        witness.runs() == 0,
        "a claim was lost before its worker was killed"
    );
    let killed = clock::micros();
    victim.kill().await?;
    in_time(witness.until_runs(held), "not all tasks ran again").await?;
    let took = (clock::micros() - killed) as f64 / 1e6;
    check::until_completed(place, held).await?;
    stop(&survivor).await?;
    check::runs(witness.runs(), held)?;
    let expected = Expected {
        completed: held,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    let mut row = Row::new("kill -9 of a worker", "claims", held);
    row.seconds = took;
    Ok(row.figure("TTL", ttl.as_secs_f64(), "s").figure(
        "all run again after TTL and",
        took - ttl.as_secs_f64(),
        "s",
    ))
}
