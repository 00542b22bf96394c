//! One instance and its tasks: claims, settlements, joins, recovery, cancellation and replacement, with two workers that
//! crash, pause and send again what they sent before.

mod actions;
mod canonical;
mod reaper;
pub(crate) mod rules;
mod show;
mod state;
mod store;

pub(crate) use self::state::Faults;
use self::state::{State, Ticket, Verdict};
use crate::explore::{Model, Rule};

/// What follows what, of three tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graph {
    /// One after another, so many.
    Chain { tasks: u8 },
    /// 0 and 1 side by side; 2 when so many of them have arrived.
    Fork { need: u8 },
}

/// A step of the protocol that is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    FenceWithoutNonce,
    EntriesWithoutRun,
    SettleForgetsRunning,
    SettleForgetsRun,
    SettleGivesUpFirst,
    ReapTakesLiveClaims,
    ReapActsOnOldList,
    ReleaseCountsAsCrash,
    JoinCountsRepeats,
    ClaimForgetsTicket,
    ClaimKeepsAttempt,
    StartForgetsReplacedRuns,
}

/// The model, and how much may go wrong in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tasks {
    pub(crate) graph: Graph,
    /// The most of each kind, and of all together.
    pub(crate) faults: Faults,
    pub(crate) max_crashes: u8,
    /// Whether settlements may claim their follow-up.
    pub(crate) follow_ups: bool,
    pub(crate) failing: bool,
    pub(crate) replacing: bool,
    pub(crate) cancelling: bool,
    pub(crate) mutation: Option<Mutation>,
}

impl Tasks {
    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn with(self, mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            ..self
        }
    }
}

/// What happens. Workers are named by their place, `late` calls by the claim that they are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Start {
        run: u8,
    },
    /// The start of run 1 is repeated, or was held up.
    StartLate,
    Cancel,
    Claim {
        worker: u8,
        entry: Ticket,
    },
    ClaimReplyLost {
        worker: u8,
        entry: Ticket,
    },
    /// The worker repeats the claim whose reply did not come.
    ClaimAgain {
        worker: u8,
    },
    /// ... which its store has forgotten: it takes what there is.
    ClaimAnew {
        worker: u8,
        entry: Ticket,
    },
    ClaimLate {
        claim: u8,
        entry: Ticket,
    },
    Heartbeat {
        worker: u8,
    },
    HeartbeatLate {
        claim: u8,
    },
    Send {
        worker: u8,
        verdict: Verdict,
    },
    Settle {
        worker: u8,
    },
    SettleReplyLost {
        worker: u8,
    },
    SettleLate {
        claim: u8,
    },
    SendRelease {
        worker: u8,
    },
    Release {
        worker: u8,
    },
    ReleaseLate {
        claim: u8,
    },
    Crash {
        worker: u8,
    },
    ExpireKey {
        task: u8,
    },
    ExpirePresence {
        id: u8,
    },
    Look {
        ticket: Ticket,
    },
    LookOverdue {
        ticket: Ticket,
    },
    List {
        ticket: Ticket,
    },
    ActOnList {
        ticket: Ticket,
    },
    Promote {
        ticket: Ticket,
    },
}

impl Model for Tasks {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        State::nothing()
    }

    fn actions(&self, state: &State, into: &mut Vec<Action>) {
        self.offer(state, into);
    }

    fn step(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        self.take(&mut next, action);
        if self.mutation.is_none() {
            self.canonical(&mut next);
        }
        next
    }

    fn heals(&self, state: &State, action: Action) -> bool {
        match action {
            Action::Start { run } => run == 1,
            Action::Send { worker, verdict } => {
                matches!(verdict, Verdict::Complete { .. }) || self.is_overdue(state, worker)
            }
            Action::ExpireKey { task } => !self.lapses_key(state, usize::from(task)),
            Action::ExpirePresence { id } => !state.lives(id),
            Action::Claim { .. }
            | Action::ClaimAgain { .. }
            | Action::ClaimAnew { .. }
            | Action::Heartbeat { .. }
            | Action::Settle { .. }
            | Action::Release { .. }
            | Action::Look { .. }
            | Action::List { .. }
            | Action::ActOnList { .. }
            | Action::Promote { .. } => true,
            Action::StartLate
            | Action::Cancel
            | Action::ClaimReplyLost { .. }
            | Action::ClaimLate { .. }
            | Action::HeartbeatLate { .. }
            | Action::SettleReplyLost { .. }
            | Action::SettleLate { .. }
            | Action::SendRelease { .. }
            | Action::ReleaseLate { .. }
            | Action::Crash { .. }
            | Action::LookOverdue { .. } => false,
        }
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        rules::all()
    }
}
