use std::{fmt, future::IntoFuture, marker::PhantomData, sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;

use super::{error::ClientError, handle::Handle, producer::Client, repeat::repeat};
use crate::{
    codec::CodecError,
    engine,
    ids::{IdError, InstanceId, RunId, WorkflowName},
    options,
    store::{Begin, IdPolicy, StartItem, StartMeta, StartReply, Store, StoreError},
    workflow::{Graph, Startable},
};

/// What is started.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Graph(Arc<Graph>),
    Named(WorkflowName),
}

impl Target {
    /// A workflow is its graph, a reference is its name.
    pub(crate) fn of<S: Startable>(workflow: &S) -> Self {
        match workflow.graph() {
            Some(graph) => Self::Graph(Arc::clone(graph)),
            None => Self::Named(workflow.name().clone()),
        }
    }
}

/// All that can be said about one start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    id: Option<Result<InstanceId, IdError>>,
    policy: IdPolicy,
    begin: Begin,
    meta: StartMeta,
    max_crashes: Option<u32>,
}

impl Options {
    /// Crashes of each task's workers that are survived unless a start says otherwise.
    const MAX_CRASHES: u32 = 5;
    /// The longest delay of a start.
    const MAX_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

    /// The item to send, but for its input.
    pub(crate) fn item(self, graph: &Graph, input: Bytes) -> Result<StartItem, ClientError> {
        let id = self.id.unwrap_or_else(|| Ok(InstanceId::unique()))?;
        if let Begin::After(delay) = self.begin {
            options::duration("delay", delay, Duration::ZERO, Self::MAX_DELAY)?;
        }
        let meta = self.meta.encode().map_err(|source| ClientError::Input {
            id: id.clone(),
            source: source.into(),
        })?;
        Ok(StartItem {
            id,
            run: RunId::unique(),
            policy: self.policy,
            workflow: graph.name().clone(),
            definition: graph.hash(),
            queue: graph.queue().clone(),
            begin: self.begin,
            signals: graph.signals(),
            first: engine::begin(graph, input.len()),
            input,
            meta,
            on_exhausted: graph.on_exhausted(),
            max_crashes: self.max_crashes.unwrap_or(Self::MAX_CRASHES),
            waiter: None,
        })
    }
}

macro_rules! setters {
    () => {
        /// The instance's id. Default: a fresh UUIDv7. An id that is not allowed is an error of the start.
        pub fn id(mut self, id: impl AsRef<str>) -> Self {
            self.options.id = Some(InstanceId::new(id));
            self
        }

        /// The id as an [`InstanceId`], for one with a placement.
        pub fn instance(mut self, id: InstanceId) -> Self {
            self.options.id = Some(Ok(id));
            self
        }

        /// An id from something that names this start, such as the id of a message: a second start with the same key
        /// answers with the instance of the first. Short for [`id`](Self::id) and [`IdPolicy::UseExisting`].
        pub fn idempotency_key(self, key: impl AsRef<str>) -> Self {
            self.id(key).if_exists(IdPolicy::UseExisting)
        }

        /// What happens when the id is taken. Default: [`IdPolicy::Fail`].
        pub fn if_exists(mut self, policy: IdPolicy) -> Self {
            self.options.policy = policy;
            self
        }

        /// Begins after a delay, up to ten years. Default: at once.
        pub fn delay(mut self, delay: Duration) -> Self {
            self.options.begin = Begin::After(delay);
            self
        }

        /// Begins at a time, by the store's clock; at once if it has passed. Default: at once.
        pub fn at(mut self, time: DateTime<Utc>) -> Self {
            self.options.begin = Begin::At(time.into());
            self
        }

        /// A label, for people. Default: none.
        pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
            self.options.meta.labels.insert(key.into(), value.into());
            self
        }

        /// Who or what starts it, for people. Default: nobody.
        pub fn created_by(mut self, who: impl Into<String>) -> Self {
            self.options.meta.created_by = Some(who.into());
            self
        }

        /// How many crashes of its workers each task survives; one more fails the instance. Apart from the attempts of
        /// the retry policy. Default: 5.
        pub fn max_crashes(mut self, crashes: u32) -> Self {
            self.options.max_crashes = Some(crashes);
            self
        }
    };
}

