use std::{
    num::NonZeroU16,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use tenure::{
    client::{Client, ClientError, Handle, Start},
    ids::{ListName, Nonce, QueueName, WorkerId},
    reaper::Reaper,
    store::{
        ClaimRequest, ErrorKind, ErrorRecord, Event, ExtendRequest, Held, Holding, Inspect,
        Parking, Recovery, Retention, Status, Store, TaskLimits, TaskState, memory::MemoryStore,
    },
    testing::{FaultyStore, Link, Passage, Script, Transition},
    time::{Clock, Timestamp},
    worker::Worker,
    workflow::Workflow,
};
use tokio_util::sync::CancellationToken;

use tokio::time::Instant;

use crate::support::{Fault, Flaky, instance, partition, quick, task, until};

const SOON: Duration = Duration::from_secs(10);
const MILLIS: fn(u64) -> Duration = Duration::from_millis;
/// Not long enough to be taken for a step of the clock.
const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_millis(100);

fn echo() -> Workflow<u32, u32> {
    Workflow::builder("echo")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap()
}

/// A store whose time a test moves.
fn stopped_clock() -> (MemoryStore, Clock) {
    let clock = Clock::manual(Timestamp::from_millis(1_700_000_000_000));
    (MemoryStore::with_clock(clock.clone()), clock)
}

/// Claims as a worker would that dies at once: no heartbeat ever comes, and no presence is set.
async fn claim_and_die(store: &dyn Store, flow: &Workflow<u32, u32>, want: u16) -> Vec<Holding> {
    let list = ListName {
        queue: QueueName::default(),
        definition: flow.hash(),
    };
    let request = ClaimRequest {
        partition: partition(),
        worker: WorkerId::new("dead").unwrap(),
        nonce: Nonce::random(),
        want,
        lists: vec![list],
        ttl: TTL,
        limits: TaskLimits::new().into(),
        parking: Parking::Never,
    };
    let reply = store.claim(request).await.unwrap();
    let holding = |claimed: tenure::store::Claimed| Holding {
        ticket: claimed.ticket,
        run: claimed.run,
        record: claimed.record,
    };
    reply.claims.into_iter().map(holding).collect()
}

fn after(clock: &Clock, duration: Duration) {
    clock.step(i64::try_from(duration.as_millis()).unwrap());
}

async fn state(handle: &Handle<u32>) -> (TaskState, u32, u32) {
    let record = handle
        .snapshot()
        .await
        .unwrap()
        .tasks
        .remove(&task("a"))
        .unwrap();
    (record.state, record.failures, record.crashes)
}

// R01 R10 R15 R16
#[tokio::test]
async fn a_task_whose_worker_crashed_is_ready_again_and_the_worker_is_named() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let handle = Client::new(store.clone())
        .start(&flow, 1)
        .id("i")
        .await
        .unwrap();
    assert_eq!(claim_and_die(&store, &flow, 1).await.len(), 1);
    let reaper = Reaper::builder(store.clone()).build().unwrap();
    assert_eq!(
        reaper.tick().await.unwrap(),
        Default::default(),
        "it holds still"
    );
    after(&clock, TTL + MILLIS(1));
    let report = reaper.tick().await.unwrap();
    assert_eq!(
        (report.requeued(), report.failed(), report.lost()),
        (1, 0, 0)
    );
    let lost: Vec<_> = report.lost_workers().into_iter().collect();
    assert_eq!(lost, [WorkerId::new("dead").unwrap()]);
    assert_eq!(report.recovered[0].id, instance("i"));
    assert_eq!(
        report.recovered[0].recovery,
        Recovery::Requeued { crashes: 1 }
    );
    assert_eq!(state(&handle).await, (TaskState::Ready, 0, 1));
    assert_eq!(
        store.claim_key(&instance("i"), &task("a")).await.unwrap(),
        None
    );
}

