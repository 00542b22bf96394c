//! Waits on conditions, with bounds that a loaded machine does not reach.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a condition may take.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(
            begin.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        sleep(LOOK).await;
    }
}

/// Waits until there is something.
pub(crate) async fn until_some<T>(what: &str, mut there: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = there().await {
            return found;
        }
        assert!(
            begin.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        sleep(LOOK).await;
    }
}

/// Looks again and again for a while: what must not happen is only shown by time in which it could have.
pub(crate) async fn meanwhile(time: Duration, mut look: impl AsyncFnMut()) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        look().await;
        sleep(LOOK).await;
    }
}
