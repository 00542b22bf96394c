//! The transitions, each atomic: what a script does.

use super::{
    Graph, Mutation, Tasks,
    state::{Breach, Claim, Fate, Record, State, Status, TASKS, TaskState, Ticket, Verdict},
};

/// The answer to a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Stored { next: Option<u8> },
    Lost,
    Cancelled,
}

impl Tasks {
    /// absent → live, with the first tasks ready; or the answer of an earlier call.
    pub(crate) fn start(&self, s: &mut State, run: u8) {
        let known = s.run == run || (s.replaced && run == 1);
        if known {
            return;
        }
        self.end(s, Status::Cancelled);
        s.replaced = s.run == 1 && !self.has(Mutation::StartForgetsReplacedRuns);
        (s.run, s.status) = (run, Status::Running);
        (s.tasks, s.arrived, s.fired) = (Default::default(), 0, false);
        (s.commits, s.results) = ([0; TASKS], [None; TASKS]);
        let first = match self.graph {
            Graph::Chain { .. } => 0..1,
            Graph::Fork { .. } => 0..2,
        };
        s.open = first.len() as u8;
        for task in first {
            self.queue(s, task);
        }
    }

    /// live → over. Entries, timers and claim keys stay, and fall when they are met.
    pub(crate) fn end(&self, s: &mut State, status: Status) {
        if s.status != Status::Running {
            return;
        }
        s.status = status;
        for task in 0..TASKS {
            if s.tasks[task].state.is_open() {
                s.tasks[task].state = TaskState::Closed;
            }
            take_away(s, task);
        }
    }

    fn queue(&self, s: &mut State, task: usize) {
        s.tasks[task] = Record {
            state: TaskState::Ready,
            ..Record::default()
        };
        s.ready[usize::from(Ticket::new(s.run, task).0)] += 1;
    }

    /// ready → running, from one entry; it goes whether it can be taken or not. Answers with the claim.
    pub(crate) fn claim(&self, s: &mut State, worker: u8, nonce: u8, entry: Ticket) -> Option<u8> {
        s.ready[usize::from(entry.0)] -= 1;
        let mixed_up = self.has(Mutation::EntriesWithoutRun) && s.status == Status::Running;
        if !s.is_live(entry) && !mixed_up {
            return None;
        }
        let task = entry.task();
        let before = s.tasks[task];
        if before.state != TaskState::Ready {
            return None;
        }
        if entry.run() != s.run {
            s.breach(Breach::ForeignEntry);
        }
        let more = u8::from(!self.has(Mutation::ClaimKeepsAttempt));
        let record = Record {
            state: TaskState::Running,
            attempt: before.attempt + more,
            nonce,
            worker,
            ..before
        };
        s.last[usize::from(worker)] = nonce;
        Some(self.hold(s, entry, record))
    }

    fn hold(&self, s: &mut State, ticket: Ticket, record: Record) -> u8 {
        let task = ticket.task();
        let claim = Claim {
            ticket,
            run: s.run,
            record,
            ..Claim::default()
        };
        let fence = |c: &Claim| (c.run, c.ticket.task(), c.record.attempt, c.record.nonce);
        if s.claims().iter().any(|other| fence(other) == fence(&claim)) {
            s.breach(Breach::FenceRepeated);
        }
        let number = s.claimed;
        s.claims[usize::from(number)] = claim;
        s.claimed += 1;
        s.tasks[task] = record;
        s.keys[task] = Some(number);
        if !self.has(Mutation::ClaimForgetsTicket) {
            s.untrack(ticket);
            s.running.add(ticket);
        }
        number
    }

    /// A repeat of a claim: what the call with this nonce took and is still running.
    pub(crate) fn claimed_before(&self, s: &State, worker: u8, nonce: u8) -> Option<u8> {
        let own = |c: &Claim| {
            let stored = s.tasks[c.ticket.task()];
            let same = stored.nonce == nonce && stored.worker == worker;
            same && stored.state == TaskState::Running && s.is_live(c.ticket) && stored == c.record
        };
        s.claims().iter().rposition(own).map(|at| at as u8)
    }

