use std::{error::Error, fmt, time::Duration};

use serde::{Deserialize, Serialize};

type Cause = Box<dyn Error + Send + Sync>;

/// Why a handler failed, and what that means for its retries.
///
/// Made by `?` from every `std::error::Error`, from `anyhow::Error`, `String` and `&str`; such an error follows the retry
/// policy of its task. It is not itself a `std::error::Error`, which is what makes these conversions possible.
///
/// ```
/// use std::time::Duration;
/// use tenure::task::TaskError;
///
/// async fn charge(amount: u32) -> Result<u32, TaskError> {
///     if amount == 0 {
///         return Err(TaskError::permanent("there is nothing to charge"));
///     }
///     if amount > 1_000 {
///         return Err(TaskError::retry_after("the bank is closed", Duration::from_secs(3600)));
///     }
///     let text = amount.to_string();
///     Ok(text.parse::<u32>()?)
/// }
/// ```
pub struct TaskError {
    source: Cause,
    retry: Retry,
}

/// What an error says about the next attempt. Default: [`Retry::Policy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retry {
    /// As the retry policy of the task says.
    #[default]
    Policy,
    /// No further attempt can help.
    Never,
    /// After this time, whatever the policy's delay is. It counts as a failure and `max_attempts` bounds it all the same.
    After(Duration),
}

impl TaskError {
    /// The longest message that is kept, in bytes; a longer one is cut.
    pub const MAX_MESSAGE: usize = 8 * 1024;

    /// An error that follows the retry policy of its task, as `?` makes it.
    pub fn new(error: impl Into<Cause>) -> Self {
        Self {
            source: error.into(),
            retry: Retry::Policy,
        }
    }

    /// An error that no retry can mend: the task fails for good, and its instance with it.
    pub fn permanent(error: impl Into<Cause>) -> Self {
        Self {
            source: error.into(),
            retry: Retry::Never,
        }
    }

    /// An error after which the next attempt begins `after` this time, as when a server said how long to wait. It counts
    /// as a failure. More than ten years are taken as ten years.
    pub fn retry_after(error: impl Into<Cause>, after: Duration) -> Self {
        Self {
            source: error.into(),
            retry: Retry::After(after),
        }
    }

    /// What the error says about the next attempt.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The kind under which it is recorded: [`ErrorKind::Permanent`] if no retry can help, else [`ErrorKind::Error`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.retry {
            Retry::Never => ErrorKind::Permanent,
            Retry::Policy | Retry::After(_) => ErrorKind::Error,
        }
    }

    /// The error itself, for example to downcast it.
    #[must_use]
    pub fn source(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.source
    }

    /// The message followed by those of its causes, joined by `: `. A cause that its error already quotes at its end is
    /// not repeated; what is over [`TaskError::MAX_MESSAGE`] is cut.
    #[must_use]
    pub fn message(&self) -> String {
        let mut message = self.source.to_string();
        let mut cause = self.source.source();
        while let Some(error) = cause {
            if message.len() > Self::MAX_MESSAGE {
                break;
            }
            let text = error.to_string();
            if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = error.source();
        }
        cut(message, Self::MAX_MESSAGE)
    }
}

fn cut(mut message: String, most: usize) -> String {
    const MARK: &str = "…";
    if message.len() > most {
        let mut end = most - MARK.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(MARK);
    }
    message
}

impl<E: Into<Cause>> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskError")
            .field("retry", &self.retry)
            .field("source", &self.source)
            .finish()
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The handler returned an error.
    Error,
    /// The handler returned an error that no retry can mend.
    Permanent,
    /// The handler panicked.
    Panic,
    /// The attempt took longer than its timeout.
    Timeout,
    /// All attempts together took longer than the task's deadline.
    Deadline,
    /// The worker stopped without a word.
    Crash,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner;

    #[derive(Debug, thiserror::Error)]
    #[error("outer quotes {0}")]
    struct Quotes(#[source] Inner);

    #[test]
    fn the_message_has_all_causes_and_none_twice() {
        assert_eq!(TaskError::from(Outer(Inner)).message(), "outer: inner");
        assert_eq!(
            TaskError::from(Quotes(Inner)).message(),
            "outer quotes inner"
        );
    }

    #[test]
    fn std_errors_anyhow_and_text_convert() {
        fn number(text: &str) -> Result<u32, TaskError> {
            if text.is_empty() {
                Err("empty")?;
            }
            if text == "any" {
                Err(anyhow::anyhow!("root").context("above"))?;
            }
            if text == "owned" {
                return Err(format!("no {text}").into());
            }
            Ok(text.parse::<u32>()?)
        }
        let message = |text| number(text).unwrap_err().message();
        assert_eq!(message(""), "empty");
        assert_eq!(message("any"), "above: root");
        assert_eq!(message("owned"), "no owned");
        assert_eq!(message("x"), "invalid digit found in string");
        assert_eq!(number("7").unwrap(), 7);
    }

    #[test]
    fn an_error_says_what_is_to_become_of_the_task() {
        let wait = Duration::from_secs(7);
        assert_eq!(TaskError::new("x").retry(), Retry::Policy);
        assert_eq!(TaskError::permanent("x").retry(), Retry::Never);
        assert_eq!(TaskError::permanent("x").kind(), ErrorKind::Permanent);
        assert_eq!(
            TaskError::retry_after("x", wait).retry(),
            Retry::After(wait)
        );
        assert_eq!(TaskError::retry_after("x", wait).kind(), ErrorKind::Error);
    }

    #[test]
    fn a_huge_message_is_cut_between_characters() {
        let message = TaskError::new("ä".repeat(TaskError::MAX_MESSAGE)).message();
        assert!(message.len() <= TaskError::MAX_MESSAGE);
        assert!(message.ends_with("ä…"));
    }
}
