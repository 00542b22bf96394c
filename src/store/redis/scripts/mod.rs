//! Beside each script of `lua/` its wrapper: what is sent, and every answer there can be.

pub(super) mod announce;
pub(super) mod census;
pub(super) mod claim;
pub(super) mod control;
pub(super) mod extend;
pub(super) mod mend;
pub(super) mod note;
pub(super) mod probe;
pub(super) mod publish;
pub(super) mod release;
pub(super) mod remove;
pub(super) mod settle;
mod settle_item;
pub(super) mod signal;
pub(super) mod snapshot;
pub(super) mod start;
pub(super) mod tick;
pub(super) mod watch;

use super::keys::PartitionKeys;
use crate::{
    ids::{ListName, Ticket},
    store::Holding,
};

/// The ready lists that a call may write to, each once: scripts name them by number, from 1.
#[derive(Debug, Default)]
struct Lists<'a>(Vec<&'a ListName>);

impl<'a> Lists<'a> {
    fn number(&mut self, list: &'a ListName) -> usize {
        let at = self.0.iter().position(|known| *known == list);
        at.unwrap_or_else(|| {
            self.0.push(list);
            self.0.len() - 1
        }) + 1
    }

    fn keys(&self, keys: PartitionKeys<'_>) -> impl Iterator<Item = String> {
        self.0
            .iter()
            .flat_map(move |list| [keys.ready(list), keys.idle(list)])
    }
}

/// `task:<t>`: the field of a task's record.
fn record_field(ticket: &Ticket) -> String {
    format!("task:{}", ticket.task)
}

/// What the claim key of a holding says, up to the TTL.
fn claim_start(holding: &Holding, worker: &crate::ids::WorkerId) -> String {
    let nonce = holding.record.nonce;
    format!(
        "{worker} {} {} {} ",
        holding.run,
        holding.record.attempt,
        nonce.as_ref().map_or("-", crate::ids::Nonce::as_str)
    )
}

/// A delay that a script adds to the time: at most a thousand years, so that no sum loses its milliseconds.
fn delay(duration: std::time::Duration) -> i64 {
    const MOST: i64 = 1000 * 365 * 24 * 3600 * 1000;
    crate::time::millis(duration).min(MOST)
}
