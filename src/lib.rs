//! Durable workflows on plain Redis.

pub mod client;
pub mod codec;
pub mod engine;
pub mod error;
pub mod ids;
pub mod reaper;
pub mod store;
pub mod task;
pub mod time;
pub mod worker;
pub mod workflow;
