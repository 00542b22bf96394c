use std::time::Duration;

/// The bounds in time of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
