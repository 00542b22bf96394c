//! What became of the signals of one instance.

use std::collections::BTreeMap;

use super::{
    Digest, Line, Rule,
    check::{Case, Found},
};
use crate::{
    codec,
    ids::{SignalId, SignalName},
    workflow::Graph,
};

/// One signal that the ledger knows of.
struct Sent<'a> {
    signal: &'a SignalId,
    payload: Digest,
    acknowledged: bool,
}

/// Where a signal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nowhere.
    Absent,
    /// Kept for a node to come.
    Kept,
    /// The value of so many nodes.
    Taken(usize),
    /// The value of a node, and kept.
    Both,
}

/// Signals of one name, in the order in which they were sent.
type ByName<'a> = BTreeMap<&'a SignalName, Vec<Sent<'a>>>;

fn sent<'a>(case: &Case<'a>) -> ByName<'a> {
    let mut by_name = ByName::new();
    for line in case.lines.iter().filter(|line| line.run() == case.run()) {
        let Line::Signalled {
            name,
            signal,
            payload,
            acknowledged,
            ..
        } = line
        else {
            continue;
        };
        let of_name = by_name.entry(name).or_default();
        match of_name.iter_mut().find(|sent| sent.signal == signal) {
            Some(sent) => sent.acknowledged |= acknowledged,
            None => of_name.push(Sent {
                signal,
                payload: *payload,
                acknowledged: *acknowledged,
            }),
        }
    }
    by_name
}

/// What the nodes brought that waited for a name.
fn taken(case: &Case, graph: &Graph, name: &SignalName) -> Vec<Digest> {
    let nodes = graph.nodes().iter();
    nodes
        .filter(|node| node.signal.as_ref() == Some(name))
        .filter_map(|node| case.values.get(&node.value()))
        // Of a node that went on without.
        .filter(|value| **value != codec::NIL)
        .map(|value| Digest::of_bytes(value))
        .collect()
}

fn fate(case: &Case, taken: &[Digest], sent: &Sent) -> Fate {
    let times = taken.iter().filter(|value| **value == sent.payload).count();
    let kept = case
        .snapshot
        .early
        .iter()
        .any(|early| early.id == *sent.signal);
    match (times, kept) {
        (0, false) => Fate::Absent,
        (0, true) => Fate::Kept,
        (times, false) => Fate::Taken(times),
        (_, true) => Fate::Both,
    }
}

/// An acknowledged signal is taken once, after all that were sent before it, or kept behind them.
pub(super) fn signals(case: &Case, found: &mut Found) {
    let Some(graph) = case.graph else { return };
    for (name, sent) in sent(case) {
        let taken = taken(case, graph, name);
        let mut kept_before = None;
        for one in &sent {
            let fate = fate(case, &taken, one);
            let wrong = match fate {
                Fate::Absent => one.acknowledged,
                Fate::Taken(1) => kept_before.is_some(),
                Fate::Taken(_) | Fate::Both => true,
                Fate::Kept => false,
            };
            if wrong {
                let what = format!(
                    "signal {} `{name}` (acknowledged: {}) is {fate:?}, kept before it: {kept_before:?}",
                    one.signal, one.acknowledged
                );
                found.push(case.violation(Rule::SignalsKept, what));
            }
            if fate == Fate::Kept {
                kept_before = Some(one.signal);
            }
        }
        let known = |value: &&Digest| !sent.iter().any(|sent| sent.payload == **value);
        for value in taken.iter().filter(known) {
            let what = format!("a node took {value} as `{name}`, which nobody sent");
            found.push(case.violation(Rule::SignalsKept, what));
        }
    }
}
