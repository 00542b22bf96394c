use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest timeout, deadline and delay: ten years of 365 days.
pub const MAX_DURATION: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The shortest timeout, deadline and delay: time is counted in milliseconds.
pub const MIN_DURATION: Duration = Duration::from_millis(1);

/// The bounds in time of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// For each attempt, counted from its claim. Default: none.
    pub timeout: Option<Duration>,
    /// Over all attempts, counted from the first claim. Default: none.
    pub deadline: Option<Duration>,
}

impl Limits {
    /// Neither bound.
    pub const NONE: Self = Self {
        timeout: None,
        deadline: None,
    };

    /// Whether there is no bound at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.timeout.is_none() && self.deadline.is_none()
    }
}

/// What a workflow does when a task of it has failed for good: its attempts are used up, its error is permanent, its
/// deadline leaves no time for another attempt, or its workers crashed too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// The instance fails: it is dead, and kept for a [retry](crate::Handle::retry).
    #[default]
    Fail,
    /// The instance is paused with the error as its reason. What runs beside the task goes on; when a person
    /// [resumes](crate::Handle::resume) it, the task begins again with all its attempts.
    Pause,
}

/// What happens after a task failed: how many failures it may have, and how long each next attempt waits.
///
/// Errors, panics and timeouts are failures. The death of a worker is not one: it has a budget of its own, `max_crashes`.
///
/// **Default**, for each task that says nothing: [`RetryPolicy::exponential`] from 1 s, so that the ten attempts spread
/// over about nine minutes.
///
/// ```
/// use std::time::Duration;
/// use tenure::workflow::RetryPolicy;
///
/// let policy = RetryPolicy::exponential(Duration::from_millis(200)).cap(Duration::from_secs(1)).jitter(0.0);
/// let waits: Vec<_> = (1..=4).map(|failures| policy.delay(failures, 0.5).as_millis()).collect();
/// assert_eq!(waits, [200, 400, 800, 1000]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    max_attempts: u32,
    growth: Growth,
    jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Growth {
    Double { initial: Duration, cap: Duration },
    Fixed { delay: Duration },
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1))
    }
}

impl RetryPolicy {
    /// How many attempts a task has if its policy says nothing.
    pub const DEFAULT_MAX_ATTEMPTS: u32 = 10;
    /// How much later than its delay an attempt may begin if its policy says nothing, as a part of the delay.
    pub const DEFAULT_JITTER: f64 = 0.25;
    /// What delays grow to if the policy says nothing.
    pub const DEFAULT_CAP: Duration = Duration::from_secs(3600);

    /// Waits `initial` after the first failure and twice as long after each further one, up to the cap.
    ///
    /// Default: 10 attempts; a cap of one hour, or `initial` if that is longer; a jitter of 0.25.
    #[must_use]
    pub fn exponential(initial: Duration) -> Self {
        Self::of(Growth::Double {
            initial,
            cap: initial.max(Self::DEFAULT_CAP),
        })
    }

    /// Waits the same time after each failure; zero retries at once.
    ///
    /// Default: 10 attempts, a jitter of 0.25.
    #[must_use]
    pub fn fixed(delay: Duration) -> Self {
        Self::of(Growth::Fixed { delay })
    }

    /// No second attempt: the first failure ends the task.
    #[must_use]
    pub fn none() -> Self {
        Self::fixed(Duration::ZERO).max_attempts(1)
    }

    fn of(growth: Growth) -> Self {
        Self {
            max_attempts: Self::DEFAULT_MAX_ATTEMPTS,
            growth,
            jitter: Self::DEFAULT_JITTER,
        }
    }

    /// How many failures end the task: 1 or more; `u32::MAX` is as good as no bound. Default: 10.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// The longest delay of an exponential policy, before its jitter; a fixed one has no cap. Default: one hour.
    #[must_use]
    pub fn cap(mut self, longest: Duration) -> Self {
        if let Growth::Double { cap, .. } = &mut self.growth {
            *cap = longest;
        }
        self
    }

    /// By how much of its delay, 0 to 1, an attempt is put off at random, so that tasks that failed together do not all
    /// come back together. It never shortens a delay. Default: 0.25.
    #[must_use]
    pub fn jitter(mut self, part: f64) -> Self {
        self.jitter = part;
        self
    }

