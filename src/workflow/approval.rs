use serde::{Deserialize, Serialize};

/// A signal by which a person lets an instance go on or not: for [`await_signal`](super::Chain::await_signal) and
/// [`Client::signal`](crate::Client::signal).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// What was decided.
    pub decision: Decision,
    /// Who decided.
    pub actor: String,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Yes.
    Approved,
    /// No.
    Rejected,
}

impl Approval {
    /// A yes.
    pub fn approved(actor: impl Into<String>) -> Self {
        Self::of(Decision::Approved, actor)
    }

    /// A no.
    pub fn rejected(actor: impl Into<String>) -> Self {
        Self::of(Decision::Rejected, actor)
    }

    fn of(decision: Decision, actor: impl Into<String>) -> Self {
        Self {
            decision,
            actor: actor.into(),
            reason: None,
        }
    }

    /// The same, with a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Whether it is a yes.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        self.decision == Decision::Approved
    }
}
