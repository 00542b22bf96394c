//! What became of each instance.

use std::fmt;

use serde::Serialize;
use tenure::{ClientError, Status};

use super::verb::Verb;
use crate::exit::Exit;

/// The end of one attempt to steer, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Done,
    /// Nothing had to be done.
    Already,
    /// A filter named it, and when its turn came it was not as the filter says any more.
    Skipped,
    NotFound,
    Refused,
    Failed,
    /// Nobody knows: Redis did not answer.
    Unavailable,
}

/// Of one instance.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(super) id: String,
    pub(super) outcome: Kind,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    exit: Exit,
}

impl Outcome {
    pub(super) fn done(verb: &Verb, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            outcome: Kind::Done,
            reason: None,
            text: verb.done().to_owned(),
            exit: Exit::Done,
        }
    }

    pub(super) fn already(status: Status, id: &str) -> Self {
        Self {
            id: id.to_owned(),
            outcome: Kind::Already,
            reason: Some(format!("it is {status}")),
            text: format!("nothing to do, it is {status} already"),
            exit: Exit::Done,
        }
    }

    pub(super) fn error(id: &str, error: ClientError) -> Self {
        let exit = Exit::of_client(&error);
        let outcome = match exit {
            Exit::NotFound if is_gone(&error) => Kind::NotFound,
            Exit::NotFound | Exit::Refused => Kind::Refused,
            Exit::Unavailable => Kind::Unavailable,
            _ => Kind::Failed,
        };
        let short = short(&error);
        Self {
            id: id.to_owned(),
            outcome,
            text: match outcome {
                Kind::Refused => format!("refused: {short}"),
                _ => short,
            },
            reason: Some(format!("{:#}", anyhow::Error::from(error))),
            exit,
        }
    }

    /// That of an instance which a filter named: what became of it meanwhile is no fault.
    pub(super) fn of_filter(mut self) -> Self {
        if matches!(self.outcome, Kind::NotFound | Kind::Already)
            || self.outcome == Kind::Refused && self.exit == Exit::Refused
        {
            self.outcome = Kind::Skipped;
            self.exit = Exit::Done;
            let reason = self.reason.as_deref().unwrap_or_default();
            self.text = format!("skipped: {reason}");
        }
        self
    }
}

/// Whether the run that was meant is not there any more.
fn is_gone(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::NotFound { .. } | ClientError::Replaced { .. }
    )
}

/// Why not, behind the id: it is not said again.
fn short(error: &ClientError) -> String {
    match error {
        ClientError::NotFound { .. } => "there is no such instance".to_owned(),
        ClientError::Over { status, .. } => format!("it is {status} already"),
        ClientError::Live { status, .. } => {
            format!("it is {status}; cancel or terminate it first, then delete it")
        }
        ClientError::NotDead { status, .. } => {
            format!("it is {status}; only one that failed can be retried")
        }
        other => other.to_string(),
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.text)
    }
}

/// How many there are of each, and the worst of them.
#[derive(Debug)]
pub(super) struct Tally {
    counts: std::collections::BTreeMap<Kind, usize>,
    worst: (Kind, Exit),
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            counts: std::collections::BTreeMap::new(),
            worst: (Kind::Done, Exit::Done),
        }
    }

    pub(super) fn add(&mut self, outcome: &Outcome) {
        *self.counts.entry(outcome.outcome).or_default() += 1;
        if outcome.outcome > self.worst.0 {
            self.worst = (outcome.outcome, outcome.exit);
        }
    }

    pub(super) fn exit(&self) -> Exit {
        self.worst.1
    }

    pub(super) fn total(&self) -> usize {
        self.counts.values().sum()
    }

    /// `12 cancelled, 1 refused`.
    pub(super) fn told(&self, verb: &Verb) -> String {
        let word = |kind: &Kind| match kind {
            Kind::Done => verb.done(),
            Kind::Already => "so already",
            Kind::Skipped => "skipped",
            Kind::NotFound => "not found",
            Kind::Refused => "refused",
            Kind::Failed => "failed",
            Kind::Unavailable => "unknown, Redis did not answer",
        };
        let parts = self.counts.iter();
        let parts: Vec<String> = parts
            .map(|(kind, count)| format!("{count} {}", word(kind)))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_outcome_decides_about_the_exit_code() {
        let missing = |id: &str| {
            let id = tenure::InstanceId::new(id).expect("an id");
            Outcome::error(id.clone().as_str(), ClientError::NotFound { id })
        };
        let over = |id: &str| {
            let status = Status::Completed;
            let id = tenure::InstanceId::new(id).expect("an id");
            Outcome::error(id.clone().as_str(), ClientError::Over { id, status })
        };
        let mut tally = Tally::new();
        tally.add(&Outcome::done(&Verb::Cancel, "a"));
        assert_eq!(tally.exit(), Exit::Done);
        tally.add(&over("b"));
        tally.add(&missing("c"));
        assert_eq!(tally.exit(), Exit::Refused);
        assert_eq!(
            tally.told(&Verb::Cancel),
            "1 cancelled, 1 not found, 1 refused"
        );
        let mut tally = Tally::new();
        tally.add(&over("b").of_filter());
        tally.add(&missing("c").of_filter());
        assert_eq!((tally.exit(), tally.total()), (Exit::Done, 2));
        assert_eq!(tally.told(&Verb::Cancel), "2 skipped");
    }
}