// R02 R09 R11
#[tokio::test]
async fn what_is_not_claimed_or_still_held_is_never_touched() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let client = Client::new(store.clone());
    let held = client.start(&flow, 1).await.unwrap();
    let holding = claim_and_die(&store, &flow, 1).await;
    let ready = client.start(&flow, 2).await.unwrap();
    let delayed = client.start(&flow, 3).delay(SOON).await.unwrap();
    let reaper = Reaper::builder(store.clone()).build().unwrap();
    for _ in 0..5 {
        after(&clock, TTL / 2);
        let request = ExtendRequest {
            partition: partition(),
            worker: WorkerId::new("dead").unwrap(),
            ttl: TTL,
            items: holding.clone(),
        };
        assert_eq!(store.extend(request).await.unwrap(), [Held::Ok]);
        assert!(reaper.tick().await.unwrap().recovered.is_empty());
    }
    assert_eq!(state(&held).await, (TaskState::Running, 0, 0));
    assert_eq!(state(&ready).await, (TaskState::Ready, 0, 0));
    assert_eq!(state(&delayed).await, (TaskState::Delayed, 0, 0));
}

// R12 R13 R14 R17 R18 case 74
#[tokio::test]
async fn one_crash_too_many_fails_the_instance_and_closes_its_tasks() {
    let (store, clock) = stopped_clock();
    let flow = Workflow::builder("fork")
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .fork(|f| {
            f.branch(|b| b.task("b", |n: u32| async move { anyhow::Ok(n) }))
                .branch(|b| b.task("c", |n: u32| async move { anyhow::Ok(n) }))
        })
        .join("d", |(b, c): (u32, u32)| async move { anyhow::Ok(b + c) })
        .build()
        .unwrap();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 1).id("i").max_crashes(1).await.unwrap();
    let mut worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .unwrap();
    worker.run_once().await.unwrap().expect("the first task");
    let mut events = store.events().await.unwrap();
    let reaper = Reaper::builder(store.clone()).build().unwrap();
    claim_and_die(&store, &flow, 1).await;
    after(&clock, SECOND);
    assert_eq!(reaper.tick().await.unwrap().requeued(), 1);
    claim_and_die(&store, &flow, 1).await;
    after(&clock, SECOND);
    assert_eq!(reaper.tick().await.unwrap().failed(), 1);

    let snapshot = handle.snapshot().await.unwrap();
    assert_eq!(snapshot.header.status, Status::Failed);
    let open = snapshot
        .tasks
        .values()
        .filter(|t| t.state.is_open())
        .count();
    assert_eq!(open, 0, "{:?}", snapshot.tasks);
    match handle.result_within(SOON).await.unwrap_err() {
        ClientError::Failed { error, .. } => {
            assert_eq!(error.message, ErrorRecord::LEASE_EXPIRED);
            assert_eq!(error.message, "worker lease expired");
            assert_eq!(error.kind, ErrorKind::Crash);
        }
        other => panic!("{other}"),
    }
    let Some(Event::Changed(event)) = events.next().await else {
        panic!("an event");
    };
    assert_eq!(
        (event.from, event.to),
        (Some(Status::Running), Status::Failed)
    );
    assert_eq!(event.error.as_deref(), Some("worker lease expired"));
}

// R19: whoever comes second finds nothing.
#[tokio::test]
async fn two_reapers_never_recover_one_claim_twice() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let client = Client::new(store.clone());
    for answer in client.start_many(&flow, (0..50).map(Start::new)).await {
        answer.unwrap();
    }
    assert_eq!(claim_and_die(&store, &flow, 50).await.len(), 50);
    after(&clock, SOON);
    let reaper = || {
        Reaper::builder(store.clone())
            .batch_size(7)
            .build()
            .unwrap()
    };
    let (one, two) = (reaper(), reaper());
    let mut recovered = Vec::new();
    loop {
        let (a, b) = tokio::join!(one.tick(), two.tick());
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(
            a.recovered.len() <= 7 && b.recovered.len() <= 7,
            "R04: a bounded batch"
        );
        let more = a.again || b.again;
        recovered.extend(a.recovered.into_iter().chain(b.recovered));
        if !more {
            break;
        }
    }
    let mut ids: Vec<_> = recovered.iter().map(|r| r.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((recovered.len(), ids.len()), (50, 50));
}

