use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// How a worker is, for probes and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// How long ago the store last answered; `None` if it never did.
    pub last_contact: Option<Duration>,
    /// How many tasks may run at once.
    pub slots: usize,
    /// How many claims are held: of tasks that run, and of those whose outcomes are being stored.
    pub running: usize,
    /// The worker takes no new tasks: it was told to stop.
    pub draining: bool,
    /// The worker has ended.
    pub ended: bool,
    /// Of how many partitions it is keeper.
    pub keeper_of: usize,
}

/// When the store last answered.
#[derive(Debug)]
pub(crate) struct Contact {
    begin: Instant,
    /// Milliseconds from `begin`, plus one; 0 before the first answer.
    last: AtomicU64,
    pub(crate) keeper_of: std::sync::atomic::AtomicUsize,
}

impl Contact {
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            last: AtomicU64::new(0),
            keeper_of: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// The store has answered just now.
    pub(crate) fn heard(&self) {
        let elapsed = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last.fetch_max(elapsed + 1, Ordering::Relaxed);
    }

    /// How long the worker has been there.
    pub(crate) fn uptime(&self) -> Duration {
        self.begin.elapsed()
    }

    pub(crate) fn last(&self) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(
            self.begin
                .elapsed()
                .saturating_sub(Duration::from_millis(last)),
        )
    }
}
