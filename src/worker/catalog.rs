//! What a worker can run, found in constant time.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::builder::WorkerBuildError;
use crate::{
    ids::{DefinitionHash, ListName, QueueName, TaskName},
    store::TaskLimits,
    workflow::{AnyWorkflow, NodeId},
};

/// All definitions of a worker.
#[derive(Debug)]
pub(crate) struct Catalog {
    workflows: HashMap<DefinitionHash, AnyWorkflow>,
    lists: Vec<ListName>,
    limits: Arc<TaskLimits>,
}

impl Catalog {
    /// # Errors
    /// Nothing to run, or something given twice.
    pub(crate) fn new(
        workflows: Vec<AnyWorkflow>,
        queues: &[QueueName],
    ) -> Result<Self, WorkerBuildError> {
        if workflows.is_empty() {
            return Err(WorkerBuildError::NoWorkflow);
        }
        let mut by_hash = HashMap::new();
        for workflow in workflows {
            let name = workflow.name().clone();
            if by_hash.insert(workflow.hash(), workflow).is_some() {
                return Err(WorkerBuildError::Twice { workflow: name });
            }
        }
        let graphs = || by_hash.values().map(AnyWorkflow::graph);
        let served = |list: &ListName| queues.is_empty() || queues.contains(&list.queue);
        let all: BTreeSet<ListName> = graphs().flat_map(|graph| graph.lists()).collect();
        let lists: Vec<ListName> = all.iter().filter(|list| served(list)).cloned().collect();
        if lists.is_empty() {
            let used: BTreeSet<QueueName> = all.into_iter().map(|list| list.queue).collect();
            return Err(WorkerBuildError::NoList {
                queues: queues.to_vec(),
                used: used.into_iter().collect(),
            });
        }
        let limits = graphs()
            .flat_map(|graph| graph.limits())
            .filter(|(list, _)| served(list))
            .collect();
        Ok(Self {
            workflows: by_hash,
            lists,
            limits: Arc::new(limits),
        })
    }

    /// A node and its workflow.
    ///
    /// # Errors
    /// In words: what this worker does not have.
    pub(crate) fn find(
        &self,
        hash: DefinitionHash,
        task: &TaskName,
    ) -> Result<(&AnyWorkflow, NodeId), String> {
        let workflow = self
            .workflows
            .get(&hash)
            .ok_or_else(|| format!("the worker does not have definition {hash}"))?;
        let node = workflow.graph().find(task).ok_or_else(|| {
            format!(
                "definition {hash} of workflow `{}` has no task `{task}`",
                workflow.name()
            )
        })?;
        Ok((workflow, node))
    }

    pub(crate) fn workflows(&self) -> impl Iterator<Item = &AnyWorkflow> {
        self.workflows.values()
    }

    /// The lists that this worker reads.
    pub(crate) fn lists(&self) -> &[ListName] {
        &self.lists
    }

    /// Whether this worker reads a list.
    pub(crate) fn serves(&self, list: &ListName) -> bool {
        self.lists.binary_search(list).is_ok()
    }

    /// The bounds of all tasks in these lists that have any.
    pub(crate) fn limits(&self) -> &Arc<TaskLimits> {
        &self.limits
    }
}
