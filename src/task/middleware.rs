//! What stands around all handlers of a worker.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};

use super::{ErasedHandler, TaskContext, TaskError};

/// Stands around the handlers of a worker: sees each task's context and payloads, and decides whether the handler runs.
///
/// What it does counts as the handler's: an error fails the attempt, a panic is caught, the task's timeout, its
/// cancellation and the loss of its claim drop its future at the next await. It may run more than once for one task, as
/// a handler does.
///
/// ```
/// use bytes::Bytes;
/// use tenure::{
///     TaskContext, TaskError,
///     task::{Middleware, Next},
/// };
///
/// struct Maintenance(bool);
///
/// impl Middleware for Maintenance {
///     async fn handle(
///         &self,
///         ctx: TaskContext,
///         input: Bytes,
///         next: Next<'_>,
///     ) -> Result<Bytes, TaskError> {
///         if self.0 {
///             return Err(TaskError::new("closed for maintenance"));
///         }
///         next.run(ctx, input).await
///     }
/// }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Runs around one attempt; `next` is the middleware behind it, or the handler. Payloads are MessagePack.
    fn handle(
        &self,
        ctx: TaskContext,
        input: Bytes,
        next: Next<'_>,
    ) -> impl Future<Output = Result<Bytes, TaskError>> + Send;
}

/// A middleware without its type.
pub(crate) trait Layer: Send + Sync {
    fn handle<'a>(
        &'a self,
        ctx: TaskContext,
        input: Bytes,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Bytes, TaskError>>;
}

impl<M: Middleware> Layer for M {
    fn handle<'a>(
        &'a self,
        ctx: TaskContext,
        input: Bytes,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Bytes, TaskError>> {
        Middleware::handle(self, ctx, input, next).boxed()
    }
}

/// What stands behind a middleware: the next one, and at last the handler.
pub struct Next<'a> {
    layers: &'a [Arc<dyn Layer>],
    handler: &'a dyn ErasedHandler,
}

impl std::fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next")
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Next<'a> {
    pub(crate) fn new(layers: &'a [Arc<dyn Layer>], handler: &'a dyn ErasedHandler) -> Self {
        Self { layers, handler }
    }

    /// Runs it. Dropping the future stops it at its next await.
    pub fn run(self, ctx: TaskContext, input: Bytes) -> BoxFuture<'a, Result<Bytes, TaskError>> {
        match self.layers {
            [] => self.handler.run(ctx, input),
            [first, layers @ ..] => first.handle(ctx, input, Next { layers, ..self }),
        }
    }
}
