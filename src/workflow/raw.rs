//! A graph before it is checked: as a builder collects it, and as it is stored.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Graph, GraphError, Limits, NodeId, NodeKind, OnExhausted, RetryPolicy, Source};
use crate::{
    codec::{self, CodecError},
    ids::ValueField,
};

/// The stored form. Unknown fields are passed over, so that a later version may add some without a new format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RawGraph {
    pub(super) v: u32,
    pub(super) name: String,
    pub(super) queue: Option<String>,
    #[serde(default)]
    pub(super) on_exhausted: OnExhausted,
    pub(super) entry: Vec<u32>,
    pub(super) nodes: Vec<RawNode>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RawNode {
    pub(super) name: String,
    pub(super) kind: NodeKind,
    pub(super) queue: Option<String>,
    pub(super) retry: RetryPolicy,
    pub(super) limits: Limits,
    pub(super) next: Vec<u32>,
    /// Of a join: the value of each branch.
    pub(super) branches: Vec<RawValue>,
    /// Of a wait: its signal, if that is not its own name.
    #[serde(default)]
    pub(super) signal: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RawValue {
    Input,
    Output(u32),
}

/// What every format has.
#[derive(Deserialize)]
struct Version {
    v: u32,
}

impl RawGraph {
    pub(super) fn to_bytes(&self) -> Result<Bytes, CodecError> {
        codec::encode(self)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, GraphError> {
        let Version { v } = codec::decode(bytes)?;
        if v != Graph::FORMAT {
            return Err(GraphError::Version {
                found: v,
                supported: Graph::FORMAT,
            });
        }
        Ok(codec::decode(bytes)?)
    }

    /// The value that is there when each node is done. Edges must lead forward.
    pub(super) fn values(&self) -> Vec<RawValue> {
        let mut values: Vec<_> = (0..).take(self.nodes.len()).map(RawValue::Output).collect();
        let mut inputs = vec![RawValue::Input; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            if let NodeKind::Delay(_) = node.kind {
                values[i] = inputs[i];
            }
            for &next in &node.next {
                inputs[next as usize] = values[i];
            }
        }
        values
    }
}

impl From<&Graph> for RawGraph {
    fn from(graph: &Graph) -> Self {
        let indices = |ids: &[NodeId]| ids.iter().map(|id| u32::from(id.0)).collect();
        let value = |field: &ValueField| match field {
            // No node takes anything else as its input.
            ValueField::Input | ValueField::Progress(_) | ValueField::Shared(_) => RawValue::Input,
            ValueField::Output(task) => graph
                .find(task)
                .map_or(RawValue::Input, |id| RawValue::Output(u32::from(id.0))),
        };
        let node = |node: &super::Node| RawNode {
            name: node.name.as_str().into(),
            kind: node.kind,
            queue: node.queue.as_ref().map(|queue| queue.as_str().into()),
            retry: node.retry.clone(),
            limits: node.limits,
            next: indices(&node.next),
            branches: match &node.input {
                Source::Branches(fields) => fields.iter().map(value).collect(),
                Source::Value(_) => Vec::new(),
            },
            signal: node.signal.as_ref().map(|signal| signal.as_str().into()),
        };
        Self {
            v: Graph::FORMAT,
            name: graph.name().as_str().into(),
            queue: Some(graph.queue().as_str().into()),
            on_exhausted: graph.on_exhausted(),
            entry: indices(graph.entry()),
            nodes: graph.nodes().iter().map(node).collect(),
        }
    }
}
