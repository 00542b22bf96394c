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

/// Why a task cannot be run here, in words.
#[derive(Debug)]
pub(crate) enum Missing {
    /// The worker does not have the definition; another one may.
    Definition(String),
    /// The definition has no such task, so that no worker has it.
    Task(String),
}

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
    /// What there is not.
    pub(crate) fn find(
        &self,
        hash: DefinitionHash,
        task: &TaskName,
    ) -> Result<(&AnyWorkflow, NodeId), Missing> {
        let workflow = self.workflows.get(&hash).ok_or_else(|| {
            let own: BTreeSet<String> = self.workflows.keys().map(ToString::to_string).collect();
            let own: Vec<String> = own.into_iter().collect();
            Missing::Definition(format!(
                "the worker does not have definition {hash}, it has {}",
                own.join(", ")
            ))
        })?;
        let node = workflow.graph().find(task).ok_or_else(|| {
            Missing::Task(format!(
                "definition {hash} of workflow `{}` has no task `{task}`",
                workflow.name()
            ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Workflow;

    // W18 W19
    #[test]
    fn what_a_worker_does_not_have_is_named_beside_what_it_has() {
        let flow = |task: &str| {
            Workflow::builder("flow")
                .task(task, |n: u32| async move { anyhow::Ok(n) })
                .build()
                .unwrap()
        };
        let (ours, theirs) = (flow("a"), flow("b"));
        let catalog = Catalog::new(vec![(&ours).into()], &[]).unwrap();
        let task = |name| TaskName::new(name).unwrap();
        assert!(catalog.find(ours.hash(), &task("a")).is_ok());
        let Err(Missing::Definition(other)) = catalog.find(theirs.hash(), &task("b")) else {
            panic!("found, or blamed on the task");
        };
        for hash in [ours.hash(), theirs.hash()] {
            assert!(other.contains(&hash.to_string()), "{other}");
        }
        let Err(Missing::Task(ghost)) = catalog.find(ours.hash(), &task("ghost")) else {
            panic!("found, or blamed on the definition");
        };
        assert!(
            ghost.contains("`flow`") && ghost.contains("`ghost`"),
            "{ghost}"
        );
    }
}
