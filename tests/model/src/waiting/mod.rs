//! Nodes that wait for signals, in an instance that is paused, resumed and cancelled: a client that sends its signals in
//! order and repeats what was not answered, timers that race with them, and two workers that crash.
//!
//! Fences are the business of `tasks`: here a claim just knows whether it was taken away.

mod checks;
mod rules;
mod state;
mod store;

use self::state::{Call, ENTRIES, Entry, NODES, NodeState, SIGNALS, State, Status, WORKERS};
use crate::explore::{Model, Rule};

/// A step of the protocol that is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    EarlySignalStays,
    EntersAgain,
    LateForgetsSignal,
    RepeatCountsAgain,
    NewestWaitFirst,
    TimerLeavesWait,
    PauseIgnored,
    ResumeForgetsTicket,
}

/// How the two nodes stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    /// Both are entered by the start.
    Beside,
    /// The second is reached by the settlement of the first.
    Behind,
}

/// What becomes of a node whose signal does not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timeout {
    Never,
    GoesOn,
    Fails,
}

/// How much goes wrong, or was done: at most, or so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Faults {
    crashes: u8,
    /// Claims that are taken from a worker that lives.
    lapses: u8,
    lost_replies: u8,
    /// Repeats of a signal that come when it is long answered.
    late_calls: u8,
    /// Entries that stand twice.
    twins: u8,
    pauses: u8,
    cancels: u8,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    shape: Shape,
    timeout: Timeout,
    faults: Faults,
    /// At most this much of crashes, lapses, lost replies, late calls and twins together.
    all: u8,
    mutation: Option<Mutation>,
}

impl Waiting {
    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn with(self, mutation: Mutation) -> Self {
        Self {
            mutation: Some(mutation),
            ..self
        }
    }

    fn is_timed(&self) -> bool {
        self.timeout != Timeout::Never
    }

    /// Whether one more of a kind may go wrong.
    fn may(&self, s: &State, kind: fn(&Faults) -> u8) -> bool {
        let f = &s.faults;
        let all = f.crashes + f.lapses + f.lost_replies + f.late_calls + f.twins;
        all < self.all && kind(f) < kind(&self.faults)
    }

    fn offer_signals(&self, s: &State, into: &mut Vec<Action>) {
        for signal in 0..SIGNALS {
            let after = signal == 0 || s.calls[signal - 1] == Call::Answered;
            if s.calls[signal] == Call::Answered {
                if self.may(s, |f| f.late_calls) {
                    into.push(Action::SignalLate { signal });
                }
            } else if after {
                into.push(Action::Signal { signal });
                if self.may(s, |f| f.lost_replies) {
                    into.push(Action::SignalReplyLost { signal });
                }
            }
        }
    }

    fn offer_node(&self, s: &State, node: usize, into: &mut Vec<Action>) {
        let n = &s.nodes[node];
        for entry in ENTRIES {
            if n.ready[entry as usize] == 0 {
                continue;
            }
            let free = |&worker: &usize| s.workers[worker].is_none();
            let claim = |worker| Action::Claim {
                worker,
                node,
                entry,
            };
            into.extend((0..WORKERS).find(free).map(claim));
            if self.may(s, |f| f.twins) {
                into.push(Action::Twin { node, entry });
            }
        }
        if let NodeState::Running(_) = n.state {
            if !s.is_held(node) {
                into.push(Action::Reap { node });
            } else if self.may(s, |f| f.lapses) {
                into.push(Action::Lapse { node });
            }
        }
        if n.timer {
            into.push(Action::Tick { node });
        }
    }

    fn offer_worker(&self, s: &State, worker: usize, into: &mut Vec<Action>) {
        if s.workers[worker].is_none() {
            return;
        }
        into.push(Action::Settle { worker });
        if self.may(s, |f| f.lost_replies) {
            into.push(Action::SettleReplyLost { worker });
        }
        if self.may(s, |f| f.crashes) {
            into.push(Action::Crash { worker });
        }
    }

