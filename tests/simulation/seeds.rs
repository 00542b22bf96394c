//! The runs. Each test takes its share of the seeds, so that they run side by side.

use crate::{
    chaos::Logs,
    run::{report, run, run_all},
    scenario::{Mode, Scenario},
};

/// Seeds of each of the eight tests below; together 10 000.
const SHARE: u64 = 1250;
/// How often each fault meets each transition, at the least, in each of them: 100 times in all.
const MET: usize = 13;

fn share(mode: Mode, number: u64) {
    let from = number * SHARE;
    let coverage = run_all(mode, from..from + SHARE);
    let (kind, transition, met) = coverage.least();
    assert!(
        met >= MET,
        "{kind:?} met {transition} only {met} times in {SHARE} runs:\n{coverage}"
    );
}

#[test]
fn no_promise_breaks_under_faults_1() {
    share(Mode::Safety, 0);
}

#[test]
fn no_promise_breaks_under_faults_2() {
    share(Mode::Safety, 1);
}

#[test]
fn no_promise_breaks_under_faults_3() {
    share(Mode::Safety, 2);
}

#[test]
fn no_promise_breaks_under_faults_4() {
    share(Mode::Safety, 3);
}

#[test]
fn all_ends_in_time_after_faults_1() {
    share(Mode::Liveness, 4);
}

#[test]
fn all_ends_in_time_after_faults_2() {
    share(Mode::Liveness, 5);
}

#[test]
fn all_ends_in_time_after_faults_3() {
    share(Mode::Liveness, 6);
}

#[test]
fn all_ends_in_time_after_faults_4() {
    share(Mode::Liveness, 7);
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in 20_000..20_012 {
        for mode in [Mode::Safety, Mode::Liveness] {
            let scenario = Scenario::new(mode, seed);
            let [first, second] = [(); 2].map(|()| run(&scenario, Logs::Kept));
            let mut pairs = first.log.iter().zip(&second.log);
            assert_eq!(pairs.find(|(a, b)| a != b), None, "{scenario}");
            assert_eq!(first.log.len(), second.log.len(), "{scenario}");
            assert_eq!(first.coverage, second.coverage, "{scenario}");
        }
    }
}

#[test]
fn the_seed_that_is_asked_for() {
    let scenario: Scenario = std::env::var("SEED")
        .unwrap_or_else(|_| "liveness:1".into())
        .parse()
        .expect("SEED names a run");
    let outcome = run(&scenario, Logs::Kept);
    for line in &outcome.log {
        println!("{line}");
    }
    let right = outcome.violations.is_empty();
    assert!(right, "{}", report(&scenario, &outcome, 1));
}
