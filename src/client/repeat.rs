use std::{future::Future, time::Duration};

use tokio::time::Instant;

use crate::{backoff::Backoff, store::StoreError};

/// A call that failed, after all repeats.
#[derive(Debug)]
pub(crate) struct GaveUp {
    /// The last error.
    pub(crate) error: StoreError,
    /// One of the calls may have been carried out.
    pub(crate) ambiguous: bool,
}

/// A read, repeated in the same way.
pub(crate) async fn read<T, F>(patience: Duration, call: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    repeat(patience, call)
        .await
        .map_err(|gave_up| gave_up.error)
}

/// Repeats a call while it may succeed later, for as long as the caller is patient. Out of memory is an answer, not a
/// reason to repeat: whoever starts work has to know.
pub(crate) async fn repeat<T, F>(
    patience: Duration,
    mut call: impl FnMut() -> F,
) -> Result<T, GaveUp>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let deadline = Instant::now() + patience;
    let mut backoff = Backoff::new();
    let mut ambiguous = false;
    loop {
        let error = match call().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        ambiguous |= error.is_ambiguous();
        let wait = backoff.delay();
        let hopeless = !error.is_retryable() || matches!(error, StoreError::OutOfMemory);
        if hopeless || Instant::now() + wait > deadline {
            return Err(GaveUp { error, ambiguous });
        }
        tokio::time::sleep(wait).await;
    }
}
