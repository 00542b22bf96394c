//! Runs tasks: claims them, keeps them alive, stores what became of them, and recovers what others left behind.
//!
//! | role | what it does |
//! |---|---|
//! | fetcher | claims tasks for free slots, woken by hints |
//! | slot | runs one task after the other: executor, settlement, follow-up |
//! | heartbeat | extends the claims, on a thread of its own |
//! | settler | stores outcomes, many with one call |
//! | keeper | timers, recovery, retention |
//! | mailbox | passes hints to the others |

mod announce;
mod bell;
mod builder;
mod catalog;
mod claims;
mod config;
mod core;
mod executor;
mod fetcher;
mod handle;
mod health;
mod heartbeat;
mod input;
mod keeper;
mod lane;
mod life;
mod mailbox;
mod notes;
mod roles;
mod settle;
mod slot;
mod telemetry;

pub use self::{
    builder::{WorkerBuildError, WorkerBuilder},
    handle::{WorkerError, WorkerHandle, WorkerSummary},
    health::Health,
    life::{Driven, Worker},
    slot::Fate,
};
