//! running → ready, delayed or dead. A reaper remembers nothing between its calls, so two of them are one that looks
//! more often.

use super::{
    Mutation, Tasks,
    state::{State, Status, TaskState, Ticket},
    store::requeue,
};

impl Tasks {
    /// Looks at one running ticket. `overdue`: the deadline of the attempt has passed.
    pub(crate) fn look(&self, s: &mut State, ticket: Ticket, overdue: bool) {
        let task = ticket.task();
        if s.keys[task].is_some() && !self.has(Mutation::ReapTakesLiveClaims) {
            s.in_doubt.remove(ticket);
            return;
        }
        let record = s.tasks[task];
        if !s.is_live(ticket) || record.state != TaskState::Running {
            s.untrack(ticket);
        } else if overdue {
            s.untrack(ticket);
            requeue(s, task, TaskState::Ready, 0);
            s.ready[usize::from(ticket.as_timed_out().0)] += 1;
        } else if s.is_present(record.worker) {
            if s.in_doubt.has(ticket) {
                s.untrack(ticket);
                requeue(s, task, TaskState::Ready, 0);
                s.ready[usize::from(ticket.0)] += 1;
            } else {
                s.in_doubt.add(ticket);
            }
        } else {
            s.untrack(ticket);
            self.crash(s, ticket);
        }
    }

    /// Its worker is gone: again at once the first time, later after more, and never again beyond the budget.
    fn crash(&self, s: &mut State, ticket: Ticket) {
        let task = ticket.task();
        let crashes = s.tasks[task].crashes + 1;
        if crashes > self.max_crashes {
            requeue(s, task, TaskState::Failed, 1);
            self.end(s, Status::Failed);
        } else if crashes == 1 {
            requeue(s, task, TaskState::Ready, 1);
            s.ready[usize::from(ticket.0)] += 1;
        } else {
            requeue(s, task, TaskState::Delayed, 1);
            s.delayed.add(ticket);
        }
    }

    /// Acts on what an earlier call found: only when reaping is two steps.
    pub(crate) fn act_on_list(&self, s: &mut State, ticket: Ticket) {
        s.listed.remove(ticket);
        s.untrack(ticket);
        requeue(s, ticket.task(), TaskState::Ready, 0);
        s.ready[usize::from(ticket.0)] += 1;
    }
}
