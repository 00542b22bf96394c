//! One clock for all times of a benchmark: microseconds since the Unix epoch that never go back within a process.

use std::{
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::time::Instant;

/// Now. Handlers and producers are in one process, so that a difference of two of these is a duration; timers are due by
/// the wall clock, which Redis shares when it runs on the same machine.
pub(crate) fn micros() -> u64 {
    static ZERO: OnceLock<(Instant, u64)> = OnceLock::new();
    let (instant, wall) = ZERO.get_or_init(|| (Instant::now(), wall()));
    wall + u64::try_from(instant.elapsed().as_micros()).unwrap_or(u64::MAX / 2)
}

#[expect(
    clippy::disallowed_methods,
    reason = "timers are due by the wall clock, and the library's counts milliseconds"
)]
fn wall() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(0))
}