/// One item of [`Client::start_many`] and [`Client::start_many_named`].
#[must_use = "an item does nothing until it is given to start_many()"]
#[derive(Debug, Clone)]
pub struct Start<I> {
    pub(crate) input: I,
    pub(crate) options: Options,
}

impl<I> Start<I> {
    /// An instance with this input.
    pub fn new(input: I) -> Self {
        Self {
            input,
            options: Options::default(),
        }
    }

    setters!();
}

/// A start that is sent when it is awaited.
///
/// While the store cannot be reached the same start is repeated, safely, for up to 60 s. If the future is dropped, or the
/// process dies, the instance may live or not; a start with the same id and [`IdPolicy::UseExisting`] tells.
#[must_use = "a start is sent when it is awaited"]
pub struct StartRequest<'a, O> {
    client: &'a Client,
    target: Target,
    input: Result<Bytes, CodecError>,
    pub(crate) options: Options,
    result: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for StartRequest<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartRequest")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<'a, O> StartRequest<'a, O> {
    pub(crate) fn new(
        client: &'a Client,
        target: Target,
        input: Result<Bytes, CodecError>,
    ) -> Self {
        Self {
            client,
            target,
            input,
            options: Options::default(),
            result: PhantomData,
        }
    }

    setters!();

    async fn send(self) -> Result<Handle<O>, ClientError> {
        let graph = self.client.graph(&self.target).await?;
        let item = prepare(self.client, &graph, self.input, self.options)?;
        let partition = item.id.partition(self.client.partitions());
        let store: &dyn Store = self.client.store_ref();
        let replies = repeat(self.client.patience(), || {
            store.start(partition, vec![item.clone()])
        })
        .await
        .map_err(|gave_up| {
            if gave_up.ambiguous {
                ClientError::Unknown {
                    id: item.id.clone(),
                    run: item.run,
                    source: Arc::new(gave_up.error),
                }
            } else {
                gave_up.error.into()
            }
        })?;
        let reply = replies.first().copied().unwrap_or(StartReply::Started);
        outcome(self.client, item.id, item.run, reply)
    }
}

impl<'a, O: 'static> IntoFuture for StartRequest<'a, O> {
    type Output = Result<Handle<O>, ClientError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The item to send; what the store would refuse is refused here, before its neighbours suffer.
pub(crate) fn prepare(
    client: &Client,
    graph: &Graph,
    input: Result<Bytes, CodecError>,
    options: Options,
) -> Result<StartItem, ClientError> {
    let (input, unreadable) = match input {
        Ok(input) => (input, None),
        Err(error) => (Bytes::new(), Some(error)),
    };
    let item = options.item(graph, input)?;
    if let Some(source) = unreadable {
        return Err(ClientError::Input {
            id: item.id,
            source: source.into(),
        });
    }
    let (size, limit) = (item.input.len(), client.store_ref().max_payload());
    if size > limit {
        return Err(ClientError::TooLarge {
            id: item.id,
            size,
            limit,
        });
    }
    let size = item.payload_len() - size;
    if size > limit {
        let what = format!("the labels of `{}`", item.id);
        return Err(StoreError::TooLarge { what, size, limit }.into());
    }
    Ok(item)
}

/// What a reply means for the caller.
pub(crate) fn outcome<O>(
    client: &Client,
    id: InstanceId,
    run: RunId,
    reply: StartReply,
) -> Result<Handle<O>, ClientError> {
    match reply {
        // Replaced already: the handle will say so to whoever asks it.
        StartReply::Started | StartReply::Superseded => Ok(Handle::new(client.clone(), id, run)),
        StartReply::Existing { run, .. } => Ok(Handle::found(client.clone(), id, run)),
        StartReply::Exists { run, status } => Err(ClientError::AlreadyExists { id, run, status }),
    }
}
