//! A second workflow of `tenure worker --demo`: a refund that a person has to approve, by a signal.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Approval, BuildErrors, TaskError, Workflow};

/// How long the bank takes: long enough to look at the claim.
const BANK: Duration = Duration::from_secs(3);

/// How long somebody has to decide.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3600);

/// What an instance starts with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refund {
    order: String,
    cents: u64,
}

/// What it results in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refunded {
    approved_by: String,
}

/// Waits for the signal `approval`, then transfers the money; a refund that is rejected is dead.
pub(crate) fn workflow() -> Result<Workflow<Refund, Refunded>, BuildErrors> {
    Workflow::builder::<Refund>("demo-refund")
        .await_signal::<Approval>("approval")
        .timeout(PATIENCE)
        .task("transfer", async |said: Approval| {
            if !said.is_approved() {
                return Err(TaskError::permanent(format!("{} said no", said.actor)));
            }
            tokio::time::sleep(BANK).await;
            Ok(Refunded {
                approved_by: said.actor,
            })
        })
        .build()
}
