use std::{
    collections::HashMap,
    fmt,
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    error::ClientError,
    handle::{Handle, Untyped},
    many,
    repeat::{read, repeat},
    signal::Signal,
    start::{Start, StartRequest, Target},
    waiters::{Waiter, Waiters},
};
use crate::{
    ids::{InstanceId, MailboxId, Partition, RunId, RunTail, WorkflowName},
    store::{Counts, DefinitionRecord, IntoStore, ListRecord, Store, WorkerRecord},
    time::Timestamp,
    workflow::{Graph, Startable},
};

/// Starts instances and steers them. Cheap to clone: clones share one mailbox for results.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    patience: Duration,
}

struct Inner {
    store: Arc<dyn Store>,
    waiters: Waiters,
    /// Definitions that were asked for by name, with the time of asking.
    named: Mutex<HashMap<WorkflowName, (Instant, Arc<Graph>)>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// The longest time for which a store remembers a start well enough for its repeat to be safe.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// How long the definition behind a name is believed to be the current one.
    const NAME_KEPT: Duration = Duration::from_secs(10);

    /// A client of a store. Nothing is sent yet.
    pub fn new(store: impl IntoStore) -> Self {
        Self {
            inner: Arc::new(Inner {
                store: store.into_store(),
                waiters: Waiters::new(),
                named: Mutex::default(),
            }),
            patience: Self::PATIENCE,
        }
    }

