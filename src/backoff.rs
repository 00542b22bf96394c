//! How long to wait before a store is asked again.

use std::time::Duration;

/// Waits that double from 50 ms to a cap, each drawn between half of it and the whole, so that many processes that lost
/// the same server do not come back in step.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    cap: Duration,
    fresh: bool,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const CAP: Duration = Duration::from_secs(5);

    /// Up to 5 s.
    pub(crate) fn new() -> Self {
        Self::capped(Self::CAP)
    }

    /// Up to `cap`.
    pub(crate) fn capped(cap: Duration) -> Self {
        Self {
            next: Self::FIRST.min(cap),
            cap,
            fresh: true,
        }
    }

    /// The next wait.
    pub(crate) fn delay(&mut self) -> Duration {
        self.fresh = false;
        let whole = self.next;
        self.next = (whole * 2).min(self.cap);
        whole.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// After a success.
    pub(crate) fn reset(&mut self) {
        self.fresh = true;
        self.next = Self::FIRST.min(self.cap);
    }

    /// Whether nothing has failed since the last success: the first failure of a row is worth a warning, the others
    /// are not.
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_cap_and_are_spread() {
        let mut backoff = Backoff::new();
        assert!(backoff.is_fresh());
        let waits: Vec<Duration> = (0..20).map(|_| backoff.delay()).collect();
        assert!(waits[0] <= Duration::from_millis(50) && waits[0] >= Duration::from_millis(25));
        assert!(waits[19] <= Duration::from_secs(5) && waits[19] >= Duration::from_millis(2500));
        assert!(!backoff.is_fresh());
        backoff.reset();
        assert!(backoff.delay() <= Duration::from_millis(50));
    }
}
