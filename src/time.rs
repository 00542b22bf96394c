//! The one clock. Everything that needs a time of its own takes it from here; transitions take Redis's.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};

/// Milliseconds since the Unix epoch, as the store counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub(crate) i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// As a calendar time; `None` beyond the years that chrono can write.
    #[must_use]
    pub fn to_datetime(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.0)
    }

    /// This time and a duration after it, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// How long after `earlier` this is; zero if it is before.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(time.timestamp_millis())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A duration in whole milliseconds, rounded up so that a short one never becomes none.
#[must_use]
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Where a [`MemoryStore`](crate::MemoryStore) takes its time from.
#[derive(Debug, Clone, Default)]
pub struct Clock(Source);

#[derive(Debug, Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<AtomicI64>),
    #[cfg(feature = "testing")]
    Simulated {
        zero: tokio::time::Instant,
        /// The time at `zero`, with all steps.
        base: Arc<AtomicI64>,
    },
}

impl Clock {
    /// The clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that moves only by [`Clock::step`]; copies of it move together.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// A clock that goes as tokio's, which a runtime with paused time moves from timer to timer, and that is moved by
    /// [`Clock::step`] besides; copies of it move together.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn simulated(start: Timestamp) -> Self {
        Self(Source::Simulated {
            zero: tokio::time::Instant::now(),
            base: Arc::new(AtomicI64::new(start.0)),
        })
    }

    /// The time now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Utc::now().into(),
            Source::Manual(now) => Timestamp(now.load(Ordering::SeqCst)),
            #[cfg(feature = "testing")]
            Source::Simulated { zero, base } => {
                let elapsed = i64::try_from(zero.elapsed().as_millis()).unwrap_or(i64::MAX);
                Timestamp(base.load(Ordering::SeqCst).saturating_add(elapsed))
            }
        }
    }

    /// Moves a manual or simulated clock by so many milliseconds, backwards too. The clock of the machine does not move.
    pub fn step(&self, millis: i64) {
        match &self.0 {
            Source::System => {}
            Source::Manual(base) => {
                base.fetch_add(millis, Ordering::SeqCst);
            }
            #[cfg(feature = "testing")]
            Source::Simulated { base, .. } => {
                base.fetch_add(millis, Ordering::SeqCst);
            }
        }
    }
}