// R20
#[tokio::test]
async fn the_oldest_claim_is_recovered_first() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let client = Client::new(store.clone());
    for n in 0..3 {
        client.start(&flow, n).id(format!("i-{n}")).await.unwrap();
        claim_and_die(&store, &flow, 1).await;
        after(&clock, MILLIS(10));
    }
    after(&clock, SOON);
    let reaper = Reaper::builder(store).batch_size(1).build().unwrap();
    for n in 0..3 {
        let report = reaper.tick().await.unwrap();
        assert_eq!(report.recovered[0].id, instance(&format!("i-{n}")));
    }
}

// R04: at once while batches are full, whatever the interval.
#[tokio::test]
async fn a_mass_failure_is_recovered_without_waiting_between_batches() {
    let store = MemoryStore::new();
    let flow = echo();
    let client = Client::new(store.clone());
    client.start_many(&flow, (0..100).map(Start::new)).await;
    assert_eq!(claim_and_die(&store, &flow, 100).await.len(), 100);
    tokio::time::sleep(TTL * 2).await;
    let interval = MILLIS(200);
    let reaper = Reaper::builder(store.clone())
        .batch_size(5)
        .interval(interval);
    let (reaper, token) = (reaper.build().unwrap(), CancellationToken::new());
    let begin = Instant::now();
    let stop = token.clone();
    let run = tokio::spawn(async move { reaper.run(stop).await });
    until("all are recovered", async || {
        store.counts(partition()).await.unwrap().running == 0
    })
    .await;
    let took = begin.elapsed();
    assert!(
        took >= interval,
        "R05: the first interval passes without a round"
    );
    assert!(took < interval * 5, "twenty rounds took {took:?}");
    token.cancel();
    run.await.unwrap();
}

// R06
#[tokio::test]
async fn a_reaper_ends_with_its_token_even_if_it_was_cancelled_before() {
    let store = Flaky::new(MemoryStore::new());
    let token = CancellationToken::new();
    token.cancel();
    let reaper = Reaper::builder(store.clone())
        .interval(MILLIS(10))
        .build()
        .unwrap();
    tokio::time::timeout(SOON, reaper.run(token))
        .await
        .expect("it ends at once");
    assert_eq!(store.calls("tick"), 0);
}

// R07 R08: and nothing is reaped before heartbeats could come again.
#[tokio::test]
async fn a_store_error_pauses_a_reaper_and_does_not_end_it() {
    let store = Flaky::new(MemoryStore::new());
    let flow = echo();
    Client::new(store.clone()).start(&flow, 1).await.unwrap();
    claim_and_die(&store, &flow, 1).await;
    tokio::time::sleep(TTL * 2).await;
    store.fail("tick", Fault::Refuse, 2);
    let pause = MILLIS(100);
    let reaper = Reaper::builder(store.clone())
        .interval(MILLIS(10))
        .outage_pause(pause);
    let reaper = reaper.build().unwrap();
    reaper.tick().await.expect_err("the store is away");
    let begin = Instant::now();
    let token = CancellationToken::new();
    let run = tokio::spawn({
        let token = token.clone();
        async move { reaper.run(token).await }
    });
    until("it is recovered after all", async || {
        store.counts(partition()).await.unwrap().running == 0
    })
    .await;
    assert!(begin.elapsed() >= pause, "{:?}", begin.elapsed());
    token.cancel();
    run.await.unwrap();
}

