//! Redis's clock jumps.

use std::{fs::File, os::unix::fs::FileExt, path::Path, process::Command, time::Duration};

use tempfile::TempDir;
use tenure_test_support::RedisServer;

use crate::{
    job::{Act, Job, Kind},
    ledger::Phase,
    wait,
    world::{World, claim_key},
};

const TTL: Duration = Duration::from_millis(1500);
const HOUR: i64 = 3600;

/// A world whose server has a wall clock of its own.
struct Clocked {
    world: World,
    offset: File,
    _dir: TempDir,
}

impl Clocked {
    async fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let (library, path) = (dir.path().join("clock.so"), dir.path().join("offset"));
        compile(&library);
        let offset = File::create(&path).expect("a file for the clock");
        offset
            .write_all_at(&0_i64.to_ne_bytes(), 0)
            .expect("the clock can be set");
        let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
        let environment = [
            ("LD_PRELOAD", text(&library)),
            ("TENURE_TEST_CLOCK", text(&path)),
        ];
        let server =
            RedisServer::with_environment(["--save", "", "--appendonly", "no"], environment);
        Self {
            world: World::on(server).await,
            offset,
            _dir: dir,
        }
    }

    /// Sets the server's clock to so many seconds from the real one, and sees that it went there.
    fn set(&self, seconds: i64) {
        let before = self.now();
        self.offset
            .write_all_at(&(seconds * 1_000_000).to_ne_bytes(), 0)
            .expect("the clock can be set");
        let moved = self.now() - before;
        assert!(
            moved.abs() > HOUR / 2,
            "the server's clock moved by {moved} s only"
        );
    }

    /// The server's time in seconds.
    fn now(&self) -> i64 {
        let (seconds, _): (i64, i64) = self.world.redis(&["TIME"]);
        seconds
    }
}

/// Makes the library that gives a process another clock. The linker of Rust is a C compiler, so that there is one.
fn compile(library: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/clock.c");
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(library)
        .arg(source)
        .status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "`cc` cannot compile {source}"
    );
}

// case 57
pub(super) async fn a_clock_that_jumps_an_hour_disturbs_no_healthy_task() {
    const TASKS: usize = 10;
    let clocked = Clocked::new().await;
    let world = &clocked.world;
    let workers = [
        world.worker_of(Kind::Once, TTL).await,
        world.worker_of(Kind::Once, TTL).await,
    ];
    let old = world.start(Kind::Once, "old", Job::default()).await;
    world.completed(&old).await;
    let wait_at = |gate: &str| Job::default().act("a", Act::Gate(world.gate(gate)));
    let first = world
        .start_many(Kind::Once, "first", TASKS / 2, 0, |_| wait_at("first"))
        .await;
    let second = world
        .start_many(Kind::Once, "second", TASKS / 2, 0, |_| wait_at("second"))
        .await;
    wait::until("all have begun", async || {
        world.ledger.count(Phase::Begin) == TASKS + 1
    })
    .await;

    clocked.set(HOUR);
    tokio::time::sleep(TTL * 2).await;
    world.open("first");
    world.all_over(&first).await;
    clocked.set(0);
    wait::until("no claim lives for longer than its TTL", async || {
        let keys = world.claim_keys();
        keys.len() == second.len()
            && keys
                .iter()
                .all(|key| world.redis::<i64>(&["PTTL", key]) <= 2000)
    })
    .await;
    tokio::time::sleep(TTL * 2).await;
    world.open("second");

    world
        .all_completed(&[vec![old], first, second].concat())
        .await;
    world.nothing_ran_twice();
    assert_eq!(
        world.ledger.count(Phase::Drop),
        0,
        "a handler was interrupted"
    );
    for worker in workers {
        worker.shut_down().await;
    }
}

// case 57
pub(super) async fn a_claim_of_a_dead_worker_does_not_live_for_the_hour_that_the_clock_went_back() {
    let clocked = Clocked::new().await;
    let world = &clocked.world;
    clocked.set(HOUR);
    let mut first = world.worker_of(Kind::One, TTL).await;
    let _second = world.worker(&world.setup(&[Kind::Other], TTL)).await;
    let handle = world
        .start(
            Kind::One,
            "x",
            Job::default().act_until(1, "a", Act::Gate(world.gate("never"))),
        )
        .await;
    world.begun("x", "a", 1).await;
    first.kill();
    clocked.set(0);
    let left: i64 = world.redis(&["PTTL", &claim_key("x", "a")]);
    assert!(
        left > 3_000_000,
        "the key was meant to live for an hour now, not for {left} ms"
    );

    let _third = world.worker_of(Kind::One, TTL).await;
    world.begun("x", "a", 2).await;
    world.completed(&handle).await;
}
