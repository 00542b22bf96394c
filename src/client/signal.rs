use std::{fmt, future::IntoFuture, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::{
    error::ClientError,
    handle::{Handle, Untyped},
    producer::Client,
    repeat::repeat,
    start::StartRequest,
};
use crate::{
    codec::CodecError,
    ids::{IdError, InstanceId, RunId, SignalId, SignalName},
    store::{self, IdPolicy, SignalReply, Store},
};

/// A signal that is sent when it is awaited; the answer is a handle on the run that has it.
///
/// While the store cannot be reached the same signal is repeated, for up to 60 s; it counts once. If the future is dropped,
/// or the process dies, it may have been sent or not: send it again with the same [`id`](Signal::id).
///
/// # Errors
/// [`ClientError::NotFound`], [`ClientError::Over`] and [`ClientError::Replaced`] when there is nothing to signal;
/// [`ClientError::NotAwaited`] and [`ClientError::Full`] when the instance does not take it;
/// [`ClientError::SignalUnknown`] when the store did not answer; [`ClientError::Id`], [`ClientError::Signal`],
/// [`ClientError::Store`].
#[must_use = "a signal is sent when it is awaited"]
pub struct Signal<'a> {
    client: &'a Client,
    id: Result<InstanceId, IdError>,
    name: Result<SignalName, IdError>,
    signal: Option<Result<SignalId, IdError>>,
    run: Option<RunId>,
    payload: Result<Bytes, CodecError>,
}

impl fmt::Debug for Signal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("signal", &self.signal)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl<'a> Signal<'a> {
    pub(crate) fn new(
        client: &'a Client,
        id: Result<InstanceId, IdError>,
        name: &str,
        payload: Result<Bytes, CodecError>,
    ) -> Self {
        Self {
            client,
            id,
            name: SignalName::new(name),
            signal: None,
            run: None,
            payload,
        }
    }

    /// What tells this signal from others to the same run, such as the id of the message that it comes from: a second one
    /// with this id is accepted and changes nothing. 1 to 64 characters of `A-Z a-z 0-9 _ . -`. The last 1000 signals of a
    /// run at least are remembered. Default: a fresh UUID.
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.signal = Some(SignalId::new(id));
        self
    }

    /// The run that is meant: a later start of the instance's id gets no signal that was for an earlier one. Default:
    /// whichever run is there.
    pub fn run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Starts the instance if there is none, and signals it then. The start gets the id of the instance, whatever it had.
    ///
    /// These are up to three calls, each safe to repeat: after a failure the instance may live without the signal. Do the
    /// same again, with the same [`id`](Signal::id), and it has it once.
    ///
    /// ```
    /// # use tenure::{Client, Approval, MemoryStore, Workflow};
    /// # async fn example() -> anyhow::Result<()> {
    /// # let loan = Workflow::builder::<u64>("loan").await_signal::<Approval>("approval").build()?;
    /// # let client = Client::new(MemoryStore::new());
    /// let yes = Approval::approved("ada");
    /// let handle = client.signal("loan-7", "approval", &yes).or_start(client.start(&loan, 7)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn or_start<O>(self, start: StartRequest<'a, O>) -> SignalOrStart<'a, O> {
        SignalOrStart {
            signal: self,
            start,
        }
    }

    /// What is sent, with an id of its own from now on.
    fn request(self) -> Result<(&'a Client, store::SignalRequest), ClientError> {
        let (id, name) = (self.id?, self.name?);
        let payload = self.payload.map_err(|source| ClientError::Signal {
            id: id.clone(),
            name: name.clone(),
            source: Arc::new(source),
        })?;
        let request = store::SignalRequest {
            id,
            run: self.run,
            name,
            signal: self.signal.unwrap_or_else(|| Ok(SignalId::unique()))?,
            payload,
        };
        Ok((self.client, request))
    }
}

impl<'a> IntoFuture for Signal<'a> {
    type Output = Result<Handle, ClientError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (client, request) = self.request()?;
            send(client, &request).await
        })
    }
}

/// A signal that starts its instance if there is none; see [`Signal::or_start`].
#[must_use = "a signal is sent when it is awaited"]
#[derive(Debug)]
pub struct SignalOrStart<'a, O> {
    signal: Signal<'a>,
    start: StartRequest<'a, O>,
}

impl<'a, O: 'static> IntoFuture for SignalOrStart<'a, O> {
    type Output = Result<Handle<O>, ClientError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { signal, start } = self;
        Box::pin(async move {
            let (client, request) = signal.request()?;
            let handle = match send(client, &request).await {
                Err(ClientError::NotFound { .. }) => {
                    let start = start.instance(request.id.clone());
                    start.if_exists(IdPolicy::UseExisting).await?;
                    send(client, &request).await?
                }
                other => other?,
            };
            Ok(handle.typed())
        })
    }
}

async fn send(
    client: &Client,
    request: &store::SignalRequest,
) -> Result<Handle<Untyped>, ClientError> {
    let store: &dyn Store = client.store_ref();
    let id = request.id.clone();
    let reply = repeat(client.patience(), || store.signal(request.clone()))
        .await
        .map_err(|gave_up| {
            if gave_up.ambiguous {
                ClientError::SignalUnknown {
                    id: id.clone(),
                    signal: request.signal.clone(),
                    source: Arc::new(gave_up.error),
                }
            } else {
                gave_up.error.into()
            }
        })?;
    match reply {
        SignalReply::Accepted { run } => Ok(Handle::new(client.clone(), id, run)),
        SignalReply::Over { status, .. } => Err(ClientError::Over { id, status }),
        SignalReply::Replaced { run } => Err(ClientError::Replaced {
            id,
            run: request.run.unwrap_or(run),
        }),
        SignalReply::NotAwaited { awaited } => Err(ClientError::NotAwaited {
            id,
            name: request.name.clone(),
            awaited,
        }),
        SignalReply::Full => Err(ClientError::Full { id }),
        SignalReply::NotFound => Err(ClientError::NotFound { id }),
    }
}
