//! What must hold.

use super::{
    Action, Graph, Tasks,
    state::{Breach, Doing, State, Status, TASKS, TaskState, Ticket},
};
use crate::explore::{Check, Rule};

pub(crate) const ONE_COMMIT: &str = "a task is committed at most once in a run";
pub(crate) const RESULT_STAYS: &str = "a committed result never changes";
pub(crate) const NO_LATE_WRITE: &str = "a claim that was taken away never writes";
pub(crate) const STORED_IS_STORED: &str = "a settlement that is acknowledged is stored";
pub(crate) const STORED_IS_SAID: &str = "a completion that is stored is never answered with lost";
pub(crate) const NEW_FENCES: &str = "fences never repeat";
pub(crate) const ATTEMPTS_GROW: &str = "attempts never go back";
pub(crate) const OWN_ENTRY: &str = "a claim comes from an entry of its own run";
pub(crate) const OWN_WRITE: &str = "a settlement is stored in the run that it was claimed from";
pub(crate) const WAKE_SOURCE: &str = "every open task has a wake source";
pub(crate) const ONE_TICKET: &str = "a running task has one ticket, so that one look counts once";
pub(crate) const OPEN_COUNTS: &str = "open counts the open tasks, and none is open only at the end";
pub(crate) const JOIN_ONCE: &str = "a join fires once, when enough different branches have arrived";
pub(crate) const IN_ORDER: &str = "a task is reached only through those before it";
pub(crate) const LIVE_CLAIMS: &str = "a claim whose key lives is not reaped";
pub(crate) const CRASH_BUDGET: &str = "only the claim of an absent worker counts as a crash";
pub(crate) const REPLACED_STAYS: &str = "a run that was replaced never comes back";
pub(crate) const FINAL: &str = "a final status never changes";
pub(crate) const ENDS: &str = "when faults stop, a started instance ends and leaves nothing behind";

pub(crate) fn all() -> Vec<Rule<Tasks>> {
    vec![
        always(ONE_COMMIT, |_, s| s.commits.iter().all(|&n| n <= 1)),
        step(RESULT_STAYS, result_stays),
        always(NO_LATE_WRITE, |_, s| !is(s, Breach::WroteAfterTakenAway)),
        always(STORED_IS_STORED, |_, s| !is(s, Breach::SaidStored)),
        always(STORED_IS_SAID, |_, s| !is(s, Breach::SaidLost)),
        always(NEW_FENCES, |_, s| !is(s, Breach::FenceRepeated)),
        step(ATTEMPTS_GROW, attempts_grow),
        always(OWN_ENTRY, |_, s| !is(s, Breach::ForeignEntry)),
        always(OWN_WRITE, |_, s| !is(s, Breach::ForeignWrite)),
        always(WAKE_SOURCE, |_, s| {
            (0..TASKS).all(|t| has_wake_source(s, t))
        }),
        always(ONE_TICKET, one_ticket),
        always(OPEN_COUNTS, open_counts),
        always(JOIN_ONCE, |_, s| {
            !is(s, Breach::FiredTwice) && !is(s, Breach::FiredEarly)
        }),
        always(IN_ORDER, in_order),
        step(LIVE_CLAIMS, live_claims),
        step(CRASH_BUDGET, crash_budget),
        step(REPLACED_STAYS, |_, before, _, after| {
            after.run >= before.run
        }),
        step(FINAL, |_, before, _, after| {
            !before.status.is_terminal() || after.run != before.run || after.status == before.status
        }),
        Rule {
            name: ENDS,
            check: Check::Leads(is_over),
        },
    ]
}

fn always(name: &'static str, holds: fn(&Tasks, &State) -> bool) -> Rule<Tasks> {
    Rule {
        name,
        check: Check::Always(holds),
    }
}

fn step(name: &'static str, holds: fn(&Tasks, &State, Action, &State) -> bool) -> Rule<Tasks> {
    Rule {
        name,
        check: Check::Step(holds),
    }
}

