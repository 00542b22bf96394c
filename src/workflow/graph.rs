use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    GraphError, Limits, OnExhausted, RetryPolicy,
    check::{self, Names, NodeNames},
    hash,
    raw::{RawGraph, RawValue},
};
use crate::ids::{
    DefinitionHash, ListName, QueueName, SignalName, TaskName, ValueField, WorkflowName,
};

/// The definition of a workflow without its code: a flat list of nodes. What a client needs to start it, and the engine
/// to go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    name: WorkflowName,
    queue: QueueName,
    on_exhausted: OnExhausted,
    hash: DefinitionHash,
    nodes: Vec<Node>,
    entry: Vec<NodeId>,
    result: ValueField,
    index: HashMap<TaskName, NodeId>,
}

/// The place of a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub(super) u16);

impl NodeId {
    /// As an index of [`Graph::nodes`].
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Its name, unique in the graph.
    pub name: TaskName,
    /// What it does.
    pub kind: NodeKind,
    /// Its queue, if it is not that of the workflow.
    pub queue: Option<QueueName>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// Its bounds in time.
    pub limits: Limits,
    /// What follows: nothing at the end, several behind which a fork begins.
    pub next: Vec<NodeId>,
    /// Where its input comes from.
    pub input: Source,
    /// What it waits for; only for [`NodeKind::Wait`].
    pub signal: Option<SignalName>,
}

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeKind {
    /// Runs a handler.
    Task,
    /// Runs a handler when branches have met.
    Join {
        /// How many arrivals make it run.
        need: u16,
        /// How many branches arrive at all. A branch without nodes does not arrive: its value is there from the start of
        /// the fork.
        total: u16,
    },
    /// Waits, and passes its input on.
    Delay(Duration),
    /// Waits for a signal, whose payload is its value; for how long, its limits say.
    Wait(Late),
}

/// What happens when a signal does not come in time. Default: [`Late::Fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// The instance fails, with an error of kind `timeout` that names the signal.
    #[default]
    Fail,
    /// It goes on without: the value of the node is `nil`, a `None` for who reads it.
    GoOn,
}

/// Where the input of a node comes from; known from the graph alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// One stored value.
    Value(ValueField),
    /// One for each branch, in their order.
    Branches(Vec<ValueField>),
}

impl Node {
    /// Whether it runs a handler.
    #[must_use]
    pub fn has_handler(&self) -> bool {
        match self.kind {
            NodeKind::Task | NodeKind::Join { .. } => true,
            NodeKind::Delay(_) | NodeKind::Wait(_) => false,
        }
    }

    /// The stored value that is there when it is done: its own, or for a delay what it passes on.
    #[must_use]
    pub fn value(&self) -> ValueField {
        match (&self.kind, &self.input) {
            (NodeKind::Delay(_), Source::Value(field)) => field.clone(),
            _ => ValueField::Output(self.name.clone()),
        }
    }
}

impl Graph {
    /// The format that [`Graph::to_bytes`] writes.
    pub const FORMAT: u32 = 1;

    /// Of a raw graph whose edges lead forward to nodes that exist, which a builder makes and [`check::wiring`] demands.
    pub(super) fn assemble(raw: RawGraph, names: Names) -> Self {
        let inputs = inputs(&raw, &names.nodes);
        let nodes: Vec<_> = raw
            .nodes
            .into_iter()
            .zip(names.nodes)
            .zip(inputs)
            .map(|((node, names), input)| Node {
                name: names.name,
                kind: node.kind,
                queue: names.queue,
                signal: names.signal,
                retry: node.retry,
                limits: node.limits,
                next: ids(&node.next),
                input,
            })
            .collect();
        let last = nodes.iter().rfind(|node| node.next.is_empty());
        let index = nodes.iter().zip(0..);
        let mut graph = Self {
            name: names.workflow,
            queue: names.queue.unwrap_or_default(),
            on_exhausted: raw.on_exhausted,
            hash: DefinitionHash::from_digest([0; 8]),
            entry: ids(&raw.entry),
            result: last.map_or(ValueField::Input, Node::value),
            index: index.map(|(n, i)| (n.name.clone(), NodeId(i))).collect(),
            nodes,
        };
        graph.hash = hash::of(&graph);
        graph
    }

    /// The name of the workflow.
    #[must_use]
    pub fn name(&self) -> &WorkflowName {
        &self.name
    }

    /// The queue of all nodes that have none of their own.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The definition hash: equal for all graphs on which an instance goes on the same way. It covers the name, and of
    /// the nodes names, kinds and edges; retries, timeouts, what follows a failure, the length of delays and queues may change under it.
    #[must_use]
    pub fn hash(&self) -> DefinitionHash {
        self.hash
    }

    /// What a task that failed for good leads to.
    #[must_use]
    pub fn on_exhausted(&self) -> OnExhausted {
        self.on_exhausted
    }

