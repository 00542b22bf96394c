use std::{marker::PhantomData, time::Duration};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    BuildErrors, Forked, ForkedEach, Late, Limits, NodeKind, OnExhausted, RetryPolicy, Workflow,
    draft::Draft,
};
use crate::task::{Handler, erase};

/// Where a chain stands: at the start of a workflow.
#[derive(Debug)]
pub enum AtStart {}
/// Where a chain stands: at the start of a branch.
#[derive(Debug)]
pub enum AtBranch {}
/// Where a chain stands: behind a task or a join.
#[derive(Debug)]
pub enum BehindTask {}
/// Where a chain stands: behind a delay.
#[derive(Debug)]
pub enum BehindDelay {}
/// Where a chain stands: behind a wait for a signal.
#[derive(Debug)]
pub enum BehindWait {}
/// Where a chain stands: not known to the compiler.
#[derive(Debug)]
pub enum Anywhere {}

/// Places where `retry` and `deadline` can stand.
#[diagnostic::on_unimplemented(
    message = "`retry` and `deadline` stand directly behind the task or join they belong to",
    label = "there is no task in front of this"
)]
pub trait IsTask: sealed::At {}
impl IsTask for BehindTask {}

/// Places where `timeout` can stand.
#[diagnostic::on_unimplemented(
    message = "`timeout` stands directly behind the task, join or wait it belongs to",
    label = "there is nothing in front of this that could take too long"
)]
pub trait HasTimeout: sealed::At {}
impl HasTimeout for BehindTask {}
impl HasTimeout for BehindWait {}

/// Places where `queue` can stand.
#[diagnostic::on_unimplemented(
    message = "`queue` stands directly behind the task or join it belongs to, or for the whole workflow directly behind `Workflow::builder`",
    label = "there is no task in front of this, and it is not the start of the workflow"
)]
pub trait HasQueue: sealed::At {}
impl HasQueue for AtStart {}
impl HasQueue for BehindTask {}

mod sealed {
    pub trait At {
        /// Whether a queue set here is that of the whole workflow.
        const START: bool = false;
    }
    impl At for super::AtStart {
        const START: bool = true;
    }
    impl At for super::BehindTask {}
    impl At for super::BehindWait {}
}

/// A workflow or a branch under construction: what takes an `I` and has an `O` at its end so far. `At` says where it
/// stands, and so what can be said next.
///
/// Nothing is checked before [`Chain::build`], which then reports every mistake.
#[must_use = "a chain does nothing until it is built"]
pub struct Chain<I, O, At> {
    pub(super) draft: Draft,
    types: PhantomData<fn(I) -> (O, At)>,
}

impl Workflow<(), ()> {
    /// Begins a workflow. Its input is that of its first node.
    pub fn builder<I>(name: impl Into<String>) -> Chain<I, I, AtStart> {
        Chain::of(Draft::named(name.into()))
    }
}

impl<I> Chain<I, I, AtStart> {
    /// What a task that has failed for good leads to. Tuning: it may change under instances that live; what crashes of
    /// workers lead to is settled when an instance is started.
    ///
    /// **Default:** [`OnExhausted::Fail`].
    pub fn on_exhausted(mut self, then: OnExhausted) -> Self {
        self.draft.on_exhausted = then;
        self
    }
}

impl<I, O, At> Chain<I, O, At> {
    pub(super) fn of(draft: Draft) -> Self {
        Self {
            draft,
            types: PhantomData,
        }
    }

    /// Runs a handler on the output so far: an `async fn(Input) -> Result<Output, E>` or an
    /// `async fn(TaskContext, Input) -> Result<Output, E>`.
    ///
    /// `id` names the task in the store and in logs: 1 to 64 characters of `A-Z a-z 0-9 _ . -`, unique in the workflow.
    /// What says more about the task stands behind it: `retry`, `timeout`, `deadline`, `queue`.
    pub fn task<H, Kind>(
        mut self,
        id: impl Into<String>,
        handler: H,
    ) -> Chain<I, H::Output, BehindTask>
    where
        H: Handler<O, Kind>,
        H::Output: Serialize + Send + 'static,
        O: DeserializeOwned + Send + 'static,
        Kind: 'static,
    {
        self.draft.task(id.into(), erase(handler));
        Chain::of(self.draft)
    }

    /// Waits, 1 ms to ten years, and passes the output so far on. The wait is stored, no worker is held up by it.
    pub fn delay(mut self, id: impl Into<String>, by: Duration) -> Chain<I, O, BehindDelay> {
        self.draft.delay(id.into(), by);
        Chain::of(self.draft)
    }

    /// Waits until a client sends a signal, and goes on with its payload in place of the output so far. Any number of
    /// instances can wait for any time, no worker is held up by it.
    ///
    /// `id` names the node as that of a task does, and the signal, unless [`signal`](Chain::signal) names another one.
    /// Signals of this name are kept in their order from the start of the instance on; the wait takes the oldest that
    /// nobody took. Two nodes that wait for one name are served in the order in which they began to wait.
    ///
    /// Without [`timeout`](Chain::timeout) or [`or_none_after`](Chain::or_none_after) behind it, it waits for ever.
    ///
    /// A payload that is no `T` fails the task that reads it for good, and says so. What was there before the wait goes
    /// around it in a branch without nodes:
    ///
    /// ```
    /// # use std::time::Duration;
    /// use tenure::{Approval, Workflow};
    ///
    /// # fn main() -> Result<(), tenure::BuildErrors> {
    /// let loan = Workflow::builder("loan")
    ///     .task("assess", async |income: u64| anyhow::Ok(income * 3))
    ///     .fork(|f| {
    ///         f.branch(|b| b).branch(|b| {
    ///             b.await_signal::<Approval>("approval").or_none_after(Duration::from_secs(86_400))
    ///         })
    ///     })
    ///     .join("decide", async |(limit, approval): (u64, Option<Approval>)| {
    ///         anyhow::Ok(if approval.is_some_and(|a| a.is_approved()) { limit } else { 0 })
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn await_signal<T>(mut self, id: impl Into<String>) -> Chain<I, T, BehindWait>
    where
        T: DeserializeOwned + Send + 'static,
    {
        self.draft.wait(id.into());
        Chain::of(self.draft)
    }

