//! Where a task's input comes from.

use std::future::Future;

use bytes::Bytes;

use super::{claims::Claim, core::Core, executor::Known, telemetry};
use crate::{
    backoff::Backoff,
    codec,
    ids::{InputRef, ValueField},
    store::{Store, StoreError},
};

/// An input, and the field it came from if it is one field as it stands.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) bytes: Bytes,
    pub(crate) field: Option<ValueField>,
}

/// Why there is no input.
#[derive(Debug)]
pub(crate) enum NoInput {
    /// The run is not there any more.
    Gone,
    /// It cannot be read.
    Unreadable { reason: String },
}

/// What came with the claim, what the slot just had in hand, or what the store has.
pub(crate) async fn read(
    core: &Core,
    claim: &Claim,
    join: &[ValueField],
    known: Option<Known>,
) -> Result<Input, NoInput> {
    match &claim.claimed.ticket.input {
        InputRef::Field { field, .. } => {
            let at_hand = claim
                .claimed
                .input
                .clone()
                .or_else(|| known.filter(|known| known.field == *field).map(|k| k.bytes));
            let bytes = match at_hand {
                Some(bytes) => bytes,
                None => one(values(core, claim, std::slice::from_ref(field)).await?)?,
            };
            Ok(Input {
                bytes,
                field: Some(field.clone()),
            })
        }
        InputRef::Join => {
            let parts = values(core, claim, join).await?;
            let bytes = codec::join(&parts);
            Ok(Input { bytes, field: None })
        }
    }
}

fn one(mut values: Vec<Bytes>) -> Result<Bytes, NoInput> {
    values.pop().ok_or(NoInput::Gone)
}

/// Payloads of the run, all of them.
async fn values(core: &Core, claim: &Claim, fields: &[ValueField]) -> Result<Vec<Bytes>, NoInput> {
    let store: &dyn Store = core.store.as_ref();
    let (id, run) = (&claim.claimed.ticket.id, claim.claimed.run);
    let values = patiently(|| store.values(id, run, fields))
        .await
        .map_err(|error| NoInput::Unreadable {
            reason: telemetry::chain(&error),
        })?;
    core.health.heard();
    values
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .ok_or(NoInput::Gone)
}

/// Repeats a read for as long as it may succeed; the task's own bounds end it.
async fn patiently<T, F>(mut read: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut backoff = Backoff::new();
    loop {
        match read().await {
            Err(error) if error.is_retryable() => {
                if backoff.is_fresh() {
                    tracing::warn!(%error, "an input cannot be read yet");
                }
                tokio::time::sleep(backoff.delay()).await;
            }
            done => return done,
        }
    }
}
