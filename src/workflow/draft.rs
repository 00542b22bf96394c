//! What a typed chain collects, without its types: a piece of a graph whose indices are its own.

use std::{sync::Arc, time::Duration};

use super::{
    AnyWorkflow, BuildErrors, Graph, Late, Limits, NodeKind, OnExhausted, RetryPolicy, check,
    raw::{RawGraph, RawNode, RawValue},
};
use crate::task::ErasedHandler;

/// A piece of a graph with one place where it begins and one where it goes on.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) name: String,
    /// The queue of nodes that have none of their own.
    pub(super) queue: Option<String>,
    pub(super) on_exhausted: OnExhausted,
    nodes: Vec<RawNode>,
    handlers: Vec<Option<Arc<dyn ErasedHandler>>>,
    entry: Vec<u32>,
    /// The node to go on from; `None` while there is none.
    tip: Option<u32>,
    /// The value at this place, as seen from the piece.
    value: Option<u32>,
}

impl Draft {
    pub(super) fn named(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    pub(super) fn task(&mut self, name: String, handler: Arc<dyn ErasedHandler>) {
        let id = self.push(name, NodeKind::Task, Some(handler));
        self.connect(&[id]);
        (self.tip, self.value) = (Some(id), Some(id));
    }

    pub(super) fn delay(&mut self, name: String, by: Duration) {
        let id = self.push(name, NodeKind::Delay(by), None);
        self.connect(&[id]);
        self.tip = Some(id);
    }

    pub(super) fn wait(&mut self, name: String) {
        let id = self.push(name, NodeKind::Wait(Late::Fail), None);
        self.connect(&[id]);
        (self.tip, self.value) = (Some(id), Some(id));
    }

    /// The node that was added last, to change its policy.
    pub(super) fn last(&mut self) -> Option<&mut RawNode> {
        let tip = self.tip?;
        self.nodes.get_mut(tip as usize)
    }

    /// Adds the branches side by side, and the join behind them.
    pub(super) fn join(
        &mut self,
        branches: Vec<Draft>,
        name: String,
        handler: Arc<dyn ErasedHandler>,
    ) {
        let (mut arriving, mut values, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        for branch in branches {
            let end = self.merge(branch);
            heads.extend(end.entry);
            arriving.extend(end.tip);
            values.push(end.value);
        }
        self.connect(&heads);
        let total = u16::try_from(arriving.len().max(1)).unwrap_or(u16::MAX);
        let kind = NodeKind::Join { need: total, total };
        let join = self.push(name, kind, Some(handler));
        self.nodes[join as usize].branches = values;
        if arriving.is_empty() {
            self.connect(&[join]);
        }
        for tip in arriving {
            self.nodes[tip as usize].next.push(join);
        }
        (self.tip, self.value) = (Some(join), Some(join));
    }

    fn push(
        &mut self,
        name: String,
        kind: NodeKind,
        handler: Option<Arc<dyn ErasedHandler>>,
    ) -> u32 {
        self.nodes.push(RawNode {
            name,
            kind,
            queue: None,
            retry: RetryPolicy::default(),
            limits: Limits::NONE,
            next: Vec::new(),
            branches: Vec::new(),
            signal: None,
        });
        self.handlers.push(handler);
        (self.nodes.len() - 1) as u32
    }

    /// Lets these nodes follow the tip.
    fn connect(&mut self, nodes: &[u32]) {
        match self.tip {
            Some(tip) => self.nodes[tip as usize].next.extend(nodes),
            None => self.entry.extend(nodes),
        }
    }

    fn value(&self) -> RawValue {
        self.value.map_or(RawValue::Input, RawValue::Output)
    }

    /// Takes over the nodes of a branch. They are not connected yet: the next node of the tip may be another branch's.
    fn merge(&mut self, branch: Draft) -> Merged {
        let offset = self.nodes.len() as u32;
        let here = self.value();
        let moved = |value: RawValue| match value {
            RawValue::Input => here,
            RawValue::Output(i) => RawValue::Output(i + offset),
        };
        let value = moved(branch.value());
        for mut node in branch.nodes {
            for next in &mut node.next {
                *next += offset;
            }
            for value in &mut node.branches {
                *value = moved(*value);
            }
            node.queue = node.queue.or_else(|| branch.queue.clone());
            self.nodes.push(node);
        }
        self.handlers.extend(branch.handlers);
        Merged {
            entry: branch.entry.into_iter().map(|i| i + offset).collect(),
            tip: branch.tip.map(|i| i + offset),
            value,
        }
    }

    pub(super) fn build(self) -> Result<AnyWorkflow, BuildErrors> {
        let raw = RawGraph {
            v: Graph::FORMAT,
            name: self.name,
            queue: self.queue,
            on_exhausted: self.on_exhausted,
            entry: self.entry,
            nodes: self.nodes,
        };
        let names = check::rules(&raw)?;
        let graph = Graph::assemble(raw, names);
        Ok(AnyWorkflow::of(Arc::new(graph), self.handlers))
    }
}

/// Where a branch begins and ends, in the indices of the draft that took it over.
struct Merged {
    entry: Vec<u32>,
    tip: Option<u32>,
    value: RawValue,
}