    /// Goes on in branches that run at once, each with the output so far; a [`join`](Forked::join) takes what they bring.
    /// For branches of one kind, or many, see [`Chain::fork_each`].
    pub fn fork<Outs>(
        self,
        branches: impl FnOnce(Forked<I, O, ()>) -> Forked<I, O, Outs>,
    ) -> Forked<I, O, Outs> {
        branches(Forked::of(self.draft))
    }

    /// Goes on in one branch for each of `keys`, at most 256, each with the output so far; a [`join`](ForkedEach::join)
    /// takes a `Vec` of what they bring, in the order of the keys.
    ///
    /// The keys are part of the definition. Names of nodes must differ from branch to branch, so they are made of the key.
    pub fn fork_each<Key, B, At2>(
        self,
        keys: impl IntoIterator<Item = Key>,
        mut branch: impl FnMut(Key, Chain<O, O, AtBranch>) -> Chain<O, B, At2>,
    ) -> ForkedEach<I, B> {
        let branches = keys
            .into_iter()
            // One more than is allowed is enough to be told so, should the keys never end.
            .take(super::MAX_BRANCHES + 1)
            .map(|key| branch(key, Chain::of(Draft::default())).draft)
            .collect();
        ForkedEach::of(self.draft, branches)
    }

    /// Forgets where the chain stands, so that chains built in different ways have one type:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tenure::{task::TaskError, workflow::Workflow};
    /// # async fn mail(order: u64) -> Result<u64, TaskError> { Ok(order) }
    /// # let careful = true;
    /// let chain = Workflow::builder("checkout").task("mail", mail);
    /// let chain = if careful { chain.delay("wait", Duration::from_secs(60)).anywhere() } else { chain.anywhere() };
    /// # assert!(chain.build().is_ok());
    /// ```
    pub fn anywhere(self) -> Chain<I, O, Anywhere> {
        Chain::of(self.draft)
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// [`BuildErrors`] lists every mistake with what is allowed instead: names, durations, counts.
    pub fn build(self) -> Result<Workflow<I, O>, BuildErrors> {
        self.draft.build().map(Workflow::typed)
    }

    fn limits(&mut self, set: impl FnOnce(&mut Limits)) {
        if let Some(node) = self.draft.last() {
            set(&mut node.limits);
        }
    }

    /// What happens after the task before it failed. Default: [`RetryPolicy::default`], ten attempts from 1 s on.
    pub fn retry(mut self, policy: RetryPolicy) -> Self
    where
        At: IsTask,
    {
        if let Some(node) = self.draft.last() {
            node.retry = policy;
        }
        self
    }

    /// Behind a task or join: how long one attempt at it may take, from its claim on, 1 ms to ten years. Then its future
    /// is dropped and the attempt counts as a failure. Default: no bound.
    ///
    /// Behind [`await_signal`](Chain::await_signal): how long to wait for the signal, from when the node is reached on.
    /// Then the instance fails with an error of kind `timeout` that names the signal. Default: for ever.
    pub fn timeout(mut self, timeout: Duration) -> Self
    where
        At: HasTimeout,
    {
        self.limits(|limits| limits.timeout = Some(timeout));
        self
    }

    /// How long all attempts at the task before it may take together, with the waits between them, from its first claim
    /// on: 1 ms to ten years. Then it fails for good. Default: no bound.
    pub fn deadline(mut self, deadline: Duration) -> Self
    where
        At: IsTask,
    {
        self.limits(|limits| limits.deadline = Some(deadline));
        self
    }

    /// Behind a task or join: its queue. Directly behind [`Workflow::builder`]: the queue of all nodes that have none of
    /// their own. Default: `default`.
    ///
    /// A queue is not part of the definition hash. When it changes, what stands in the old queue is still there: let a
    /// worker with the old definition finish it.
    pub fn queue(mut self, name: impl Into<String>) -> Self
    where
        At: HasQueue,
    {
        if At::START {
            self.draft.queue = Some(name.into());
        } else if let Some(node) = self.draft.last() {
            node.queue = Some(name.into());
        }
        self
    }
}

impl<I, O> Chain<I, O, BehindWait> {
    /// Which signal the node waits for. Default: the one of its own name.
    pub fn signal(mut self, name: impl Into<String>) -> Self {
        if let Some(node) = self.draft.last() {
            node.signal = Some(name.into());
        }
        self
    }

    /// Waits this long, 1 ms to ten years from when the node is reached on, and then goes on without the signal: with
    /// `None` in place of its payload. A payload that is `nil` reads as `None` too.
    pub fn or_none_after(mut self, timeout: Duration) -> Chain<I, Option<O>, Anywhere> {
        if let Some(node) = self.draft.last() {
            node.limits.timeout = Some(timeout);
            node.kind = NodeKind::Wait(Late::GoOn);
        }
        Chain::of(self.draft)
    }
}
