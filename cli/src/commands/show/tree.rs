//! A graph as a tree: what follows each other stands under each other, branches stand beside a line.

use std::collections::HashSet;

use tenure::workflow::{Graph, NodeId, NodeKind};

/// A node and what stands in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) prefix: String,
    pub(super) node: NodeId,
}

/// All nodes, in the order in which they are drawn; each once.
pub(super) fn draw(graph: &Graph) -> Vec<Branch> {
    let mut tree = Tree {
        graph,
        drawn: HashSet::new(),
        lines: Vec::new(),
    };
    tree.chain(graph.entry().to_vec(), "", "");
    tree.lines
}

struct Tree<'a> {
    graph: &'a Graph,
    drawn: HashSet<NodeId>,
    lines: Vec<Branch>,
}

impl Tree<'_> {
    /// Draws nodes that follow each other, up to the join in which they meet others: that is the answer.
    fn chain(&mut self, mut next: Vec<NodeId>, first: &str, rest: &str) -> Option<NodeId> {
        let mut prefix = first;
        loop {
            let node = match next.as_slice() {
                [] => return None,
                [one] if self.is_met(*one) => return Some(*one),
                [one] => *one,
                branches => self.fork(branches, rest)?,
            };
            if !self.drawn.insert(node) {
                return None;
            }
            self.lines.push(Branch {
                prefix: prefix.to_owned(),
                node,
            });
            prefix = rest;
            next.clone_from(&self.graph.node(node).next);
        }
    }

    /// Draws branches; answers with the join in which they meet.
    fn fork(&mut self, branches: &[NodeId], rest: &str) -> Option<NodeId> {
        let mut join = None;
        for (at, node) in branches.iter().enumerate() {
            let (first, then) = match at + 1 == branches.len() {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            let (first, then) = (format!("{rest}{first}"), format!("{rest}{then}"));
            join = self.chain(vec![*node], &first, &then).or(join);
        }
        join
    }

    /// Whether several branches end in it, so that it stands behind all of them.
    fn is_met(&self, node: NodeId) -> bool {
        matches!(self.graph.node(node).kind, NodeKind::Join { total, .. } if total > 1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure::Workflow;

    use super::*;

    fn drawn<I, O>(workflow: &Workflow<I, O>) -> Vec<String> {
        let graph = workflow.graph();
        let lines = draw(graph);
        assert_eq!(lines.len(), graph.nodes().len(), "each once");
        let lines = lines.iter();
        lines
            .map(|line| format!("{}{}", line.prefix, graph.node(line.node).name))
            .collect()
    }

    async fn one(n: u32) -> anyhow::Result<u32> {
        Ok(n)
    }

    async fn two((a, b): (u32, u32)) -> anyhow::Result<u32> {
        Ok(a + b)
    }

    #[test]
    fn a_chain_is_a_column() {
        let chain = Workflow::builder("chain")
            .task("a", one)
            .delay("b", Duration::from_secs(1))
            .task("c", one);
        assert_eq!(drawn(&chain.build().expect("a workflow")), ["a", "b", "c"]);
    }

    #[test]
    fn branches_stand_beside_a_line_and_their_join_behind_them() {
        let nested = Workflow::builder("nested")
            .task("a", one)
            .fork(|f| {
                f.branch(|b| {
                    b.task("b", one)
                        .fork(|f| {
                            f.branch(|b| b.task("c", one).task("d", one))
                                .branch(|b| b.task("e", one))
                        })
                        .join("f", two)
                        .task("g", one)
                })
                .branch(|b| b.task("h", one).task("i", one))
            })
            .join("j", two)
            .task("k", one);
        assert_eq!(
            drawn(&nested.build().expect("a workflow")),
            [
                "a",
                "├─ b",
                "│  ├─ c",
                "│  │  d",
                "│  └─ e",
                "│  f",
                "│  g",
                "└─ h",
                "   i",
                "j",
                "k"
            ]
        );
    }

    #[test]
    fn a_fork_may_come_first_and_have_empty_branches() {
        let first = Workflow::builder("first")
            .fork(|f| f.branch(|b| b.task("a", one)).branch(|b| b))
            .join("b", two)
            .fork(|f| f.branch(|b| b.task("c", one)).branch(|b| b.task("d", one)))
            .join("e", two);
        assert_eq!(
            drawn(&first.build().expect("a workflow")),
            ["a", "b", "├─ c", "└─ d", "e"]
        );
    }
}