    /// How long a call is repeated while the store cannot be reached. Default, and the most that is used: 60 s.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience.min(Self::PATIENCE);
        self
    }

    /// Starts an instance of a workflow: awaiting the request sends it.
    ///
    /// ```
    /// # use tenure::{Client, IdPolicy, MemoryStore, Workflow};
    /// # async fn example() -> anyhow::Result<()> {
    /// # let flow = Workflow::builder("flow").task("t", async |n: u32| anyhow::Ok(n)).build()?;
    /// # let client = Client::new(MemoryStore::new());
    /// let handle = client
    ///     .start(&flow, 7)
    ///     .id("order-42")
    ///     .if_exists(IdPolicy::UseExisting)
    ///     .label("tenant", "acme")
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start<S: Startable>(&self, workflow: &S, input: S::Input) -> StartRequest<'_, S::Output>
    where
        S::Input: serde::Serialize,
    {
        StartRequest::new(self, Target::of(workflow), crate::codec::encode(&input))
    }

    /// Starts an instance of a workflow whose name is all that is known here: its definition is read from the store and kept for
    /// 10 s. The payload is MessagePack that the workflow's first task can read.
    ///
    /// # Errors
    /// When awaited, also [`ClientError::UnknownWorkflow`].
    pub fn start_named(&self, workflow: &WorkflowName, input: Bytes) -> StartRequest<'_, Untyped> {
        StartRequest::new(self, Target::Named(workflow.clone()), Ok(input))
    }

    /// Starts many instances, up to 500 with one call. Answers in the order of the items; one that fails does not hold up
    /// the others. If the future is dropped, some are started and some are not.
    ///
    /// An id that stands twice in it is handled in order, as the policies say.
    pub async fn start_many<S: Startable>(
        &self,
        workflow: &S,
        items: impl IntoIterator<Item = Start<S::Input>>,
    ) -> Vec<Result<Handle<S::Output>, ClientError>>
    where
        S::Input: serde::Serialize,
    {
        let items = items.into_iter();
        let items = items.map(|item| (crate::codec::encode(&item.input), item.options));
        many::start(self, &Target::of(workflow), items).await
    }

    /// As [`Client::start_many`], of a workflow whose name is all that is known here, with payloads that are MessagePack
    /// already; see [`Client::start_named`].
    pub async fn start_many_named(
        &self,
        workflow: &WorkflowName,
        items: impl IntoIterator<Item = Start<Bytes>>,
    ) -> Vec<Result<Handle, ClientError>> {
        let items = items.into_iter();
        let items = items.map(|item| (Ok(item.input), item.options));
        many::start(self, &Target::Named(workflow.clone()), items).await
    }

    /// Sends a signal to an instance: a node that waits for it goes on with this payload, and while none waits it is kept
    /// for the one to come. Awaiting the request sends it; see [`Signal`] for what it answers.
    ///
    /// ```
    /// # use tenure::{Approval, Client, MemoryStore};
    /// # async fn example() -> anyhow::Result<()> {
    /// # let client = Client::new(MemoryStore::new());
    /// let no = Approval::rejected("ada").because("too much");
    /// client.signal("loan-7", "approval", &no).id("mail-4711").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal<P>(&self, id: impl AsRef<str>, name: impl AsRef<str>, payload: &P) -> Signal<'_>
    where
        P: serde::Serialize + ?Sized,
    {
        let payload = crate::codec::encode(payload);
        Signal::new(self, InstanceId::new(id), name.as_ref(), payload)
    }

    /// As [`Client::signal`], with a payload that is MessagePack already.
    pub fn signal_bytes(
        &self,
        id: impl AsRef<str>,
        name: impl AsRef<str>,
        payload: Bytes,
    ) -> Signal<'_> {
        Signal::new(self, InstanceId::new(id), name.as_ref(), Ok(payload))
    }

    /// A handle on the run that an id has now.
    ///
    /// # Errors
    /// [`ClientError::Id`], [`ClientError::NotFound`], [`ClientError::Store`].
    pub async fn handle(&self, id: impl AsRef<str>) -> Result<Handle, ClientError> {
        self.handle_typed(id).await
    }

    /// As [`Client::handle`], with the type of the result.
    ///
    /// # Errors
    /// As [`Client::handle`].
    pub async fn handle_typed<O>(&self, id: impl AsRef<str>) -> Result<Handle<O>, ClientError> {
        let id: InstanceId = id.as_ref().parse()?;
        match read(self.patience, || self.inner.store.header(&id)).await? {
            Some(header) => Ok(Handle::new(self.clone(), id, header.run)),
            None => Err(ClientError::NotFound { id }),
        }
    }

    /// A handle on a run that is known, from a [listing](Client::list) for instance. Nothing is sent.
    #[must_use]
    pub fn handle_on(&self, id: InstanceId, run: RunId) -> Handle {
        Handle::new(self.clone(), id, run)
    }

    /// How much there is of what, in all partitions: entries of live instances where they stand, finished instances by
    /// status. Cheap: lengths of lists and sets. Not of one moment.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn counts(&self) -> Result<Counts, ClientError> {
        let mut total = Counts::default();
        for partition in Partition::all(self.partitions()) {
            let counts = read(self.patience, || self.inner.store.counts(partition));
            total.add(counts.await?);
        }
        Ok(total)
    }

    /// The ready lists of all partitions: how much waits in each, for how long at most, and who is parked at it.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn lists(&self) -> Result<Vec<(Partition, ListRecord)>, ClientError> {
        let mut all = Vec::new();
        for partition in Partition::all(self.partitions()) {
            let lists = read(self.patience, || self.inner.store.lists(partition)).await?;
            all.extend(lists.into_iter().map(|list| (partition, list)));
        }
        Ok(all)
    }

    /// The workers that live, as they said themselves at most 30 s ago; one that died is listed for up to 90 s.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn workers(&self) -> Result<Vec<WorkerRecord>, ClientError> {
        Ok(read(self.patience, || self.inner.store.workers()).await?)
    }

    /// The definitions that workers have published.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn definitions(&self) -> Result<Vec<DefinitionRecord>, ClientError> {
        Ok(read(self.patience, || self.inner.store.definitions()).await?)
    }

    /// What time it is by the clock that all stored times are of: the store's.
    ///
    /// # Errors
    /// [`ClientError::Store`].
    pub async fn now(&self) -> Result<Timestamp, ClientError> {
        Ok(read(self.patience, || self.inner.store.now()).await?)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.inner.store)
    }

    pub(crate) fn store_ref(&self) -> &dyn Store {
        self.inner.store.as_ref()
    }

    pub(crate) fn partitions(&self) -> NonZeroU16 {
        self.inner.store.partitions()
    }

    pub(crate) fn mailbox(&self) -> &MailboxId {
        &self.inner.waiters.mailbox
    }

    pub(crate) fn listen(&self, id: &InstanceId, tail: RunTail) -> Waiter {
        self.inner.waiters.listen(&self.inner.store, id, tail)
    }

    /// The graph of what is to be started.
    pub(crate) async fn graph(&self, target: &Target) -> Result<Arc<Graph>, ClientError> {
        match target {
            Target::Graph(graph) => Ok(Arc::clone(graph)),
            Target::Named(workflow) => self.named(workflow).await,
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    async fn named(&self, workflow: &WorkflowName) -> Result<Arc<Graph>, ClientError> {
        let named = || {
            self.inner
                .named
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((asked, graph)) = named().get(workflow)
            && asked.elapsed() < Self::NAME_KEPT
        {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(self.definition(workflow).await?);
        named().insert(workflow.clone(), (Instant::now(), Arc::clone(&graph)));
        Ok(graph)
    }

    /// The published definition of a name.
    async fn definition(&self, workflow: &WorkflowName) -> Result<Graph, ClientError> {
        let found = repeat(self.patience, || self.inner.store.definition(workflow))
            .await
            .map_err(|gave_up| ClientError::from(gave_up.error))?;
        let Some((_, definition)) = found else {
            return Err(ClientError::UnknownWorkflow {
                workflow: workflow.clone(),
            });
        };
        Graph::from_bytes(&definition).map_err(|error| ClientError::Definition {
            workflow: workflow.clone(),
            reason: error.to_string(),
        })
    }
}