    /// All nodes, in the order of the definition.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes that an instance begins with.
    #[must_use]
    pub fn entry(&self) -> &[NodeId] {
        &self.entry
    }

    /// The node of an id of this graph.
    ///
    /// # Panics
    /// When the id is of another, larger graph.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The ids of all nodes, in their order.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(|i| NodeId(u16::try_from(i).unwrap_or(u16::MAX)))
    }

    /// The node of a name; in constant time.
    #[must_use]
    pub fn find(&self, name: &TaskName) -> Option<NodeId> {
        self.index.get(name).copied()
    }

    /// Where the input of a node comes from.
    #[must_use]
    pub fn input_of(&self, id: NodeId) -> &Source {
        &self.node(id).input
    }

    /// The values that meet in a join, in the order of its branches; empty for other nodes.
    #[must_use]
    pub fn join_sources(&self, id: NodeId) -> &[ValueField] {
        match &self.node(id).input {
            Source::Branches(fields) => fields,
            Source::Value(_) => &[],
        }
    }

    /// The stored value that is the result of the instance.
    #[must_use]
    pub fn result(&self) -> &ValueField {
        &self.result
    }

    /// The ready list of a node.
    #[must_use]
    pub fn list(&self, id: NodeId) -> ListName {
        self.list_of(self.node(id))
    }

    fn list_of(&self, node: &Node) -> ListName {
        ListName {
            queue: node.queue.as_ref().unwrap_or(&self.queue).clone(),
            definition: self.hash,
        }
    }

    /// All ready lists of this definition, each once, that of the workflow's queue first if a node uses it.
    #[must_use]
    pub fn lists(&self) -> Vec<ListName> {
        let mut lists: Vec<_> = self.nodes.iter().map(|node| self.list_of(node)).collect();
        lists.sort_by(|a, b| {
            let foreign = |list: &ListName| list.queue != self.queue;
            foreign(a).cmp(&foreign(b)).then_with(|| a.cmp(b))
        });
        lists.dedup();
        lists
    }

    /// All signals that a node waits for, each once, in the order of the definition.
    #[must_use]
    pub fn signals(&self) -> Vec<SignalName> {
        let mut signals: Vec<SignalName> = Vec::new();
        for signal in self.nodes.iter().filter_map(|node| node.signal.as_ref()) {
            if !signals.contains(signal) {
                signals.push(signal.clone());
            }
        }
        signals
    }

    /// The bounds of all nodes that have any, by ready list, as a claim carries them. Those of waits bound no attempt.
    #[must_use]
    pub fn limits(&self) -> HashMap<ListName, HashMap<TaskName, Limits>> {
        let mut limits: HashMap<_, HashMap<_, _>> = HashMap::new();
        let bounded = |node: &&Node| node.has_handler() && !node.limits.is_none();
        for node in self.nodes.iter().filter(bounded) {
            limits
                .entry(self.list_of(node))
                .or_default()
                .insert(node.name.clone(), node.limits);
        }
        limits
    }

    /// The graph as it is published: MessagePack of a versioned record.
    ///
    /// # Errors
    /// [`CodecError::Encode`](crate::codec::CodecError::Encode), which does not happen for a graph that was built.
    pub fn to_bytes(&self) -> Result<Bytes, GraphError> {
        Ok(RawGraph::from(self).to_bytes()?)
    }

    /// Reads a published graph and checks all that a builder guarantees.
    ///
    /// # Errors
    /// [`GraphError`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GraphError> {
        let raw = RawGraph::from_bytes(bytes)?;
        let names = check::rules(&raw)?;
        check::wiring(&raw)?;
        Ok(Self::assemble(raw, names))
    }
}

fn ids(indices: &[u32]) -> Vec<NodeId> {
    // At most 1000 nodes were let through.
    let id = |&i| NodeId(u16::try_from(i).unwrap_or(u16::MAX));
    indices.iter().map(id).collect()
}

/// Where the input of each node comes from. Edges lead forward, so one pass in order knows each node's before it is asked.
fn inputs(raw: &RawGraph, names: &[NodeNames]) -> Vec<Source> {
    let field = |value: &RawValue| match value {
        RawValue::Input => ValueField::Input,
        RawValue::Output(i) => ValueField::Output(names[*i as usize].name.clone()),
    };
    let values = raw.values();
    let mut inputs = vec![Source::Value(ValueField::Input); raw.nodes.len()];
    for (node, value) in raw.nodes.iter().zip(&values) {
        for &next in &node.next {
            inputs[next as usize] = Source::Value(field(value));
        }
    }
    for (input, node) in inputs.iter_mut().zip(&raw.nodes) {
        if let NodeKind::Join { .. } = node.kind {
            *input = Source::Branches(node.branches.iter().map(field).collect());
        }
    }
    inputs
}