// case 57: an outage that is longer than the pause is still followed by the pause.
#[tokio::test]
async fn the_pause_after_an_outage_begins_when_the_store_answers_again() {
    let store = Flaky::new(MemoryStore::new());
    let flow = echo();
    Client::new(store.clone()).start(&flow, 1).await.unwrap();
    claim_and_die(&store, &flow, 1).await;
    let pause = MILLIS(100);
    let reaper = Reaper::builder(store.clone()).outage_pause(pause);
    let reaper = reaper.build().unwrap();
    store.fail("tick", Fault::Refuse, 1);
    reaper.tick().await.expect_err("the store is away");
    tokio::time::sleep(TTL.max(pause) * 2).await;
    let back = Instant::now();
    let report = reaper.tick().await.expect("it is back");
    assert_eq!(report.recovered, [], "no heartbeat could come yet");
    until("it is recovered after all", async || {
        reaper.tick().await.unwrap().requeued() == 1
    })
    .await;
    assert!(back.elapsed() >= pause, "{:?}", back.elapsed());
}

// R21 case 8 case 11: a worker that dies is made up for by one that lives, in milliseconds, and costs no attempt.
#[tokio::test]
async fn a_living_worker_recovers_what_a_dead_one_held() {
    let store = MemoryStore::new();
    let flow = echo();
    let handle = Client::new(store.clone()).start(&flow, 9).await.unwrap();
    claim_and_die(&store, &flow, 1).await;
    let begin = Instant::now();
    let worker = quick(store).claim_ttl(TTL).workflow(&flow).build().unwrap();
    let _worker = worker.spawn();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 9);
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let record = handle
        .snapshot()
        .await
        .unwrap()
        .tasks
        .remove(&task("a"))
        .unwrap();
    assert_eq!((record.attempt, record.failures, record.crashes), (2, 0, 1));
}

// case 6
#[tokio::test]
async fn a_worker_without_the_definition_recovers_the_task_for_others() {
    let store = MemoryStore::new();
    let (known, foreign) = (
        echo(),
        Workflow::builder("foreign")
            .task("a", |n: u32| async move { anyhow::Ok(n) })
            .task("b", |n: u32| async move { anyhow::Ok(n) })
            .build()
            .unwrap(),
    );
    let handle = Client::new(store.clone()).start(&foreign, 9).await.unwrap();
    claim_and_die(&store, &foreign, 1).await;
    let _worker = quick(store)
        .claim_ttl(TTL)
        .workflow(&known)
        .build()
        .unwrap()
        .spawn();
    until("it is ready again", async || {
        state(&handle).await == (TaskState::Ready, 0, 1)
    })
    .await;
    assert_eq!(handle.status().await.unwrap(), Status::Running);
}

// case 35: old instances are removed, in the end.
#[tokio::test]
async fn finished_instances_are_removed_after_their_retention() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let client = Client::new(store.clone());
    let handle = client.start(&flow, 1).id("i").await.unwrap();
    let mut worker = Worker::builder(store.clone())
        .workflow(&flow)
        .build()
        .unwrap();
    worker.run_once().await.unwrap().expect("the task");
    let retention = Retention {
        completed: Duration::ZERO,
        ..Retention::default()
    };
    let reaper = Reaper::builder(store)
        .retention(retention)
        .outage_pause(Duration::ZERO);
    let reaper = reaper.build().unwrap();
    after(&clock, Retention::LEAST / 2);
    assert_eq!(
        reaper.tick().await.unwrap().pruned,
        0,
        "answers are kept for two minutes"
    );
    assert_eq!(handle.status().await.unwrap(), Status::Completed);
    after(&clock, Retention::LEAST);
    reaper.tick().await.unwrap();
    let mut pruned = 0;
    while pruned == 0 {
        // The first look finds that the clock moved.
        pruned += reaper.tick().await.unwrap().pruned;
    }
    assert_eq!(pruned, 1);
    let error = handle.status().await.unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");
}

