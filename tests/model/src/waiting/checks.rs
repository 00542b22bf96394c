//! What is searched, and the mistakes that are found.

use super::{Faults, Mutation, Shape, Timeout, Waiting, rules};
use crate::{breaks, passes};

const BESIDE: Waiting = Waiting {
    shape: Shape::Beside,
    timeout: Timeout::Never,
    faults: Faults {
        crashes: 1,
        lapses: 1,
        lost_replies: 2,
        late_calls: 1,
        twins: 1,
        pauses: 1,
        cancels: 1,
    },
    all: 2,
    mutation: None,
};

const TIMED: Waiting = Waiting {
    shape: Shape::One,
    timeout: Timeout::GoesOn,
    ..BESIDE
};

#[test]
fn two_nodes_wait_for_the_same_signal() {
    passes("two waits", &BESIDE);
}

#[test]
fn a_wait_is_reached_from_another() {
    let model = Waiting {
        shape: Shape::Behind,
        timeout: Timeout::GoesOn,
        ..BESIDE
    };
    passes("a wait behind a wait", &model);
}

#[test]
fn a_signal_races_with_the_timer_of_its_wait() {
    let faults = Faults {
        twins: 2,
        pauses: 2,
        ..BESIDE.faults
    };
    let all = 3;
    passes(
        "a timed wait",
        &Waiting {
            faults,
            all,
            ..TIMED
        },
    );
}

#[test]
fn a_wait_that_takes_too_long_ends_the_instance() {
    let timeout = Timeout::Fails;
    passes("a failing wait", &Waiting { timeout, ..TIMED });
}

#[test]
fn two_timed_nodes_wait_for_the_same_signal() {
    let timeout = Timeout::GoesOn;
    let all = 1;
    let model = Waiting {
        timeout,
        all,
        ..BESIDE
    };
    passes("two timed waits", &model);
}

#[test]
fn an_early_signal_that_stays_is_taken_twice() {
    let model = BESIDE.with(Mutation::EarlySignalStays);
    breaks("early signal stays", &model, rules::ONCE);
}

#[test]
fn an_entry_that_stands_twice_and_enters_the_wait_again_loses_a_signal() {
    let model = BESIDE.with(Mutation::EntersAgain);
    breaks("a wait is entered again", &model, rules::NOT_LOST);
}

#[test]
fn a_node_that_is_late_and_has_its_signal_loses_it() {
    let model = TIMED.with(Mutation::LateForgetsSignal);
    breaks("late forgets the signal", &model, rules::NOT_LOST);
}

#[test]
fn a_repeat_that_counts_again_is_two_signals() {
    let model = BESIDE.with(Mutation::RepeatCountsAgain);
    breaks("a repeat counts again", &model, rules::ONCE);
}

#[test]
fn a_signal_for_the_newest_wait_passes_the_older_one_by() {
    let model = BESIDE.with(Mutation::NewestWaitFirst);
    breaks("newest wait first", &model, rules::FIRST_COME);
}

#[test]
fn a_timer_that_leaves_its_wait_gives_a_signal_to_nobody() {
    let model = TIMED.with(Mutation::TimerLeavesWait);
    breaks("timer leaves its wait", &model, rules::NOT_LOST);
}

#[test]
fn a_claim_that_does_not_ask_starts_tasks_of_a_paused_instance() {
    let model = BESIDE.with(Mutation::PauseIgnored);
    breaks("pause is ignored", &model, rules::PAUSED);
}

#[test]
fn a_resume_that_forgets_a_ticket_leaves_its_node_behind() {
    let model = BESIDE.with(Mutation::ResumeForgetsTicket);
    breaks("resume forgets a ticket", &model, rules::WAY_ON);
}
