use std::{fmt, marker::PhantomData, time::Duration};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{error::ClientError, producer::Client, repeat::read, signal::Signal};
use crate::{
    backoff::Backoff,
    codec,
    ids::{InstanceId, RunId},
    store::{Header, Snapshot, Status, Store, StoreError},
};

/// The result type of a handle that was made from an id alone; see [`Handle::result_bytes`].
#[derive(Debug, Clone, Copy)]
pub enum Untyped {}

/// One run of an instance. Cheap to clone; dropping it changes nothing for the instance.
pub struct Handle<O = Untyped> {
    client: Client,
    id: InstanceId,
    run: RunId,
    was_there: bool,
    result: PhantomData<fn() -> O>,
}

impl<O> Clone for Handle<O> {
    fn clone(&self) -> Self {
        self.typed()
    }
}

impl<O> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("id", &self.id)
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl<O> Handle<O> {
    /// How long without an answer of the store a wait for a result goes on.
    const PATIENCE: Duration = Duration::from_secs(60);
    /// How often a wait looks by itself, should a hint get lost.
    const POLL: Duration = Duration::from_secs(5);

    pub(crate) fn new(client: Client, id: InstanceId, run: RunId) -> Self {
        Self {
            client,
            id,
            run,
            was_there: false,
            result: PhantomData,
        }
    }

    /// Of a start that found its instance there.
    pub(super) fn found(client: Client, id: InstanceId, run: RunId) -> Self {
        Self {
            was_there: true,
            ..Self::new(client, id, run)
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The instance.
    #[must_use]
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The run that this handle is about; a later start of the same id is another run.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Whether the start that made this handle found the instance there and started nothing, as
    /// [`IdPolicy::UseExisting`](crate::IdPolicy::UseExisting) says. False for handles that were made otherwise.
    #[must_use]
    pub fn was_there(&self) -> bool {
        self.was_there
    }

    /// The same run, with the type of its result.
    #[must_use]
    pub fn typed<T>(&self) -> Handle<T> {
        Handle {
            was_there: self.was_there,
            ..Handle::new(self.client.clone(), self.id.clone(), self.run)
        }
    }

    /// Where the instance is now.
    ///
    /// # Errors
    /// [`ClientError::NotFound`], [`ClientError::Replaced`], [`ClientError::Store`].
    pub async fn status(&self) -> Result<Status, ClientError> {
        let header = read(self.client.patience(), || {
            self.client.store_ref().header(&self.id)
        });
        self.own(header.await?).map(|header| header.status)
    }

    /// All that is stored of the instance but its payloads.
    ///
    /// # Errors
    /// As [`Handle::status`].
    pub async fn snapshot(&self) -> Result<Snapshot, ClientError> {
        let snapshot = read(self.client.patience(), || {
            self.client.store_ref().snapshot(&self.id)
        });
        let Some(snapshot) = snapshot.await? else {
            return Err(self.not_found());
        };
        self.own(Some(snapshot.header.clone()))?;
        Ok(snapshot)
    }

    /// Waits for the end and returns the result as it is stored, in MessagePack.
    ///
    /// The end is told by a message, which brings a result of up to 1 KiB along; should it get lost, the wait looks by itself every 5 s. Dropping the future ends the
    /// wait and nothing else.
    ///
    /// # Errors
    /// [`ClientError::Failed`], [`ClientError::Cancelled`], [`ClientError::Terminated`] when it ended so;
    /// [`ClientError::Replaced`] and [`ClientError::NotFound`] when it cannot be found any more;
    /// [`ClientError::Store`] when the store did not answer for 60 s.
    pub async fn result_bytes(&self) -> Result<Bytes, ClientError> {
        let mut waiter = self.client.listen(&self.id, self.run.tail());
        let mut backoff = Backoff::new();
        let mut last_answer = Instant::now();
        loop {
            waiter.reset();
            let wait = match self.look().await {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) => {
                    last_answer = Instant::now();
                    backoff.reset();
                    Self::POLL.mul_f64(0.8 + fastrand::f64() / 5.0)
                }
                Err(ClientError::Store(error))
                    if error.is_retryable() && last_answer.elapsed() < Self::PATIENCE =>
                {
                    backoff.delay()
                }
                Err(error) => return Err(error),
            };
            // A timeout is as good as a hint: both mean to look, unless the hint says it all.
            if let Ok(Some(bytes)) = tokio::time::timeout(wait, waiter.hint()).await {
                return Ok(bytes);
            }
        }
    }

    /// As [`Handle::result_bytes`], for at most a duration.
    ///
    /// # Errors
    /// As [`Handle::result_bytes`], and [`ClientError::TimedOut`].
    pub async fn result_bytes_within(&self, limit: Duration) -> Result<Bytes, ClientError> {
        tokio::time::timeout(limit, self.result_bytes())
            .await
            .unwrap_or_else(|_| {
                Err(ClientError::TimedOut {
                    id: self.id.clone(),
                    after: limit,
                })
            })
    }

    /// Sends a signal to this run; see [`Client::signal`].
    pub fn signal<P>(&self, name: impl AsRef<str>, payload: &P) -> Signal<'_>
    where
        P: serde::Serialize + ?Sized,
    {
        let payload = codec::encode(payload);
        Signal::new(&self.client, Ok(self.id.clone()), name.as_ref(), payload).run(self.run)
    }

    /// The result if the instance is over, `None` if it lives; leaves word that this client waits.
    async fn look(&self) -> Result<Option<Bytes>, ClientError> {
        let store: &dyn Store = self.client.store_ref();
        let header = store
            .watch(&self.id, self.run, self.client.mailbox())
            .await?;
        let header = self.own(header)?;
        match header.status {
            Status::Running | Status::Paused => Ok(None),
            Status::Completed => self.read(header).await.map(Some),
            Status::Failed => Err(self.failed(header)),
            Status::Cancelled | Status::Terminated => Err(self.stopped(header)),
        }
    }

    async fn read(&self, header: Header) -> Result<Bytes, ClientError> {
        let field = header
            .result
            .ok_or_else(|| self.corrupt("result", "the instance is completed without one"))?;
        let values = self
            .client
            .store_ref()
            .values(&self.id, self.run, &[field])
            .await?;
        match values.into_iter().next().flatten() {
            Some(bytes) => Ok(bytes),
            None => {
                // Removed or replaced since the header was read; the header says which.
                let header = self.client.store_ref().header(&self.id).await?;
                self.own(header)?;
                Err(self.corrupt("result", "the field is missing"))
            }
        }
    }

    fn failed(&self, header: Header) -> ClientError {
        match header.error {
            Some(error) => ClientError::Failed {
                id: self.id.clone(),
                error: Box::new(error),
            },
            None => self.corrupt("error", "the instance failed without one"),
        }
    }

    fn stopped(&self, header: Header) -> ClientError {
        let id = self.id.clone();
        let (reason, actor) = header
            .control
            .map_or((None, None), |control| (control.reason, control.actor));
        if header.status == Status::Cancelled {
            ClientError::Cancelled { id, reason, actor }
        } else {
            ClientError::Terminated { id, reason, actor }
        }
    }

    /// The header, if it is that of this run.
    pub(super) fn own(&self, header: Option<Header>) -> Result<Header, ClientError> {
        let header = header.ok_or_else(|| self.not_found())?;
        if header.run == self.run {
            return Ok(header);
        }
        Err(ClientError::Replaced {
            id: self.id.clone(),
            run: self.run,
        })
    }

    fn not_found(&self) -> ClientError {
        ClientError::NotFound {
            id: self.id.clone(),
        }
    }

    fn corrupt(&self, what: &str, reason: &str) -> ClientError {
        StoreError::Corrupt {
            key: self.id.to_string(),
            what: what.into(),
            reason: reason.into(),
        }
        .into()
    }

    fn decode(&self, bytes: &[u8]) -> Result<O, ClientError>
    where
        O: DeserializeOwned,
    {
        codec::decode(bytes).map_err(|source| ClientError::WrongType {
            id: self.id.clone(),
            source: source.into(),
        })
    }
}

impl<O: DeserializeOwned> Handle<O> {
    /// Waits for the end and returns the result.
    ///
    /// # Errors
    /// As [`Handle::result_bytes`], and [`ClientError::WrongType`].
    pub async fn result(&self) -> Result<O, ClientError> {
        let bytes = self.result_bytes().await?;
        self.decode(&bytes)
    }

    /// As [`Handle::result`], for at most a duration.
    ///
    /// # Errors
    /// As [`Handle::result`], and [`ClientError::TimedOut`].
    pub async fn result_within(&self, limit: Duration) -> Result<O, ClientError> {
        let bytes = self.result_bytes_within(limit).await?;
        self.decode(&bytes)
    }
}
