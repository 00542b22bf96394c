//! Stored values of an instance, also while it goes on.

use serde::de::DeserializeOwned;

use super::{error::ClientError, handle::Handle};
use crate::{
    codec,
    ids::{SharedKey, TaskName, ValueField},
};

impl<O> Handle<O> {
    /// The result of a task, also while the instance goes on; `None` if the task has none yet, or there is no such task. A
    /// task of a loop is named with its iteration: `charge#2`.
    ///
    /// # Errors
    /// [`ClientError::Id`], [`ClientError::WrongValue`] and those of [`Handle::status`].
    pub async fn task_result<T: DeserializeOwned>(
        &self,
        task: impl AsRef<str>,
    ) -> Result<Option<T>, ClientError> {
        self.value(ValueField::Output(TaskName::new(task)?)).await
    }

    /// How far a task said it is, with [`TaskContext::progress`](crate::TaskContext::progress); `None` if it said nothing.
    /// At most a second old while the task runs, and stays when it has ended.
    ///
    /// # Errors
    /// As [`Handle::task_result`].
    pub async fn progress<T: DeserializeOwned>(
        &self,
        task: impl AsRef<str>,
    ) -> Result<Option<T>, ClientError> {
        self.value(ValueField::Progress(TaskName::new(task)?)).await
    }

    /// The value that a task of the instance has set with [`TaskContext::set`](crate::TaskContext::set); `None` if none has.
    ///
    /// # Errors
    /// As [`Handle::task_result`].
    pub async fn shared<T: DeserializeOwned>(
        &self,
        key: impl AsRef<str>,
    ) -> Result<Option<T>, ClientError> {
        self.value(ValueField::Shared(SharedKey::new(key)?)).await
    }

    async fn value<T: DeserializeOwned>(
        &self,
        field: ValueField,
    ) -> Result<Option<T>, ClientError> {
        let store = self.client().store_ref();
        let fields = std::slice::from_ref(&field);
        let values = store.values(self.id(), self.run(), fields).await?;
        let Some(bytes) = values.into_iter().next().flatten() else {
            // Not there, or of another run: the header says which.
            self.own(store.header(self.id()).await?)?;
            return Ok(None);
        };
        codec::decode(&bytes)
            .map(Some)
            .map_err(|source| ClientError::WrongValue {
                id: self.id().clone(),
                field,
                source: source.into(),
            })
    }
}
