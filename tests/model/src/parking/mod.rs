//! Workers that found too little wait at their lists until a hint wakes them. Hints can be lost, a worker can be busy or
//! leave when one comes, and between two polls nobody looks by itself.

pub(crate) mod rules;
mod state;
mod store;
mod worker;

use self::state::{LISTS, State};
use crate::explore::{Model, Rule};

/// A step of the protocol that is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// One call looks into the lists, another one parks.
    ParksWithoutLooking,
    /// What a claim leaves behind is nobody's business.
    LeavesTheRest,
    /// Of what a claim leaves behind, only lists that it looked into count.
    LeavesOtherLists,
    BusyWorkerKeepsHint,
    ReplyForgetsHint,
    LeavesWhileParked,
}

/// Who serves what, how much there is to do, and how much may go wrong.
#[derive(Debug, Clone)]
pub(crate) struct Parking {
    /// Each worker's lists (a bit for each) and slots.
    pub(crate) workers: Vec<(u8, u8)>,
    pub(crate) tasks: [u8; LISTS],
    /// How many hints are lost.
    pub(crate) lost_hints: u8,
    pub(crate) lost_replies: u8,
    /// How many polls there are that nothing calls for.
    pub(crate) polls: u8,
    /// How many workers leave.
    pub(crate) leaving: u8,
    pub(crate) mutation: Option<Mutation>,
}

impl Parking {
    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn with(self, mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            ..self
        }
    }

    fn serves(&self, worker: usize, list: usize) -> bool {
        self.workers[worker].0 & (1 << list) != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A task becomes ready.
    Arrive {
        list: usize,
    },
    Hear {
        worker: usize,
    },
    LoseHint {
        worker: usize,
    },
    /// A claim is sent, because of a hint or of what is known to stand there.
    Look {
        worker: usize,
    },
    /// ... because it is time to.
    Poll {
        worker: usize,
    },
    Execute {
        worker: usize,
    },
    Reply {
        worker: usize,
    },
    LoseReply {
        worker: usize,
    },
    Finish {
        worker: usize,
    },
    Stop {
        worker: usize,
    },
    /// The call by which a worker that stops gives up its place.
    Farewell {
        worker: usize,
    },
    Leave {
        worker: usize,
    },
    /// The keeper hints once more at a worker that was woken and did nothing.
    WakeAgain {
        worker: usize,
    },
}

impl Model for Parking {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        State::new(self)
    }

    fn actions(&self, state: &State, into: &mut Vec<Action>) {
        for list in 0..LISTS {
            if state.coming[list] > 0 {
                into.push(Action::Arrive { list });
            }
        }
        for worker in 0..self.workers.len() {
            self.offer(state, worker, into);
        }
    }

    fn step(&self, state: &State, action: Action) -> State {
        let mut s = state.clone();
        match action {
            Action::Arrive { list } => {
                s.coming[list] -= 1;
                s.ready[list] += 1;
                s.wake(list);
            }
            Action::Execute { worker } => self.execute(&mut s, worker),
            Action::WakeAgain { worker } => {
                s.woken[worker] = false;
                s.hint(worker);
            }
            Action::Hear { worker }
            | Action::LoseHint { worker }
            | Action::Look { worker }
            | Action::Poll { worker }
            | Action::Reply { worker }
            | Action::LoseReply { worker }
            | Action::Finish { worker }
            | Action::Stop { worker }
            | Action::Farewell { worker }
            | Action::Leave { worker } => self.act(&mut s, worker, action),
        }
        s
    }

    fn heals(&self, state: &State, action: Action) -> bool {
        match action {
            Action::Arrive { .. }
            | Action::LoseHint { .. }
            | Action::LoseReply { .. }
            | Action::Stop { .. } => false,
            // Where no hint was lost, nothing depends on polls.
            Action::Poll { worker } => state.lost_hints > 0 && self.finds(state, worker),
            Action::Hear { .. }
            | Action::Look { .. }
            | Action::Execute { .. }
            | Action::Reply { .. }
            | Action::Finish { .. }
            | Action::Farewell { .. }
            | Action::Leave { .. }
            | Action::WakeAgain { .. } => true,
        }
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        rules::all()
    }
}
