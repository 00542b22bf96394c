//! What must hold.

use super::{
    Parking,
    state::{LISTS, Phase, State, Worker},
};
use crate::explore::{Check, Rule};

pub(crate) const NO_LOST_WAKE_UP: &str =
    "unless a hint is lost, an entry and a free worker never wait for each other";
pub(crate) const ALL_RUN: &str =
    "every entry is run, by polls only if a hint was lost, and hints are not passed on for ever";

pub(crate) fn all() -> Vec<Rule<Parking>> {
    vec![
        Rule {
            name: NO_LOST_WAKE_UP,
            check: Check::Always(no_lost_wake_up),
        },
        Rule {
            name: ALL_RUN,
            check: Check::Leads(all_run),
        },
    ]
}

fn no_lost_wake_up(model: &Parking, s: &State) -> bool {
    s.lost_hints > 0 || (0..LISTS).all(|list| is_looked_after(model, s, list))
}

fn all_run(model: &Parking, s: &State) -> bool {
    let served = |list| {
        let serves = |w: usize| model.serves(w, list) && is_working(&s.workers[w]);
        (0..s.workers.len()).any(serves)
    };
    (0..LISTS).all(|list| s.ready[list] == 0 || !served(list))
}

fn is_working(w: &Worker) -> bool {
    w.phase == Phase::Working
}

/// If something stands in a list and a worker could run it: a hint, a claim or a worker that is about to claim.
fn is_looked_after(model: &Parking, s: &State, list: usize) -> bool {
    let serving = || {
        let served = |(at, _): &(usize, &Worker)| model.serves(*at, list);
        s.workers.iter().enumerate().filter(served).map(|(_, w)| w)
    };
    let could_run = |w: &Worker| is_working(w) && w.call.is_none() && w.free() > 0;
    let looks = |w: &Worker| {
        // A repeat only tells again what was taken.
        let asks = w
            .call
            .is_some_and(|c| c.reply.is_none() && (c.taken == 0 || c.half));
        let about_to = w.hot && (w.free_soon() > 0 || (w.hinted && model.may_look(w)));
        let passes_on = w.phase == Phase::Stopping && w.hinted;
        asks || w.mail || (is_working(w) && about_to) || passes_on
    };
    s.ready[list] == 0 || !serving().any(could_run) || serving().any(looks)
}
