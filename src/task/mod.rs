//! What user code of a task sees: the handler, its context, its errors.
//!
//! A handler is an `async fn(Input) -> Result<Output, E>` or an `async fn(TaskContext, Input) -> Result<Output, E>`,
//! where `E` is anything that converts into a [`TaskError`]: every `std::error::Error`, `anyhow::Error`, `String` and
//! `&str`. It can run more than once for one task (a worker may die behind the side effect and before the commit), so
//! what it does elsewhere should be safe to repeat: see [`TaskContext::idempotency_key`].

mod context;
mod error;
mod handler;
mod middleware;
mod notebook;

pub use context::{ContextParts, Fence, States, TaskContext};
pub use error::{ErrorKind, Retry, TaskError};
pub use handler::{ErasedHandler, Handler, Plain, WithContext, erase};
pub(crate) use middleware::Layer;
pub use middleware::{Middleware, Next};
pub use notebook::StateError;
pub(crate) use notebook::{Notebook, Writer};