fn is(s: &State, breach: Breach) -> bool {
    s.breach == Some(breach)
}

fn result_stays(_: &Tasks, before: &State, _: Action, after: &State) -> bool {
    let stays = |t: usize| {
        before.results[t].is_none()
            || (after.results[t] == before.results[t]
                && after.tasks[t].state == TaskState::Completed)
    };
    after.run != before.run || (0..TASKS).all(stays)
}

fn attempts_grow(_: &Tasks, before: &State, _: Action, after: &State) -> bool {
    let grows = |t: usize| after.tasks[t].attempt >= before.tasks[t].attempt;
    after.run != before.run || (0..TASKS).all(grows)
}

fn has_wake_source(s: &State, task: usize) -> bool {
    if s.status != Status::Running {
        return true;
    }
    let entry = Ticket::new(s.run, task);
    match s.tasks[task].state {
        TaskState::Ready => {
            s.ready[usize::from(entry.0)] + s.ready[usize::from(entry.as_timed_out().0)] > 0
        }
        TaskState::Running => s.running.has_task(s.run, task),
        TaskState::Delayed => s.delayed.has_task(s.run, task),
        TaskState::Absent | TaskState::Completed | TaskState::Failed | TaskState::Closed => true,
    }
}

fn one_ticket(_: &Tasks, s: &State) -> bool {
    let both = |ticket: Ticket| s.running.has(ticket) && s.running.has(ticket.as_timed_out());
    let twice = |t: usize| s.tasks[t].state == TaskState::Running && both(Ticket::new(s.run, t));
    s.status != Status::Running || !(0..TASKS).any(twice)
}

fn open_counts(_: &Tasks, s: &State) -> bool {
    let open = s.tasks.iter().filter(|t| t.state.is_open()).count();
    match s.status {
        Status::Running => open == usize::from(s.open) && open > 0,
        Status::Completed => open == 0 && s.open == 0,
        Status::Failed | Status::Cancelled => open == 0,
        Status::Absent => true,
    }
}

fn in_order(model: &Tasks, s: &State) -> bool {
    let completed = |t: usize| s.tasks[t].state == TaskState::Completed;
    let reached = |t: usize| s.tasks[t].state != TaskState::Absent;
    match model.graph {
        Graph::Chain { .. } => (1..TASKS).all(|t| !reached(t) || completed(t - 1)),
        Graph::Fork { need } => {
            !reached(2) || (0..2).filter(|&t| completed(t)).count() >= usize::from(need)
        }
    }
}

fn live_claims(_: &Tasks, before: &State, action: Action, after: &State) -> bool {
    let (Action::Look { ticket } | Action::LookOverdue { ticket }) = action else {
        return true;
    };
    let task = ticket.task();
    before.keys[task].is_none() || after.tasks[task].state == before.tasks[task].state
}

/// Nothing but a look at a claim without key and without worker adds to the crashes of a task; a task ends its instance
/// by crashes only over the budget.
fn crash_budget(model: &Tasks, before: &State, action: Action, after: &State) -> bool {
    let counted = |t: usize| {
        let (old, new) = (before.tasks[t], after.tasks[t]);
        let reaped = matches!(action, Action::Look { ticket } if ticket.task() == t)
            && before.keys[t].is_none()
            && !before.is_present(old.worker)
            && new.crashes == old.crashes + 1;
        let dead = new.state == TaskState::Failed && old.state != new.state && new.nonce == 0;
        (new.crashes == old.crashes || reaped) && (!dead || new.crashes > model.max_crashes)
    };
    after.run != before.run || (0..TASKS).all(counted)
}

fn is_over(_: &Tasks, s: &State) -> bool {
    let idle = s.workers.iter().all(|w| w.doing == Doing::Nothing);
    let empty = s.ready.iter().all(|&n| n == 0)
        && s.running.is_empty()
        && s.delayed.is_empty()
        && s.keys.iter().all(Option::is_none);
    s.breach.is_some() || (s.status.is_terminal() && idle && empty)
}