    /// Whether the stored record is the fence of this claim.
    pub(crate) fn holds(&self, s: &State, claim: &Claim) -> bool {
        let mut stored = s.tasks[claim.ticket.task()];
        let mut held = claim.record;
        if self.has(Mutation::FenceWithoutNonce) {
            (stored.nonce, held.nonce) = (0, 0);
        }
        if self.has(Mutation::SettleForgetsRunning) {
            stored.state = TaskState::Running;
        }
        self.is_of_run(s, claim) && s.status == Status::Running && stored == held
    }

    fn is_of_run(&self, s: &State, claim: &Claim) -> bool {
        s.run == claim.run || self.has(Mutation::SettleForgetsRun)
    }

    /// running → completed, delayed or failed, with what follows; or the answer to a repeat, or a refusal.
    pub(crate) fn settle(&self, s: &mut State, number: u8, verdict: Verdict) -> Settled {
        let claim = s.claims[usize::from(number)];
        if !self.is_of_run(s, &claim) {
            return Settled::Lost;
        }
        if !self.holds(s, &claim) {
            return self.refuse(s, number, &claim, verdict);
        }
        s.untrack(claim.ticket);
        s.keys[claim.ticket.task()] = None;
        let next = self.apply(s, number, &claim, verdict);
        Settled::Stored { next }
    }

    fn refuse(&self, s: &mut State, number: u8, claim: &Claim, verdict: Verdict) -> Settled {
        let task = claim.ticket.task();
        let stored = s.tasks[task];
        let same_nonce =
            stored.nonce == claim.record.nonce || self.has(Mutation::FenceWithoutNonce);
        let settled = !matches!(stored.state, TaskState::Running | TaskState::Closed);
        if stored.attempt == claim.record.attempt && same_nonce && settled {
            if claim.fate != Fate::Applied {
                s.breach(Breach::SaidStored);
            }
            if self.has(Mutation::JoinCountsRepeats) && matches!(verdict, Verdict::Complete { .. })
            {
                self.follow(s, claim, false);
            }
            let next = self.claimed_before(s, claim.record.worker, claim.next);
            return Settled::Stored { next };
        }
        if claim.fate == Fate::Applied && matches!(verdict, Verdict::Complete { .. }) {
            s.breach(Breach::SaidLost);
        }
        if s.keys[task] == Some(number) {
            s.keys[task] = None;
        }
        if s.status.is_terminal() {
            s.untrack(claim.ticket);
            return Settled::Cancelled;
        }
        Settled::Lost
    }

    fn apply(&self, s: &mut State, number: u8, claim: &Claim, verdict: Verdict) -> Option<u8> {
        let task = claim.ticket.task();
        if s.run != claim.run {
            s.breach(Breach::ForeignWrite);
        }
        if claim.fate == Fate::TakenAway {
            s.breach(Breach::WroteAfterTakenAway);
        }
        s.claims[usize::from(number)].fate = Fate::Applied;
        match verdict {
            Verdict::Complete { claim_next } => {
                s.tasks[task].state = TaskState::Completed;
                s.commits[task] += 1;
                s.results[task] = Some(claim.record.attempt);
                self.follow(s, claim, claim_next)
            }
            Verdict::Retry => {
                s.tasks[task].state = TaskState::Delayed;
                s.tasks[task].failures += 1;
                s.delayed.add(claim.ticket.as_ordinary());
                None
            }
            Verdict::Fail => {
                s.tasks[task].state = TaskState::Failed;
                s.tasks[task].failures += 1;
                self.end(s, Status::Failed);
                None
            }
        }
    }

