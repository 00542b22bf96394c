//! Starts instances, waits for them and steers them.
//!
//! ```
//! # async fn example() -> anyhow::Result<()> {
//! use tenure::{Client, MemoryStore, Workflow};
//!
//! let greet = Workflow::builder("greet")
//!     .task("greet", async |name: String| anyhow::Ok(format!("Hello, {name}")))
//!     .build()?;
//! let client = Client::new(MemoryStore::new());
//! let handle = client.start(&greet, "Ada".to_owned()).id("greet-ada").await?;
//! handle.cancel("changed my mind", "ada").await?;
//! # Ok(())
//! # }
//! ```

mod bulk;
mod control;
mod definition;
mod error;
mod events;
mod handle;
mod list;
mod many;
mod producer;
mod repeat;
mod signal;
mod start;
mod values;
mod waiters;

pub use crate::engine::RetryFrom;

pub use self::{
    bulk::{Bulk, Progress},
    error::ClientError,
    events::{EventFilter, Events},
    handle::{Handle, Untyped},
    list::{Cursor, Filter, Page},
    producer::Client,
    signal::{Signal, SignalOrStart},
    start::{Start, StartRequest},
};
pub use crate::store::StartMeta;
