//! The protocol as models, searched exhaustively. Small enough to be read as its specification: `tasks` is about one
//! instance and its claims, `parking` about workers that wait to be woken, `waiting` about nodes that wait for signals and
//! about pauses.
//!
//! `cargo nextest run --test model --no-capture` prints what was searched; a mutation prints how it goes wrong.

mod explore;
mod parking;
mod tasks;
mod waiting;

use explore::{Model, explore};
use parking::{Mutation as Slip, Parking, rules as parked};
use tasks::{Faults, Graph, Mutation, Tasks, rules};

fn passes<M: Model>(name: &str, model: &M) {
    let report = explore(model, None);
    println!("{name}: {} states, {} steps", report.states, report.steps);
    for rule in model.rules() {
        println!("  {}", rule.name);
    }
    if let Some(broken) = report.broken {
        panic!("{name} {broken}");
    }
}

/// A protocol with a mistake in it: the search finds the rule that it breaks, and prints how.
fn breaks<M: Model>(mistake: &str, model: &M, rule: &str) {
    let report = explore(model, Some(rule));
    let broken = report.broken.unwrap_or_else(|| {
        panic!("{mistake}: `{rule}` holds in all {} states", report.states);
    });
    println!("{mistake}, after {} states: {broken}\n", report.states);
    assert_eq!(broken.rule, rule);
    assert!(broken.length > 1, "a counterexample is a way to somewhere");
}

/// At most this much goes wrong, of each kind.
const FAULTS: Faults = Faults {
    all: 2,
    crashes: 2,
    lapses: 2,
    lost_replies: 2,
    late_calls: 2,
    retries: 1,
    releases: 1,
    timeouts: 1,
};

const CHAIN: Tasks = Tasks {
    graph: Graph::Chain { tasks: 3 },
    faults: FAULTS,
    max_crashes: 2,
    follow_ups: true,
    failing: true,
    replacing: false,
    cancelling: false,
    mutation: None,
};

const ONE_FAULT: Tasks = Tasks {
    faults: Faults { all: 1, ..FAULTS },
    ..CHAIN
};

const REPLACED: Tasks = Tasks {
    replacing: true,
    cancelling: true,
    ..CHAIN
};

#[test]
fn a_chain_of_tasks_survives_any_three_faults() {
    let faults = Faults {
        all: 3,
        lapses: 1,
        lost_replies: 1,
        late_calls: 1,
        ..FAULTS
    };
    let model = Tasks {
        faults,
        failing: false,
        ..CHAIN
    };
    passes("chain", &model);
}

#[test]
fn a_task_is_cancelled_and_replaced_at_any_time() {
    let model = Tasks {
        graph: Graph::Chain { tasks: 1 },
        ..REPLACED
    };
    passes("replacement", &model);
}

#[test]
fn a_chain_is_cancelled_and_replaced_at_any_time() {
    let faults = ONE_FAULT.faults;
    passes("replacement of a chain", &Tasks { faults, ..REPLACED });
}

#[test]
fn a_join_waits_for_all_branches() {
    let graph = Graph::Fork { need: 2 };
    passes("join of all", &Tasks { graph, ..CHAIN });
}

#[test]
fn a_join_goes_on_with_the_first_branch() {
    let graph = Graph::Fork { need: 1 };
    passes("join of the first", &Tasks { graph, ..CHAIN });
}

#[test]
fn crashes_over_the_budget_end_the_instance() {
    let model = Tasks {
        max_crashes: 1,
        cancelling: true,
        ..CHAIN
    };
    passes("crash budget", &model);
}

#[test]
fn without_the_nonce_in_the_fence_a_settlement_is_acknowledged_that_was_not_stored() {
    let model = CHAIN.with(Mutation::FenceWithoutNonce);
    breaks("fence without nonce", &model, rules::STORED_IS_STORED);
}

#[test]
fn without_the_run_in_entries_a_run_is_claimed_by_the_entry_of_another() {
    let model = REPLACED.with(Mutation::EntriesWithoutRun);
    breaks("entries without run", &model, rules::OWN_ENTRY);
}

#[test]
fn a_settlement_that_does_not_ask_for_running_is_stored_twice() {
    let model = CHAIN.with(Mutation::SettleForgetsRunning);
    breaks("settle forgets running", &model, rules::ONE_COMMIT);
}

#[test]
fn a_settlement_that_does_not_ask_for_its_run_is_stored_in_another() {
    // A claim that comes again after a replacement has its old nonce, and with it the fence that it had before.
    let model = REPLACED.with(Mutation::SettleForgetsRun);
    breaks("settle forgets the run", &model, rules::OWN_WRITE);
}

#[test]
fn a_claim_that_is_given_up_before_the_commit_is_lost_in_between() {
    let model = ONE_FAULT.with(Mutation::SettleGivesUpFirst);
    breaks("release before commit", &model, rules::ENDS);
}

