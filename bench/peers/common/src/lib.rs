//! What the programs of all Rust peers share: how they are called, the loads, the checks, the line they print.
//!
//! A peer implements [`Peer`]; [`load`] runs one on it and prints one line of JSON.

mod args;
mod ledger;
mod loads;
mod server;

pub use args::{Args, Shape};
pub use ledger::{Ledger, payload, payload_index};
pub use loads::load;
pub use server::{connect, used_memory};

use std::{sync::Arc, time::Duration};

/// Anything that goes wrong ends the program: a figure from a load that failed is worth nothing.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A job queue or workflow engine under test. Jobs are numbered from 0; job `n` has the payload [`payload`]`(n)`, and each
/// of its tasks tells the ledger that it ran.
pub trait Peer: Sized {
    /// Connects, and makes what both sides need. Nothing is queued and nothing runs.
    fn connect(args: &Args, ledger: Arc<Ledger>) -> impl Future<Output = Result<Self>>;

    /// Puts jobs `from..from + count` in, in the way that the peer's documentation recommends for many.
    fn enqueue(&mut self, from: usize, count: usize) -> impl Future<Output = Result<()>>;

    /// Starts the worker of this process; it runs until the process ends.
    fn work(&mut self) -> impl Future<Output = Result<()>>;

    /// How many jobs the peer has stored as completed. For a chain or a fan: whole ones, or all of their tasks, as
    /// [`Peer::commits_per_job`] says.
    fn completed(&mut self) -> impl Future<Output = Result<usize>>;

    /// What one job of the shape adds to [`Peer::completed`].
    fn commits_per_job(&self) -> usize;

    /// Bytes that the server holds.
    fn bytes(&mut self) -> impl Future<Output = Result<u64>>;

    /// Puts one job in and waits for its result by the peer's own means. `false`: it has none, and did not wait.
    fn round_trip(&mut self, job: usize) -> impl Future<Output = Result<bool>>;

    /// The longest that a result may be waited for.
    const PATIENCE: Duration = Duration::from_secs(60);
}