    /// What comes after a completed task, which the same worker may claim at once; nothing any more: the end.
    fn follow(&self, s: &mut State, claim: &Claim, claim_next: bool) -> Option<u8> {
        let next = match (self.graph, claim.ticket.task()) {
            (Graph::Chain { tasks }, task) if task + 1 < usize::from(tasks) => Some(task + 1),
            (Graph::Fork { need }, 0 | 1) => arrive(s, need).then_some(2),
            (Graph::Chain { .. } | Graph::Fork { .. }, _) => None,
        };
        let Some(next) = next else {
            s.open = s.open.saturating_sub(1);
            if s.open == 0 {
                self.end(s, Status::Completed);
            }
            return None;
        };
        if !claim_next {
            self.queue(s, next);
            return None;
        }
        let record = Record {
            state: TaskState::Running,
            attempt: 1,
            nonce: claim.next,
            worker: claim.record.worker,
            ..Record::default()
        };
        Some(self.hold(s, Ticket::new(s.run, next), record))
    }

    /// running → ready, uncounted.
    pub(crate) fn release(&self, s: &mut State, number: u8) {
        let claim = s.claims[usize::from(number)];
        let task = claim.ticket.task();
        if s.run != claim.run {
            return;
        }
        if self.holds(s, &claim) {
            s.untrack(claim.ticket);
            s.keys[task] = None;
            let crashes = u8::from(self.has(Mutation::ReleaseCountsAsCrash));
            requeue(s, task, TaskState::Ready, crashes);
            s.ready[usize::from(claim.ticket.0)] += 1;
        } else {
            if s.keys[task] == Some(number) {
                s.keys[task] = None;
            }
            if s.status.is_terminal() {
                s.untrack(claim.ticket);
            }
        }
    }

    /// The heartbeat of a claim: its key lives on, or is set again if nobody reaped it. Whether the claim still holds.
    pub(crate) fn extend(&self, s: &mut State, number: u8) -> bool {
        let claim = s.claims[usize::from(number)];
        let holds = self.holds(s, &claim);
        if holds {
            s.keys[claim.ticket.task()].get_or_insert(number);
        }
        holds
    }

    /// delayed → ready.
    pub(crate) fn promote(&self, s: &mut State, ticket: Ticket) {
        s.delayed.remove(ticket);
        let record = &mut s.tasks[ticket.task()];
        if s.run == ticket.run()
            && s.status == Status::Running
            && record.state == TaskState::Delayed
        {
            record.state = TaskState::Ready;
            s.ready[usize::from(ticket.0)] += 1;
        }
    }
}

/// A branch arrives; whether the join fires.
fn arrive(s: &mut State, need: u8) -> bool {
    s.arrived += 1;
    if s.fired || s.arrived < need {
        return false;
    }
    let completed = (0..2).filter(|&t| s.tasks[t].state == TaskState::Completed);
    if completed.count() < usize::from(need) {
        s.breach(Breach::FiredEarly);
    }
    if s.tasks[2].state != TaskState::Absent {
        s.breach(Breach::FiredTwice);
    }
    s.fired = true;
    true
}

/// Takes a task from its worker: nobody has a fence for it any more.
pub(crate) fn requeue(s: &mut State, task: usize, state: TaskState, crashes: u8) {
    take_away(s, task);
    let record = &mut s.tasks[task];
    *record = Record {
        state,
        attempt: record.attempt,
        nonce: 0,
        failures: record.failures,
        crashes: record.crashes + crashes,
        worker: 0,
    };
}

/// For the model's own book: whoever holds this task must not write any more.
fn take_away(s: &mut State, task: usize) {
    let (run, claimed) = (s.run, usize::from(s.claimed));
    let held = |c: &&mut Claim| c.run == run && c.ticket.task() == task && c.fate == Fate::Held;
    s.claims[..claimed]
        .iter_mut()
        .filter(held)
        .for_each(|c| c.fate = Fate::TakenAway);
}
