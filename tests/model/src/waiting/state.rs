//! What is stored of one instance, and what client and workers know.

use std::fmt::{Display, Formatter, Result};

use super::{Faults, Shape};

pub(super) const NODES: usize = 2;
pub(super) const SIGNALS: usize = 2;
pub(super) const WORKERS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Status {
    Running,
    Paused,
    Completed,
    Failed,
    Cancelled,
}

/// What an entry says of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    /// It is reached.
    Enter,
    /// Its signal is there.
    Go,
    /// Its time is over.
    Late,
}

pub(super) const ENTRIES: [Entry; 3] = [Entry::Enter, Entry::Go, Entry::Late];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NodeState {
    Absent,
    Ready,
    /// Claimed by this entry, which is its ticket.
    Running(Entry),
    Waiting,
    Completed,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Signal(usize),
    /// It went on without.
    Nil,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) state: NodeState,
    pub(super) value: Option<Value>,
    /// How many of each kind of entry stand in its list.
    pub(super) ready: [u8; 3],
    pub(super) parked: [u8; 3],
    /// The timer of its wait is among the delayed.
    pub(super) timer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Verdict {
    Wait,
    GoOn,
    TooLate,
}

/// What became of a claim; the worker does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    Held,
    Settled,
    TakenAway,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub(super) node: usize,
    pub(super) verdict: Verdict,
    pub(super) fate: Fate,
}

/// What the client knows of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Unsent,
    Unanswered,
    Answered,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) nodes: [Node; NODES],
    /// The nodes that wait, in the order in which they began to.
    pub(super) waits: Vec<usize>,
    /// Whether the instance is in the set of those that wait.
    pub(super) listed: bool,
    /// Signals that no node has waited for yet, oldest first.
    pub(super) early: Vec<usize>,
    /// Ids of the signals that were accepted.
    pub(super) heard: [bool; SIGNALS],
    /// For the model's own book: those that a call was answered to be accepted.
    pub(super) acknowledged: [bool; SIGNALS],
    pub(super) calls: [Call; SIGNALS],
    pub(super) workers: [Option<Claim>; WORKERS],
    /// A resume gave back some tickets, and is repeated for the rest.
    pub(super) resuming: bool,
    pub(super) faults: Faults,
}

impl State {
    pub(super) fn new(shape: Shape) -> Self {
        let node = |state, enter| Node {
            state,
            value: None,
            ready: [enter, 0, 0],
            parked: [0; 3],
            timer: false,
        };
        let second = match shape {
            Shape::One => node(NodeState::Completed, 0),
            Shape::Beside => node(NodeState::Ready, 1),
            Shape::Behind => node(NodeState::Absent, 0),
        };
        Self {
            status: Status::Running,
            nodes: [node(NodeState::Ready, 1), second],
            waits: Vec::new(),
            listed: false,
            early: Vec::new(),
            heard: [false; SIGNALS],
            acknowledged: [false; SIGNALS],
            calls: [Call::Unsent; SIGNALS],
            workers: [None; WORKERS],
            resuming: false,
            faults: Faults::default(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self.status, Status::Running | Status::Paused)
    }

    pub(super) fn is_held(&self, node: usize) -> bool {
        let holds = |c: &Claim| c.node == node && c.fate == Fate::Held;
        self.workers.iter().flatten().any(holds)
    }

    pub(super) fn parked(&self) -> u8 {
        self.nodes.iter().flat_map(|n| n.parked).sum()
    }

    pub(super) fn queue(&mut self, node: usize, entry: Entry) {
        self.nodes[node].ready[entry as usize] += 1;
    }
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self {
            status,
            waits,
            early,
            heard,
            ..
        } = self;
        writeln!(
            f,
            "{status:?}, waits {waits:?}, early {early:?}, heard {heard:?}"
        )?;
        for (at, node) in self.nodes.iter().enumerate() {
            writeln!(f, "  node {at}: {node:?}")?;
        }
        for (at, call) in self.calls.iter().enumerate() {
            writeln!(f, "  signal {at}: {call:?}")?;
        }
        for (at, claim) in self.workers.iter().enumerate() {
            writeln!(f, "  w{at}: {claim:?}")?;
        }
        Ok(())
    }
}
