use std::{marker::PhantomData, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};

use super::{TaskContext, TaskError};
use crate::{
    codec::{self, CodecError},
    ids::TaskName,
};

/// Marks handlers that take only their input: `async fn(Input) -> Result<Output, E>`.
#[derive(Debug)]
pub enum Plain {}

/// Marks handlers that take their context too: `async fn(TaskContext, Input) -> Result<Output, E>`.
#[derive(Debug)]
pub enum WithContext {}

/// User code of a task: what an `async fn` of the right shape is by itself. `Kind` is [`Plain`] or [`WithContext`] and
/// always inferred.
#[diagnostic::on_unimplemented(
    message = "this is no handler for `{I}`, which is what the workflow hands to it here",
    label = "not an `async fn` from `{I}` to `Result<_, _>`",
    note = "a handler is an `async fn(Input) -> Result<Output, E>` or an `async fn(TaskContext, Input) -> Result<Output, E>`, where `E` converts into `TaskError`",
    note = "its input is the output of the node before it; behind a fork, a tuple of the outputs of the branches, in their order; behind `fork_each`, a `Vec` of them"
)]
pub trait Handler<I, Kind>: Send + Sync + 'static {
    /// What it returns, the input of the next node.
    type Output;

    /// Runs it once.
    fn call(
        &self,
        ctx: TaskContext,
        input: I,
    ) -> impl Future<Output = Result<Self::Output, TaskError>> + Send;
}

impl<F, Fut, I, O, E> Handler<I, Plain> for F
where
    F: Fn(I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send,
    I: Send,
    E: Into<TaskError>,
{
    type Output = O;

    async fn call(&self, _ctx: TaskContext, input: I) -> Result<O, TaskError> {
        self(input).await.map_err(Into::into)
    }
}

impl<F, Fut, I, O, E> Handler<I, WithContext> for F
where
    F: Fn(TaskContext, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, E>> + Send,
    I: Send,
    E: Into<TaskError>,
{
    type Output = O;

    async fn call(&self, ctx: TaskContext, input: I) -> Result<O, TaskError> {
        self(ctx, input).await.map_err(Into::into)
    }
}

/// A handler without its types: bytes to bytes.
pub trait ErasedHandler: Send + Sync {
    /// Runs it once on a payload. Dropping the future stops the handler at its next await.
    ///
    /// A payload that is not of the handler's type is a permanent error, since it will not be another time either; so is
    /// a result that cannot be written.
    fn run(&self, ctx: TaskContext, input: Bytes) -> BoxFuture<'_, Result<Bytes, TaskError>>;
}

/// Takes the types from a handler.
pub fn erase<H, I, Kind>(handler: H) -> Arc<dyn ErasedHandler>
where
    H: Handler<I, Kind>,
    H::Output: Serialize + Send + 'static,
    I: DeserializeOwned + Send + 'static,
    Kind: 'static,
{
    Arc::new(Typed {
        handler,
        types: PhantomData::<fn(I) -> Kind>,
    })
}

struct Typed<H, I, Kind> {
    handler: H,
    types: PhantomData<fn(I) -> Kind>,
}

impl<H, I, Kind> ErasedHandler for Typed<H, I, Kind>
where
    H: Handler<I, Kind>,
    H::Output: Serialize + Send + 'static,
    I: DeserializeOwned + Send + 'static,
    Kind: 'static,
{
    fn run(&self, ctx: TaskContext, input: Bytes) -> BoxFuture<'_, Result<Bytes, TaskError>> {
        Box::pin(async move {
            let task = ctx.task().clone();
            let value = codec::decode::<I>(&input).map_err(|source| {
                TaskError::permanent(PayloadError::Input {
                    task: task.clone(),
                    source,
                })
            })?;
            // A large payload is not held twice while the handler runs.
            drop(input);
            let output = self.handler.call(ctx, value).await?;
            codec::encode(&output)
                .map_err(|source| TaskError::permanent(PayloadError::Output { task, source }))
        })
    }
}

#[derive(Debug, thiserror::Error)]
enum PayloadError {
    #[error("task `{task}` cannot read its input")]
    Input { task: TaskName, source: CodecError },
    #[error("the result of task `{task}` cannot be stored")]
    Output { task: TaskName, source: CodecError },
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::task::Retry;

    async fn double(n: u32) -> Result<u32, TaskError> {
        Ok(n * 2)
    }

    async fn name(ctx: TaskContext, n: u32) -> Result<String, std::fmt::Error> {
        Ok(format!("{}{n}", ctx.task()))
    }

    async fn unwritable((): ()) -> Result<Unwritable, TaskError> {
        Ok(Unwritable)
    }

    struct Unwritable;

    impl Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }

    fn context() -> TaskContext {
        TaskContext::for_test("t").unwrap()
    }

    fn bytes<T: Serialize>(value: T) -> Bytes {
        codec::encode(&value).unwrap()
    }

    #[tokio::test]
    async fn both_shapes_of_handler_run_on_bytes() {
        let output = erase(double).run(context(), bytes(21)).await.unwrap();
        assert_eq!(output, bytes(42));
        let output = erase(name).run(context(), bytes(7)).await.unwrap();
        assert_eq!(output, bytes("t7"));
    }

    #[tokio::test]
    async fn an_input_of_another_type_is_a_permanent_error_that_names_task_type_and_reason() {
        let wrong = bytes(HashMap::from([("a", 1)]));
        let error = erase(double).run(context(), wrong).await.unwrap_err();
        assert_eq!(error.retry(), Retry::Never);
        let message = error.message();
        assert!(message.starts_with("task `t` cannot read its input: "));
        assert!(message.contains("`u32`"), "{message}");
        assert!(message.ends_with("FixMap(1)"), "{message}");
    }

    #[tokio::test]
    async fn a_result_that_cannot_be_written_is_a_permanent_error_with_the_reason() {
        let error = erase(unwritable)
            .run(context(), bytes(()))
            .await
            .unwrap_err();
        assert_eq!(error.retry(), Retry::Never);
        let message = error.message();
        assert!(message.starts_with("the result of task `t` cannot be stored: "));
        assert!(message.ends_with("not today"), "{message}");
    }

    #[tokio::test]
    async fn what_a_handler_says_about_retries_is_kept() {
        async fn never((): ()) -> Result<(), TaskError> {
            Err(TaskError::permanent("broken"))
        }
        let error = erase(never).run(context(), bytes(())).await.unwrap_err();
        assert_eq!(
            (error.retry(), error.message().as_str()),
            (Retry::Never, "broken")
        );
    }
}