    fn offer_controls(&self, s: &State, into: &mut Vec<Action>) {
        if s.status == Status::Running && s.faults.pauses < self.faults.pauses {
            into.push(Action::Pause);
        }
        if s.status == Status::Paused || s.resuming {
            into.push(Action::Resume);
        }
        if s.is_live() && s.faults.cancels < self.faults.cancels {
            into.push(Action::Cancel);
        }
    }
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Signal {
        signal: usize,
    },
    SignalReplyLost {
        signal: usize,
    },
    SignalLate {
        signal: usize,
    },
    Claim {
        worker: usize,
        node: usize,
        entry: Entry,
    },
    Settle {
        worker: usize,
    },
    SettleReplyLost {
        worker: usize,
    },
    Crash {
        worker: usize,
    },
    /// Nobody has the claim any more.
    Reap {
        node: usize,
    },
    /// ... but somebody believes so.
    Lapse {
        node: usize,
    },
    /// The timer of a wait is due.
    Tick {
        node: usize,
    },
    /// An entry stands twice from now on.
    Twin {
        node: usize,
        entry: Entry,
    },
    Pause,
    /// Again and again, until it is done.
    Resume,
    Cancel,
}

impl Model for Waiting {
    type State = State;
    type Action = Action;

    fn start(&self) -> State {
        State::new(self.shape)
    }

    fn actions(&self, state: &State, into: &mut Vec<Action>) {
        self.offer_signals(state, into);
        for node in 0..NODES {
            self.offer_node(state, node, into);
        }
        for worker in 0..WORKERS {
            self.offer_worker(state, worker, into);
        }
        self.offer_controls(state, into);
    }

    fn step(&self, state: &State, action: Action) -> State {
        let mut next = state.clone();
        let s = &mut next;
        match action {
            Action::Signal { signal } => {
                self.signal(s, signal);
                s.calls[signal] = Call::Answered;
            }
            Action::SignalReplyLost { signal } => {
                s.faults.lost_replies += 1;
                self.signal(s, signal);
                s.calls[signal] = Call::Unanswered;
            }
            Action::SignalLate { signal } => {
                s.faults.late_calls += 1;
                self.signal(s, signal);
            }
            Action::Claim {
                worker,
                node,
                entry,
            } => s.workers[worker] = self.claim(s, node, entry),
            Action::Settle { worker } => {
                self.settle(s, worker);
                s.workers[worker] = None;
            }
            Action::SettleReplyLost { worker } => {
                s.faults.lost_replies += 1;
                self.settle(s, worker);
            }
            Action::Crash { worker } => {
                s.faults.crashes += 1;
                s.workers[worker] = None;
            }
            Action::Reap { node } => s.reap(node),
            Action::Lapse { node } => {
                s.faults.lapses += 1;
                s.reap(node);
            }
            Action::Tick { node } => self.tick(s, node),
            Action::Twin { node, entry } => {
                s.faults.twins += 1;
                s.queue(node, entry);
            }
            Action::Pause => s.pause(),
            Action::Resume => self.resume(s),
            Action::Cancel => {
                s.faults.cancels += 1;
                s.end(Status::Cancelled);
            }
        }
        next
    }

    fn heals(&self, _: &State, action: Action) -> bool {
        match action {
            Action::Signal { .. }
            | Action::Claim { .. }
            | Action::Settle { .. }
            | Action::Reap { .. }
            | Action::Tick { .. }
            | Action::Resume => true,
            Action::SignalReplyLost { .. }
            | Action::SignalLate { .. }
            | Action::SettleReplyLost { .. }
            | Action::Crash { .. }
            | Action::Lapse { .. }
            | Action::Twin { .. }
            | Action::Pause
            | Action::Cancel => false,
        }
    }

    fn rules(&self) -> Vec<Rule<Self>> {
        rules::all()
    }
}
