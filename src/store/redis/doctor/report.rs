use std::fmt;

use super::Problem;
use crate::ids::{InstanceId, Partition};

/// Something that is wrong: seen, and seen again a little later.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The key.
    pub key: String,
    /// The instance that it is about, if it is about one.
    pub id: Option<InstanceId>,
    /// What is wrong.
    pub problem: Problem,
    /// What was done about it.
    pub outcome: Outcome,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

/// What was done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing: it was only looked for. What mending would come to, these words say.
    Mendable(&'static str),
    /// It is put right; these words say how.
    Mended(&'static str),
    /// It is as it was; these words say what a person can do.
    Left(&'static str),
}

/// Something to know that is no damage: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note(pub(super) String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an examination came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is not, but should be known.
    pub notes: Vec<Note>,
    /// How many keys were looked at.
    pub keys: usize,
    /// How many of them were instances.
    pub instances: usize,
}

impl Report {
    /// Whether nothing is wrong, or nothing any more.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let mended = |finding: &Finding| matches!(finding.outcome, Outcome::Mended(_));
        self.findings.iter().all(mended)
    }
}

/// How far an examination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The partition that is looked at.
    pub partition: Partition,
    /// How many keys were looked at, in all partitions.
    pub keys: usize,
    /// What is looked at a second time.
    pub suspects: usize,
}
