//! What a running task writes down: how far it is, and what the tasks of its instance share.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use crate::{
    codec::CodecError,
    error::StoreError,
    ids::{IdError, SharedKey, ValueField},
};

/// Why a task could not write down or read a value.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The key is not allowed.
    #[error(transparent)]
    Key(#[from] IdError),
    /// The value cannot be written, or what is stored is of another type.
    #[error("`{field}` cannot be stored or read: {source}")]
    Codec {
        /// What was asked for.
        field: ValueField,
        /// Why.
        source: Arc<CodecError>,
    },
    /// The value is too long.
    #[error(
        "`{field}` has {size} bytes, at most {limit} are kept; store it elsewhere and set its address"
    )]
    TooLarge {
        /// What was to be stored.
        field: ValueField,
        /// The size in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The instance has as many shared values as it may have.
    #[error(
        "the instance has {limit} shared values already; use fewer keys, or one for several values"
    )]
    Full {
        /// The most shared values of an instance.
        limit: usize,
    },
    /// The task belongs to another worker by now, or its instance is over: nothing was stored, and the handler is about
    /// to be stopped.
    #[error("the claim of the task is lost, or its instance is over; nothing was stored")]
    Lost,
    /// The store failed.
    #[error(transparent)]
    Store(Arc<StoreError>),
}

/// Where a context writes down: a worker's claim.
pub(crate) trait Writer: Send + Sync {
    /// Keeps the last value until it is time to send it.
    fn progress(&self, value: Bytes);
    /// Stores a shared value.
    fn set(&self, key: SharedKey, value: Bytes) -> BoxFuture<'_, Result<(), StateError>>;
    /// Reads what is stored; of progress that which was not sent yet.
    fn read(&self, field: ValueField) -> BoxFuture<'_, Result<Option<Bytes>, StateError>>;
}

/// Where a task writes down.
pub(crate) enum Notebook {
    /// Behind a worker.
    Claim(Arc<dyn Writer>),
    /// By hand: for this context alone.
    Loose(Mutex<BTreeMap<ValueField, Bytes>>),
}

impl Default for Notebook {
    fn default() -> Self {
        Self::Loose(Mutex::default())
    }
}

impl fmt::Debug for Notebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claim(_) => "Claim",
            Self::Loose(_) => "Loose",
        })
    }
}

type Loose = Mutex<BTreeMap<ValueField, Bytes>>;

fn lock(loose: &Loose) -> MutexGuard<'_, BTreeMap<ValueField, Bytes>> {
    loose.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Notebook {
    /// The longest value, in bytes.
    pub(crate) const MAX_BYTES: usize = 64 * 1024;

    /// Keeps how far the task is.
    pub(crate) fn progress(&self, field: ValueField, value: Bytes) -> Result<(), StateError> {
        check(&field, &value)?;
        match self {
            Self::Claim(writer) => writer.progress(value),
            Self::Loose(loose) => drop(lock(loose).insert(field, value)),
        }
        Ok(())
    }

    pub(crate) async fn set(&self, key: SharedKey, value: Bytes) -> Result<(), StateError> {
        let field = ValueField::Shared(key.clone());
        check(&field, &value)?;
        match self {
            Self::Claim(writer) => writer.set(key, value).await,
            Self::Loose(loose) => {
                lock(loose).insert(field, value);
                Ok(())
            }
        }
    }

    pub(crate) async fn read(&self, field: ValueField) -> Result<Option<Bytes>, StateError> {
        match self {
            Self::Claim(writer) => writer.read(field).await,
            Self::Loose(loose) => {
                let value = lock(loose).get(&field).cloned();
                Ok(value)
            }
        }
    }
}

fn check(field: &ValueField, value: &Bytes) -> Result<(), StateError> {
    if value.len() <= Notebook::MAX_BYTES {
        return Ok(());
    }
    Err(StateError::TooLarge {
        field: field.clone(),
        size: value.len(),
        limit: Notebook::MAX_BYTES,
    })
}