    /// How many failures end the task.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.max_attempts
    }

    /// How long the attempt after the `failures`-th failure (1 is the first) waits. `jitter` is a random number from 0
    /// to 1; more than ten years are never waited.
    #[must_use]
    pub fn delay(&self, failures: u32, jitter: f64) -> Duration {
        let base = match self.growth {
            Growth::Fixed { delay } => delay,
            Growth::Double { initial, cap } => 1_u32
                .checked_shl(failures.saturating_sub(1))
                .and_then(|factor| initial.checked_mul(factor))
                .map_or(cap, |delay| delay.min(cap)),
        };
        let base = base.min(MAX_DURATION);
        base + base.mul_f64(part(self.jitter) * part(jitter))
    }

    /// The durations of this policy, with what each is, for the builder to check.
    pub(super) fn durations(&self) -> Vec<(&'static str, Duration)> {
        match self.growth {
            // Zero is a fixed delay like another: at once.
            Growth::Fixed { delay } => vec![("delay between attempts", delay.max(MIN_DURATION))],
            Growth::Double { initial, cap } => {
                vec![
                    ("initial delay of retries", initial),
                    ("cap of retries", cap),
                ]
            }
        }
    }

    pub(super) fn jitter_part(&self) -> f64 {
        self.jitter
    }
}

/// A number as a part of something; `mul_f64` panics at what is none.
fn part(number: f64) -> f64 {
    if number.is_nan() {
        0.0
    } else {
        number.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_cap_and_never_overflow() {
        let policy = RetryPolicy::exponential(SECOND).cap(10 * SECOND);
        let delays = |p: &RetryPolicy, list: &[u32]| -> Vec<u64> {
            list.iter().map(|n| p.delay(*n, 0.0).as_secs()).collect()
        };
        assert_eq!(
            delays(&policy, &[0, 1, 2, 3, 4, 5, 31, 32, 33, 64, u32::MAX]),
            [1, 1, 2, 4, 8, 10, 10, 10, 10, 10, 10]
        );
        assert_eq!(
            RetryPolicy::default().delay(u32::MAX, 0.0),
            RetryPolicy::DEFAULT_CAP
        );
        let huge = RetryPolicy::exponential(Duration::MAX).cap(Duration::MAX);
        assert_eq!(huge.delay(7, 0.0), MAX_DURATION);
        assert_eq!(
            RetryPolicy::fixed(Duration::MAX).delay(1, 1.0),
            MAX_DURATION + MAX_DURATION / 4
        );
    }

    #[test]
    fn an_initial_delay_over_the_default_cap_is_kept() {
        let day = 24 * 3600 * SECOND;
        assert_eq!(RetryPolicy::exponential(day).delay(1, 0.0), day);
        assert_eq!(RetryPolicy::exponential(day).delay(2, 0.0), day);
    }

    #[test]
    fn tasks_that_fail_together_come_back_spread_over_a_fifth_of_the_delay_or_more() {
        // case 42
        for policy in [RetryPolicy::default(), RetryPolicy::fixed(8 * SECOND)] {
            let delays: Vec<_> = (0..1000_u32)
                .map(|i| policy.delay(4, f64::from(i) / 1000.0))
                .collect();
            let (first, last) = (delays[0], delays[999]);
            assert_eq!(first, 8 * SECOND, "jitter never shortens a delay");
            assert!(last - first >= first / 5, "{first:?} to {last:?}");
            assert!(last <= first + first / 4);
        }
    }

    #[test]
    fn jitter_that_is_no_part_is_taken_as_the_nearest_one() {
        let policy = RetryPolicy::fixed(SECOND).jitter(0.5);
        assert_eq!(policy.delay(1, f64::NAN), SECOND);
        assert_eq!(policy.delay(1, -3.0), SECOND);
        assert_eq!(policy.delay(1, 7.0), SECOND * 3 / 2);
        assert_eq!(
            RetryPolicy::fixed(SECOND).jitter(f64::NAN).delay(1, 1.0),
            SECOND
        );
    }

    #[test]
    fn no_retry_means_one_attempt() {
        assert_eq!(RetryPolicy::none().attempts(), 1);
        assert_eq!(
            RetryPolicy::fixed(Duration::ZERO).delay(1, 1.0),
            Duration::ZERO
        );
        assert_eq!(RetryPolicy::default().attempts(), 10);
    }
}
