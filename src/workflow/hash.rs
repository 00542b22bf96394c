use sha2::{Digest, Sha256};

use super::{Graph, Late, Node, NodeId, NodeKind, Source};
use crate::ids::DefinitionHash;

/// The definition hash: all that decides where an instance goes from a node and where values come from. Everything has
/// its length in front of it, so no two graphs are written the same way.
pub(super) fn of(graph: &Graph) -> DefinitionHash {
    let mut writer = Writer(Sha256::new());
    writer.text("tenure definition 1");
    writer.text(graph.name().as_str());
    writer.nodes(graph, graph.entry());
    writer.number(graph.nodes().len());
    for node in graph.nodes() {
        writer.node(graph, node);
    }
    let digest = writer.0.finalize();
    DefinitionHash::from_digest(std::array::from_fn(|i| digest[i]))
}

struct Writer(Sha256);

impl Writer {
    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text);
    }

    fn nodes(&mut self, graph: &Graph, ids: &[NodeId]) {
        self.number(ids.len());
        for &id in ids {
            self.text(graph.node(id).name.as_str());
        }
    }

    /// Without queue, retries, limits and the length of a delay or of a wait: these are tuning.
    fn node(&mut self, graph: &Graph, node: &Node) {
        self.text(node.name.as_str());
        match node.kind {
            NodeKind::Task => self.text("task"),
            NodeKind::Delay(_) => self.text("delay"),
            NodeKind::Join { need, total } => {
                self.text("join");
                self.number(usize::from(need));
                self.number(usize::from(total));
            }
            NodeKind::Wait(late) => {
                self.text(match late {
                    Late::Fail => "wait",
                    Late::GoOn => "wait or go on",
                });
                self.text(node.signal.as_ref().map_or("", |signal| signal.as_str()));
            }
        }
        match &node.input {
            Source::Value(field) => self.text(&field.to_string()),
            Source::Branches(fields) => {
                self.number(fields.len());
                for field in fields {
                    self.text(&field.to_string());
                }
            }
        }
        self.nodes(graph, &node.next);
    }
}
