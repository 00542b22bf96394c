//! The same queue, drained by one, two and four worker processes with 200 slots in all.

use super::{CLAIM_TTL, SLOTS, fill};
use crate::bench::{
    Bench,
    check::{self, Expected},
    crew::{Member, Work},
    flow::{self, Latency, Shape, Witness},
    place::Place,
    row::Row,
};

pub(super) async fn run(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in [1, 2, 4] {
        let place = bench.place().await?;
        rows.push(drain_by(bench, &place, count).await?);
        place.leave().await?;
    }
    Ok(rows)
}

async fn drain_by(bench: &Bench, place: &Place, processes: u64) -> anyhow::Result<Row> {
    let (shape, tasks) = (Shape::Chain(1), bench.sizes.tasks);
    let workflow = flow::workflow(shape, &Witness::new(Latency::Nothing))?;
    let mut crew = Vec::new();
    for _ in 0..processes {
        let work = Work {
            shape,
            concurrency: SLOTS / processes,
            ttl: CLAIM_TTL,
            threads: bench.threads,
            hold: false,
        };
        crew.push(Member::start(place, work).await?);
    }
    let mut references = vec![bench.reference(place).await?];
    fill(place, &workflow, 0, tasks).await?;
    let before = place.meter.mark().await?;
    for member in &mut crew {
        member.go().await?;
    }
    check::until_completed(place, tasks).await?;
    let done = place.meter.mark().await?;
    for member in crew {
        member.stop().await?;
    }
    // The CPU time of processes is known when they have ended.
    let ended = place.meter.mark().await?;
    let mut spent = done.since(&before);
    spent.client = ended.since(&before).client;
    references.push(bench.reference(place).await?);
    let expected = Expected {
        completed: tasks,
        ..Expected::default()
    };
    check::counts(place, expected).await?;
    Ok(
        Row::new(format!("worker processes: {processes}"), "tasks", tasks)
            .spent(&spent)
            .against(&references),
    )
}
