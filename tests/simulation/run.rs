//! Runs a scenario, many of them, and makes small what fails.

use std::{fmt::Write, num::NonZeroU16, ops::Range, sync::Arc, time::Duration};

use tenure::{MemoryStore, testing::Seeded};
use tokio::time::{Instant, sleep};

use crate::{
    chaos::{Chaos, Logs, Time},
    coverage::Coverage,
    scenario::{Kind, Mode, Scenario},
    slips,
    world::{Tuning, World},
};

/// The fewest calls of a run.
const CALLS: usize = 200;
/// After faults end: what retries, delays, signals and slow handlers of one instance add up to at most.
const LONGEST_PATH: Duration = Duration::from_secs(40);

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) coverage: Coverage,
    pub(crate) calls: usize,
    pub(crate) log: Vec<String>,
    /// How long after the faults all had ended.
    pub(crate) healed_in: Option<Duration>,
}

/// One run, from its numbers alone.
pub(crate) fn run(scenario: &Scenario, logs: Logs) -> Outcome {
    let _seeded = Seeded::new(scenario.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(simulate(scenario, logs))
}

async fn simulate(scenario: &Scenario, logs: Logs) -> Outcome {
    let tuning = Tuning::of(scenario);
    let chaos = Arc::new(Chaos::new(
        scenario.clone(),
        tuning.ttl,
        Time::Simulated,
        logs,
    ));
    let partitions = NonZeroU16::new(if scenario.seed % 8 == 5 { 2 } else { 1 });
    let store = MemoryStore::builder()
        .clock(chaos.store_clock.clone())
        .partitions(partitions.expect("1 or 2"))
        .build();
    let world = World::new(Arc::clone(&chaos), Arc::new(store.clone()), tuning);
    world.begin();
    slips::begin(&world, store);
    let begin = Instant::now();
    while begin.elapsed() < tuning.trouble && !chaos.is_violated() {
        sleep(Duration::from_secs(2)).await;
        world.check_always().await;
    }
    let healed_in = match scenario.mode {
        Mode::Liveness if !chaos.is_violated() => heal(&world).await,
        Mode::Safety | Mode::Liveness => None,
    };
    while chaos.calls() < CALLS && !chaos.is_violated() {
        sleep(Duration::from_millis(500)).await;
    }
    world.check_always().await;
    let calls = chaos.calls();
    let (violations, coverage, log) = chaos.take();
    Outcome {
        violations,
        coverage,
        calls,
        log,
        healed_in,
    }
}

/// From now on nothing goes wrong, and all has to end in time.
pub(crate) async fn heal(world: &World) -> Option<Duration> {
    let late = world.chaos.heal();
    let bound = 6 * world.tuning.ttl + late + LONGEST_PATH;
    let begin = Instant::now();
    loop {
        sleep(Duration::from_millis(250)).await;
        let history = world.ledger.history();
        let left = world.check().finally(world.store.as_ref(), &history).await;
        let left = left.expect("a whole store");
        if left.is_empty() {
            return Some(begin.elapsed());
        }
        if begin.elapsed() > bound {
            for violation in left {
                let what = format!("{bound:?} after the last fault: {violation}");
                world.chaos.violation(what);
            }
            return None;
        }
    }
}

/// Runs all seeds of a range, and fails with the smallest run that shows what is wrong.
pub(crate) fn run_all(mode: Mode, seeds: Range<u64>) -> Coverage {
    let mut coverage = Coverage::default();
    let mut slowest = Duration::ZERO;
    let first = seeds.start;
    for seed in seeds {
        let scenario = Scenario::new(mode, seed);
        let outcome = run(&scenario, Logs::None);
        let right = outcome.violations.is_empty();
        let number = seed - first + 1;
        assert!(right, "{}", report(&scenario, &outcome, number));
        assert!(
            outcome.calls >= CALLS,
            "{scenario} made only {} calls",
            outcome.calls
        );
        coverage.add(&outcome.coverage);
        slowest = slowest.max(outcome.healed_in.unwrap_or_default());
    }
    println!("{coverage}");
    if mode == Mode::Liveness {
        println!("at the latest all had ended {slowest:?} after the last fault");
    }
    coverage
}

/// What is wrong, in the smallest run that still shows something wrong, and the command that repeats it.
pub(crate) fn report(scenario: &Scenario, outcome: &Outcome, number: u64) -> String {
    let small = shrink(scenario);
    let again = run(&small, Logs::Kept);
    let mut lines = vec![format!("found by {scenario}, run number {number}")];
    lines.extend(outcome.violations.iter().map(|v| format!("  {v}")));
    lines.push(format!("the same in {small}"));
    lines.extend_from_slice(&again.log[again.log.len().saturating_sub(200)..]);
    lines.extend(again.violations.iter().map(|v| format!("  {v}")));
    let mut text = lines.join("\n");
    write!(
        text,
        "\nrepeat it with: SEED={small} cargo test --test simulation the_seed_that_is_asked_for -- --nocapture"
    )
    .expect("text grows");
    text
}

/// Fewer kinds of faults, faults, starts and workers, as long as something is still wrong.
fn shrink(scenario: &Scenario) -> Scenario {
    let mut small = scenario.clone();
    for kind in Kind::ALL {
        take_if_wrong(&mut small, |s| s.without(kind));
    }
    for part in [2, 2, 2, 4, 4, 8, 8, 16, 64] {
        let fewer = |n: usize| n - n.div_ceil(part).min(n);
        take_if_wrong(&mut small, |s| Scenario {
            workers: fewer(s.workers).max(1),
            ..s.clone()
        });
        take_if_wrong(&mut small, |s| Scenario {
            starts: fewer(s.starts).max(1),
            ..s.clone()
        });
        take_if_wrong(&mut small, |s| Scenario {
            faults: fewer(s.faults),
            ..s.clone()
        });
    }
    small
}

fn take_if_wrong(small: &mut Scenario, change: impl Fn(&Scenario) -> Scenario) {
    let candidate = change(small);
    if candidate != *small && !run(&candidate, Logs::None).violations.is_empty() {
        *small = candidate;
    }
}
