//! Delays, keepers and deadlines.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use tenure::{
    Start,
    ids::{ListName, Partition, QueueName, WorkerId},
    store::{ErrorKind, Inspect, Retention, Status, Store, TickRequest},
};
use tokio::time::Instant;

use crate::{
    job::{Act, DELAY, Job, Kind},
    ledger::Phase,
    program::Setup,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_millis(400);

// case 10
pub(super) async fn a_delayed_task_holds_no_claim_and_runs_once() {
    let world = World::new().await;
    let setup = world.setup(&[Kind::Later], TTL);
    let mut workers: Vec<_> = (0..5).map(|_| world.spawn(&setup)).collect();
    for worker in &mut workers {
        worker.up().await;
    }
    let begin = Instant::now();
    let handle = world.start(Kind::Later, "x", Job::default()).await;
    wait::until("the delay is over", async || {
        let delayed = world
            .store
            .delayed(Partition::default(), 10)
            .await
            .expect("the timers")
            .len();
        if delayed == 1 {
            assert!(world.claim_keys().is_empty(), "a claim without a task");
        }
        delayed == 0
    })
    .await;
    assert!(begin.elapsed() >= DELAY);
    world.completed(&handle).await;
    assert_eq!(world.executions("x", "a"), 1);
}

// case 17
pub(super) async fn five_thousand_timers_and_eight_keepers_promote_each_once() {
    const TIMERS: usize = 5000;
    let world = World::new().await;
    let workflow = world.workflow(Kind::One);
    let due = Duration::from_millis(1500);
    let starts = (0..TIMERS).map(|i| Start::new(Job::default()).id(format!("x-{i}")).delay(due));
    for answer in world.client.start_many(&workflow, starts).await {
        answer.expect("a start");
    }
    let keepers = (0..8).map(|keeper| {
        let store = world.store.clone();
        tokio::spawn(async move {
            let worker = WorkerId::new(format!("keeper-{keeper}")).expect("a worker id");
            let mut promoted = 0;
            loop {
                let reply = store.tick(round(worker.clone())).await.expect("a tick");
                promoted += reply.promoted;
                if reply.next_due.is_none() && !reply.again {
                    return promoted;
                }
            }
        })
    });
    let promoted: u32 = join_all(keepers)
        .await
        .into_iter()
        .map(|keeper| keeper.expect("a keeper"))
        .sum();
    assert_eq!(promoted as usize, TIMERS);

    let list = ListName {
        queue: QueueName::default(),
        definition: workflow.graph().hash(),
    };
    let ready = world
        .store
        .ready(Partition::default(), &list, TIMERS * 2)
        .await
        .expect("the ready list");
    let ids: HashSet<_> = ready.iter().map(|ticket| ticket.id.clone()).collect();
    assert_eq!(
        (ready.len(), ids.len()),
        (TIMERS, TIMERS),
        "each stands in its list once"
    );
    let worker = world
        .worker(&Setup {
            concurrency: 100,
            ..world.setup(&[Kind::One], Duration::from_secs(10))
        })
        .await;
    wait::until("all are completed", async || {
        let counts = world
            .store
            .counts(Partition::default())
            .await
            .expect("the counts");
        counts.finished.get(&Status::Completed) == Some(&TIMERS)
    })
    .await;
    world.nothing_ran_twice();
    world.nothing_left().await;
    worker.shut_down().await;
}

fn round(worker: WorkerId) -> TickRequest {
    TickRequest {
        partition: Partition::default(),
        keeper: Some((worker, Duration::from_secs(5))),
        expected: None,
        promote: 100,
        reap: 0,
        prune: 0,
        crash_delay: Duration::from_secs(1),
        ttl: TTL,
        retention: Retention::default(),
    }
}

// case 59
pub(super) async fn busy_slots_hold_up_no_timer_and_no_deadline() {
    let world = World::new().await;
    let setup = Setup {
        concurrency: 2,
        ..world.setup(&[Kind::One, Kind::Timed], Duration::from_secs(2))
    };
    let _workers = [world.worker(&setup).await, world.worker(&setup).await];
    let busy = world
        .start_many(Kind::One, "busy", 3, 0, |_| {
            Job::default().act("a", Act::Gate(world.gate("gate")))
        })
        .await;
    wait::until("three slots are busy", async || {
        world.ledger.count(Phase::Begin) == 3
    })
    .await;
    // The last slot: its task goes over its time while all slots are busy.
    let timed = world
        .start(
            Kind::Timed,
            "timed",
            Job::default().act("a", Act::Gate(world.gate("never"))),
        )
        .await;
    world.begun("timed", "a", 1).await;
    let delay = Duration::from_millis(300);
    let later = world
        .client
        .start(&world.workflow(Kind::One), Job::default())
        .id("later")
        .delay(delay)
        .await
        .expect("a start");

    wait::until("the timer fires", async || {
        world.redis::<usize>(&["ZCARD", "{tenure:0}:delayed"]) == 0
    })
    .await;
    assert_eq!(world.over(&timed).await, Status::Failed);
    let errors = world.errors(timed.id()).await;
    assert!(
        errors.iter().all(|error| error.kind == ErrorKind::Timeout),
        "{errors:?}"
    );
    assert_eq!(
        world.ledger.count(Phase::End) - world.ledger.of(Phase::End, "later", "a").len(),
        0,
        "the others are busy still"
    );
    world.open("gate");
    world.all_completed(&[busy, vec![later]].concat()).await;
}
