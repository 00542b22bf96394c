use std::{fmt, marker::PhantomData, sync::Arc};

use super::{Graph, NodeId};
use crate::{
    ids::{DefinitionHash, IdError, WorkflowName},
    task::ErasedHandler,
};

/// A workflow that takes an `I` and has an `O` as its result: a graph and the handlers of its tasks. Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use tenure::{task::TaskError, workflow::{RetryPolicy, Workflow}};
///
/// async fn reserve(order: u64) -> Result<u64, TaskError> { Ok(order) }
/// async fn mail(order: u64) -> Result<String, TaskError> { Ok(format!("mail for {order}")) }
/// async fn ship(order: u64) -> Result<u32, TaskError> { Ok(order as u32) }
/// async fn close((mail, parcel): (String, u32)) -> Result<String, TaskError> { Ok(format!("{mail}, parcel {parcel}")) }
///
/// # fn main() -> Result<(), tenure::workflow::BuildErrors> {
/// let checkout: Workflow<u64, String> = Workflow::builder("checkout")
///     .task("reserve", reserve).retry(RetryPolicy::fixed(Duration::from_secs(1)).max_attempts(3))
///     .fork(|f| f.branch(|b| b.task("mail", mail)).branch(|b| b.task("ship", ship)))
///     .join("close", close).timeout(Duration::from_secs(10))
///     .build()?;
/// assert_eq!(checkout.graph().nodes().len(), 4);
/// # Ok(())
/// # }
/// ```
pub struct Workflow<I, O> {
    untyped: AnyWorkflow,
    types: PhantomData<fn(I) -> O>,
}

/// A workflow without its types, as a worker holds it. Cheap to clone.
#[derive(Clone)]
pub struct AnyWorkflow(Arc<Definition>);

struct Definition {
    graph: Arc<Graph>,
    /// By node.
    handlers: Vec<Option<Arc<dyn ErasedHandler>>>,
}

/// The name of a workflow with its types, for producers that have not its handlers. Cheap to clone.
pub struct WorkflowRef<I, O> {
    name: WorkflowName,
    types: PhantomData<fn(I) -> O>,
}

/// What a client can start: a [`Workflow`] or a [`WorkflowRef`].
pub trait Startable: sealed::Sealed {
    /// What it takes.
    type Input;
    /// What it results in.
    type Output;

    /// The name.
    fn name(&self) -> &WorkflowName;

    /// The graph, if it is at hand; otherwise the one that a worker published under the name is used.
    fn graph(&self) -> Option<&Arc<Graph>>;
}

mod sealed {
    pub trait Sealed {}
    impl<I, O> Sealed for super::Workflow<I, O> {}
    impl<I, O> Sealed for super::WorkflowRef<I, O> {}
}

impl<I, O> Workflow<I, O> {
    pub(super) fn typed(untyped: AnyWorkflow) -> Self {
        Self {
            untyped,
            types: PhantomData,
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &WorkflowName {
        self.untyped.name()
    }

    /// The definition hash; see [`Graph::hash`].
    #[must_use]
    pub fn hash(&self) -> DefinitionHash {
        self.untyped.hash()
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        self.untyped.graph()
    }

    /// The code of a node; `None` for a node that has none (a delay), and for an id of another graph.
    #[must_use]
    pub fn handler(&self, node: NodeId) -> Option<&Arc<dyn ErasedHandler>> {
        self.untyped.handler(node)
    }

    /// The same workflow without its types.
    #[must_use]
    pub fn erase(&self) -> AnyWorkflow {
        self.untyped.clone()
    }
}

impl AnyWorkflow {
    /// `handlers` are those of the nodes of the graph, in their order.
    pub(super) fn of(graph: Arc<Graph>, handlers: Vec<Option<Arc<dyn ErasedHandler>>>) -> Self {
        Self(Arc::new(Definition { graph, handlers }))
    }

    /// A workflow of which only the structure is known: all its tasks and joins go to one handler, which finds the name
    /// of the task in its context.
    #[must_use]
    pub fn external(graph: Arc<Graph>, handler: &Arc<dyn ErasedHandler>) -> Self {
        let handlers = graph
            .nodes()
            .iter()
            .map(|node| node.has_handler().then(|| Arc::clone(handler)))
            .collect();
        Self::of(graph, handlers)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &WorkflowName {
        self.0.graph.name()
    }

    /// The definition hash; see [`Graph::hash`].
    #[must_use]
    pub fn hash(&self) -> DefinitionHash {
        self.0.graph.hash()
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.0.graph
    }

    /// The code of a node; `None` for a node that has none (a delay), and for an id of another graph.
    #[must_use]
    pub fn handler(&self, node: NodeId) -> Option<&Arc<dyn ErasedHandler>> {
        self.0.handlers.get(node.index())?.as_ref()
    }
}

impl<I, O> WorkflowRef<I, O> {
    /// Names a workflow. That `I` and `O` are its types is the caller's word; a task that gets another input fails.
    ///
    /// # Errors
    /// [`IdError::Name`] says what is allowed.
    pub fn new(name: impl AsRef<str>) -> Result<Self, IdError> {
        Ok(Self {
            name: WorkflowName::new(name)?,
            types: PhantomData,
        })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &WorkflowName {
        &self.name
    }
}

impl<I, O> Startable for Workflow<I, O> {
    type Input = I;
    type Output = O;

    fn name(&self) -> &WorkflowName {
        self.name()
    }

    fn graph(&self) -> Option<&Arc<Graph>> {
        Some(self.graph())
    }
}

impl<I, O> Startable for WorkflowRef<I, O> {
    type Input = I;
    type Output = O;

    fn name(&self) -> &WorkflowName {
        &self.name
    }

    fn graph(&self) -> Option<&Arc<Graph>> {
        None
    }
}

impl<I, O> From<&Workflow<I, O>> for AnyWorkflow {
    fn from(workflow: &Workflow<I, O>) -> Self {
        workflow.erase()
    }
}

impl<I, O> From<Workflow<I, O>> for AnyWorkflow {
    fn from(workflow: Workflow<I, O>) -> Self {
        workflow.untyped
    }
}

impl From<&AnyWorkflow> for AnyWorkflow {
    fn from(workflow: &AnyWorkflow) -> Self {
        workflow.clone()
    }
}

impl<I, O> Clone for Workflow<I, O> {
    fn clone(&self) -> Self {
        Self::typed(self.untyped.clone())
    }
}

impl<I, O> Clone for WorkflowRef<I, O> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            types: PhantomData,
        }
    }
}

impl<I, O> fmt::Debug for Workflow<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.untyped.fmt(f)
    }
}

impl fmt::Debug for AnyWorkflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workflow({}:{})", self.name(), self.hash())
    }
}

impl<I, O> fmt::Debug for WorkflowRef<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkflowRef({})", self.name)
    }
}
