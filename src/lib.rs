#![doc = include_str!("../README.md")]

mod backoff;
pub mod client;
pub mod codec;
pub mod engine;
pub mod error;
pub mod ids;
mod options;
pub mod reaper;
mod rounds;
pub mod store;
pub mod task;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod worker;
pub mod workflow;

pub use client::{Client, ClientError, Handle, RetryFrom, Start};
pub use ids::{InstanceId, Namespace};
pub use reaper::Reaper;
pub use store::{IdPolicy, Status, StoreError, memory::MemoryStore, redis::RedisStore};
pub use task::{TaskContext, TaskError};
pub use worker::{Worker, WorkerHandle};
pub use workflow::{Approval, BuildErrors, OnExhausted, RetryPolicy, Workflow, WorkflowRef};
