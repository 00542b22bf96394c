//! Durable workflows on plain Redis.

pub mod codec;
pub mod engine;
pub mod error;
pub mod ids;
pub mod store;
pub mod time;
