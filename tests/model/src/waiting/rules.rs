//! What must hold.

use super::{
    Action, Waiting,
    state::{Node, NodeState, SIGNALS, State, Status, Value},
};
use crate::explore::{Check, Rule};

pub(super) const ONCE: &str = "a signal is kept or taken once, however often it is sent";
pub(super) const NOT_LOST: &str =
    "an acknowledged signal is kept, or the value of a node, which stays";
pub(super) const IN_ORDER: &str = "a signal is taken only when all older ones were";
pub(super) const FIRST_COME: &str = "the node that began to wait first has the next signal";
pub(super) const NO_WAIT_BESIDE: &str = "no node waits while a signal is kept";
pub(super) const WAY_ON: &str = "every open node has a way on";
pub(super) const ONE_PLACE: &str = "a live instance is in at least one place";
pub(super) const LISTED: &str = "just those that wait are in the set of those that wait";
pub(super) const PAUSED: &str = "a paused instance starts no task";
pub(super) const RESUMED: &str = "after a resume nothing stays parked";
pub(super) const FINAL: &str = "a final status never changes";
pub(super) const ENDS: &str =
    "when faults stop and clients go on, an instance ends and leaves nothing behind";

pub(super) fn all() -> Vec<Rule<Waiting>> {
    let always = |name, holds| Rule {
        name,
        check: Check::Always(holds),
    };
    let step = |name, holds| Rule {
        name,
        check: Check::Step(holds),
    };
    vec![
        always(ONCE, |_, s| (0..SIGNALS).all(|i| places(s, i) <= 1)),
        always(NOT_LOST, |_, s| {
            (0..SIGNALS).all(|i| !s.acknowledged[i] || places(s, i) > 0)
        }),
        always(IN_ORDER, in_order),
        step(FIRST_COME, first_come),
        always(NO_WAIT_BESIDE, |_, s| {
            s.waits.is_empty() || s.early.is_empty()
        }),
        always(WAY_ON, |model, s| {
            let has = |n: &Node| has_way_on(model, s, n);
            !s.is_live() || s.nodes.iter().all(has)
        }),
        always(ONE_PLACE, |_, s| {
            !s.is_live() || s.listed || s.nodes.iter().any(is_somewhere)
        }),
        always(LISTED, |_, s| s.listed != s.waits.is_empty()),
        step(PAUSED, paused_starts_nothing),
        always(RESUMED, |_, s| {
            s.status != Status::Running || s.resuming || s.parked() == 0
        }),
        step(FINAL, |_, before, _, after| {
            before.is_live() || after.status == before.status
        }),
        Rule {
            name: ENDS,
            check: Check::Leads(is_over),
        },
    ]
}

fn is_value(n: &Node, signal: usize) -> bool {
    n.value == Some(Value::Signal(signal))
}

/// Where a signal is.
fn places(s: &State, signal: usize) -> usize {
    let kept = s.early.iter().filter(|&&early| early == signal).count();
    let taken = s.nodes.iter().filter(|n| is_value(n, signal)).count();
    kept + taken
}

fn in_order(_: &Waiting, s: &State) -> bool {
    let taken = |signal| s.nodes.iter().any(|n| is_value(n, signal));
    let older_kept = |signal| s.early.iter().any(|&early| early < signal);
    (0..SIGNALS).all(|signal| !taken(signal) || !older_kept(signal))
}

/// Who begins to wait is the last, and a signal is for the first.
fn first_come(_: &Waiting, before: &State, action: Action, after: &State) -> bool {
    let (old, new) = (&before.waits, &after.waits);
    match action {
        Action::Signal { .. } | Action::SignalReplyLost { .. } | Action::SignalLate { .. } => {
            new == old || old.get(1..) == Some(new)
        }
        Action::Settle { .. } | Action::SettleReplyLost { .. } => {
            !after.is_live() || new.starts_with(old)
        }
        _ => true,
    }
}

fn has_way_on(model: &Waiting, s: &State, n: &Node) -> bool {
    let at = s.nodes.iter().position(|other| std::ptr::eq(other, n));
    let given_back = s.status == Status::Paused || s.resuming;
    match n.state {
        NodeState::Ready => total(n.ready) > 0 || (given_back && total(n.parked) > 0),
        NodeState::Waiting => {
            let waits = s.waits.iter().filter(|&&node| Some(node) == at);
            waits.count() == 1 && s.listed && n.timer == model.is_timed()
        }
        // Its ticket is what is looked at when the claim expires.
        NodeState::Running(_) | NodeState::Absent | NodeState::Completed => true,
        NodeState::Closed => false,
    }
}

fn total(entries: [u8; 3]) -> u8 {
    entries.iter().sum()
}

fn is_somewhere(n: &Node) -> bool {
    let runs = matches!(n.state, NodeState::Running(_));
    runs || n.timer || total(n.ready) + total(n.parked) > 0
}

fn paused_starts_nothing(_: &Waiting, before: &State, _: Action, after: &State) -> bool {
    let runs = |n: &Node| matches!(n.state, NodeState::Running(_));
    let mut nodes = before.nodes.iter().zip(&after.nodes);
    before.status != Status::Paused || nodes.all(|(old, new)| runs(old) || !runs(new))
}

/// What is parked goes with the snapshot.
fn is_over(_: &Waiting, s: &State) -> bool {
    let empty = |n: &Node| total(n.ready) == 0 && !n.timer;
    let idle = s.workers.iter().all(Option::is_none);
    !s.is_live() && idle && s.waits.is_empty() && s.nodes.iter().all(empty)
}