#[test]
fn a_reaper_that_ignores_claim_keys_takes_live_claims() {
    let faults = Faults {
        timeouts: 0,
        ..FAULTS
    };
    let model = Tasks { faults, ..CHAIN }.with(Mutation::ReapTakesLiveClaims);
    breaks("reap live claims", &model, rules::LIVE_CLAIMS);
}

#[test]
fn a_reaper_that_lists_first_and_acts_later_undoes_a_commit() {
    let model = CHAIN.with(Mutation::ReapActsOnOldList);
    breaks("reap in two steps", &model, rules::RESULT_STAYS);
}

#[test]
fn a_release_that_counts_as_a_crash_spends_the_crash_budget() {
    let model = CHAIN.with(Mutation::ReleaseCountsAsCrash);
    breaks("release counts as crash", &model, rules::CRASH_BUDGET);
}

#[test]
fn a_join_that_counts_a_branch_twice_fires_early() {
    let graph = Graph::Fork { need: 2 };
    let model = Tasks { graph, ..CHAIN }.with(Mutation::JoinCountsRepeats);
    breaks("join counts repeats", &model, rules::JOIN_ONCE);
}

#[test]
fn a_claim_that_is_not_among_the_running_is_lost() {
    let model = ONE_FAULT.with(Mutation::ClaimForgetsTicket);
    breaks("claim forgets its ticket", &model, rules::ENDS);
}

#[test]
fn a_claim_that_does_not_count_the_attempt_repeats_a_fence() {
    let faults = Faults { all: 3, ..FAULTS };
    let model = Tasks { faults, ..CHAIN }.with(Mutation::ClaimKeepsAttempt);
    breaks("claim keeps the attempt", &model, rules::NEW_FENCES);
}

#[test]
fn a_start_that_forgets_replaced_runs_brings_one_back() {
    let model = REPLACED.with(Mutation::StartForgetsReplacedRuns);
    breaks("start forgets replaced runs", &model, rules::REPLACED_STAYS);
}

/// One worker for both lists, two for one of them.
fn parking() -> Parking {
    Parking {
        workers: vec![(0b11, 1), (0b01, 1)],
        tasks: [2, 1],
        lost_hints: 1,
        lost_replies: 1,
        polls: 1,
        leaving: 0,
        mutation: None,
    }
}

#[test]
fn parked_workers_are_woken() {
    passes("parking", &parking());
}

#[test]
fn parked_workers_with_several_slots_are_woken() {
    let model = Parking {
        workers: vec![(0b11, 2), (0b11, 1)],
        lost_hints: 0,
        lost_replies: 0,
        ..parking()
    };
    passes("parking with slots", &model);
}

#[test]
fn three_workers_wake_each_other() {
    let model = Parking {
        workers: vec![(0b11, 1), (0b01, 1), (0b10, 1)],
        tasks: [1, 1],
        lost_hints: 0,
        lost_replies: 0,
        ..parking()
    };
    passes("parking of three", &model);
}

#[test]
fn a_worker_that_leaves_gives_up_its_place() {
    let model = Parking {
        leaving: 1,
        lost_replies: 0,
        ..parking()
    };
    passes("leaving", &model);
}

#[test]
fn a_worker_that_parks_without_looking_again_is_not_woken() {
    let model = parking().with(Slip::ParksWithoutLooking);
    breaks("park in two steps", &model, parked::NO_LOST_WAKE_UP);
}

#[test]
fn a_claim_that_wakes_nobody_for_what_it_leaves_lets_it_lie() {
    let model = parking().with(Slip::LeavesTheRest);
    breaks("claim leaves the rest", &model, parked::NO_LOST_WAKE_UP);
}

#[test]
fn a_claim_that_forgets_the_lists_it_did_not_look_into_lets_them_lie() {
    let model = parking().with(Slip::LeavesOtherLists);
    breaks("claim leaves other lists", &model, parked::NO_LOST_WAKE_UP);
}

#[test]
fn a_busy_worker_that_keeps_its_hint_lets_an_entry_lie() {
    let workers = vec![(0b11, 1), (0b11, 1)];
    let model = Parking {
        workers,
        ..parking()
    }
    .with(Slip::BusyWorkerKeepsHint);
    breaks(
        "busy worker keeps its hint",
        &model,
        parked::NO_LOST_WAKE_UP,
    );
}

#[test]
fn a_worker_that_forgets_hints_during_a_claim_lets_an_entry_lie() {
    let model = parking().with(Slip::ReplyForgetsHint);
    breaks("reply forgets the hint", &model, parked::NO_LOST_WAKE_UP);
}

#[test]
fn a_worker_that_leaves_while_parked_takes_a_hint_with_it() {
    let workers = vec![(0b01, 1), (0b01, 1)];
    let model = Parking {
        workers,
        leaving: 1,
        ..parking()
    }
    .with(Slip::LeavesWhileParked);
    breaks("leaving while parked", &model, parked::NO_LOST_WAKE_UP);
}
