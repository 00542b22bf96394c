//! Who is woken for what.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
    time::Duration,
};

use tenure::{Client, RedisStore, ids::InstanceId};
use tenure_test_support::RedisServer;
use tokio::time::Instant;

use crate::{
    job::{Act, Job, Kind},
    program::Setup,
    wait,
    world::World,
};

const TTL: Duration = Duration::from_secs(10);
/// A worker that is not woken looks by itself after this time.
const POLL: Duration = Duration::from_secs(5);

/// Everything that the server does from now on, by `MONITOR`.
fn monitor(server: &RedisServer) -> Arc<Mutex<Vec<String>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
    stream.write_all(b"MONITOR\r\n").expect("MONITOR");
    let lines = Arc::clone(&seen);
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).expect("the answer to MONITOR");
    std::thread::spawn(move || {
        for line in reader.lines().map_while(Result::ok) {
            lines.lock().expect("the lines").push(line);
        }
    });
    seen
}

/// The workers that were sent `ready`, in order.
fn woken(seen: &Mutex<Vec<String>>) -> Vec<String> {
    let seen = seen.lock().expect("the lines");
    let hints = seen
        .iter()
        .filter(|line| line.to_lowercase().contains("publish\"") && line.ends_with("\"ready\""));
    hints
        .filter_map(|line| Some(line.split_once(":mail:")?.1.split('"').next()?.to_owned()))
        .collect()
}

// case 58
pub(super) async fn only_a_worker_that_can_run_the_task_is_woken() {
    let world = World::new().await;
    let mut left = world.worker_of(Kind::Left, TTL).await;
    let mut right = world.worker_of(Kind::Right, TTL).await;
    let (left, right_id) = (left.up().await, right.up().await);
    wait::until("both are parked", async || {
        parked(&world, 0, &left) && parked(&world, 0, &right_id)
    })
    .await;
    let seen = monitor(&world.server);
    let begin = Instant::now();
    let handle = world.start(Kind::Right, "x", Job::default()).await;
    world.begun("x", "a", 1).await;

    assert!(begin.elapsed() < POLL / 2, "it was found by polling only");
    world.completed(&handle).await;
    let woken = woken(&seen);
    assert!(
        !woken.is_empty() && woken.iter().all(|worker| *worker == right_id),
        "woken: {woken:?}, not {left}"
    );
}

// case 58
pub(super) async fn a_busy_worker_of_two_partitions_is_still_found() {
    let server = RedisServer::start();
    RedisStore::builder(server.url())
        .partitions(2)
        .connect()
        .await
        .expect("two partitions");
    let world = World::on(server).await;
    let one = |kind| Setup {
        concurrency: 2,
        ..world.setup(&[kind], TTL)
    };
    let mut left = world.worker(&one(Kind::Left)).await;
    let mut right = world.worker(&one(Kind::Right)).await;
    let (left, right_id) = (left.up().await, right.up().await);
    let client = Client::new(world.store.clone());
    let start = |kind, id: InstanceId, job| {
        let client = client.clone();
        let workflow = world.workflow(kind);
        async move {
            client
                .start(&workflow, job)
                .instance(id)
                .await
                .expect("a start")
        }
    };
    let gate = Act::Gate(world.gate("gate"));
    let busy = start(
        Kind::Right,
        in_partition(0, "busy"),
        Job::default().act("a", gate),
    )
    .await;
    world.begun(busy.id().as_str(), "a", 1).await;
    let everywhere =
        async || (0..2).all(|p| parked(&world, p, &left) && parked(&world, p, &right_id));
    wait::until("both are parked in both partitions", everywhere).await;

    for partition in 0..2 {
        let seen = monitor(&world.server);
        let begin = Instant::now();
        let next = start(Kind::Right, in_partition(partition, "next"), Job::default()).await;
        world.begun(next.id().as_str(), "a", 1).await;
        assert!(begin.elapsed() < POLL / 2, "it was found by polling only");
        let woken = woken(&seen);
        assert!(
            woken.iter().all(|worker| *worker == right_id),
            "woken: {woken:?}, not {left}"
        );
        world.over(&next).await;
        wait::until("they are parked again", everywhere).await;
    }
    world.open("gate");
    world.over(&busy).await;
}

/// Whether a worker is parked at some list of a partition.
fn parked(world: &World, partition: u16, worker: &str) -> bool {
    let lists: Vec<String> = world.redis(&["KEYS", &format!("{{tenure:{partition}}}:idle:*")]);
    lists.iter().any(|list| {
        world
            .redis::<Option<f64>>(&["ZSCORE", list, worker])
            .is_some()
    })
}

/// An id that lives in a partition.
fn in_partition(partition: u16, prefix: &str) -> InstanceId {
    let two = std::num::NonZeroU16::new(2).expect("two");
    let ids = (0..1000).map(|i| InstanceId::new(format!("{prefix}-{i}")).expect("an id"));
    ids.into_iter()
        .find(|id| id.partition(two).to_string() == partition.to_string())
        .expect("an id in the partition")
}
