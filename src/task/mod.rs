//! What user code of a task sees: the handler, its context, its errors.

mod error;

pub use error::ErrorKind;