// case 57: a step of the store's clock reaps and prunes nothing that lives.
#[tokio::test]
async fn a_clock_that_jumps_ahead_costs_no_living_worker_its_tasks() {
    let (store, clock) = stopped_clock();
    let flow = echo();
    let handle = Client::new(store.clone()).start(&flow, 1).await.unwrap();
    claim_and_die(&store, &flow, 1).await;
    let reaper = Reaper::builder(store.clone())
        .outage_pause(SOON)
        .build()
        .unwrap();
    reaper.tick().await.unwrap();
    after(&clock, Duration::from_secs(3600));
    for _ in 0..3 {
        assert!(reaper.tick().await.unwrap().recovered.is_empty());
    }
    assert_eq!(state(&handle).await, (TaskState::Running, 0, 0));
}

/// A line on which each tick takes so many milliseconds until it is carried out.
#[derive(Debug, Default)]
struct SlowTicks(AtomicU64);

impl Script for SlowTicks {
    fn passage(&self, transition: Transition) -> Passage {
        let slow = MILLIS(self.0.load(Ordering::SeqCst));
        Passage {
            there: if transition == Transition::Tick {
                slow
            } else {
                Duration::ZERO
            },
            ..Passage::default()
        }
    }
}

// A slow call is no step of the clock: nothing pauses because of it.
#[tokio::test(start_paused = true)]
async fn a_slow_round_is_not_taken_for_a_clock_that_jumped() {
    let clock = Clock::simulated(Timestamp::from_millis(1_700_000_000_000));
    let store = MemoryStore::with_clock(clock);
    let flow = echo();
    Client::new(store.clone()).start(&flow, 1).await.unwrap();
    let line = Arc::new(SlowTicks::default());
    let reaper = Reaper::builder(FaultyStore::new(
        store.clone(),
        Link::new(Arc::clone(&line) as Arc<dyn Script>),
    ))
    .outage_pause(Duration::from_secs(3600))
    .build()
    .unwrap();
    reaper.tick().await.unwrap();
    line.0.store(4_000, Ordering::SeqCst);
    reaper.tick().await.unwrap();
    line.0.store(0, Ordering::SeqCst);
    reaper.tick().await.unwrap();
    claim_and_die(&store, &flow, 1).await;
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(reaper.tick().await.unwrap().recovered.len(), 1);
}

/// A worker on paused time, in a store of 64 partitions, that looks around every second.
fn keeping(store: &MemoryStore, flow: &Workflow<u32, u32>) -> Worker {
    Worker::builder(store.clone())
        .heartbeats_inline()
        .workflow(flow)
        .build()
        .unwrap()
}

fn many_partitions() -> MemoryStore {
    MemoryStore::builder()
        .clock(Clock::simulated(Timestamp::from_millis(1_700_000_000_000)))
        .partitions(NonZeroU16::new(64).unwrap())
        .build()
}

// Timers that came due while nobody kept them wait for no rotation.
#[tokio::test(start_paused = true)]
async fn a_worker_that_starts_promotes_what_is_due_in_all_partitions_at_once() {
    let store = many_partitions();
    let flow = echo();
    let client = Client::new(store.clone());
    let mut handles = Vec::new();
    for number in 0..200 {
        let start = client.start(&flow, number).delay(SECOND);
        handles.push(start.await.unwrap());
    }
    tokio::time::sleep(2 * SECOND).await;
    let worker = keeping(&store, &flow).spawn();
    let begin = Instant::now();
    for handle in handles {
        handle.result_within(SOON).await.unwrap();
    }
    assert!(begin.elapsed() < 2 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(worker.health().keeper_of, 64);
}

#[tokio::test(start_paused = true)]
async fn many_partitions_of_a_keeper_that_died_are_taken_over_soon() {
    let store = many_partitions();
    let flow = echo();
    let first = tokio::spawn(keeping(&store, &flow).run(CancellationToken::new()));
    tokio::time::sleep(SOON).await;
    let second = keeping(&store, &flow).spawn();
    tokio::time::sleep(SECOND).await;
    assert_eq!(second.health().keeper_of, 0);
    first.abort();
    // What the dead one's role lasts, and one rotation.
    tokio::time::sleep(Duration::from_secs(15 + 2 * 16 + 4)).await;
    assert_eq!(second.health().keeper_of, 64);
}
