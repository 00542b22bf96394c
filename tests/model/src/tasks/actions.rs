//! What workers, clients, reapers and the world can do next, and what it does.

use super::{
    Action, Mutation, Tasks,
    state::{Doing, Faults, State, Status, TASKS, Ticket, Verdict, Worker},
    store::Settled,
};

impl Tasks {
    pub(crate) fn offer(&self, s: &State, into: &mut Vec<Action>) {
        if s.breach.is_some() {
            return;
        }
        self.offer_clients(s, into);
        for place in 0..2 {
            self.offer_worker(s, place, into);
        }
        self.offer_store(s, into);
        if self.may(s, |f| f.late_calls) {
            self.offer_late(s, into);
        }
    }

    /// Whether one more fault of this kind fits.
    fn may(&self, s: &State, kind: fn(&Faults) -> u8) -> bool {
        kind(&s.faults) < kind(&self.faults) && s.faults.all < self.faults.all
    }

    fn offer_clients(&self, s: &State, into: &mut Vec<Action>) {
        if s.run == 0 {
            into.push(Action::Start { run: 1 });
        } else if s.run == 1 && self.replacing {
            into.push(Action::Start { run: 2 });
        }
        if self.cancelling && s.cancels == 0 && s.status == Status::Running {
            into.push(Action::Cancel);
        }
        if s.run == 2 && self.may(s, |f| f.late_calls) {
            into.push(Action::StartLate);
        }
    }

    fn offer_worker(&self, s: &State, place: u8, into: &mut Vec<Action>) {
        let worker = place;
        let Worker { id, doing } = s.workers[usize::from(place)];
        let entries = || Ticket::all().filter(|t| s.ready[usize::from(t.0)] > 0);
        if doing != Doing::Nothing && self.may(s, |f| f.crashes) {
            into.push(Action::Crash { worker });
        }
        if !s.is_present(id) {
            into.push(Action::Heartbeat { worker });
        }
        match doing {
            Doing::Nothing => {
                into.extend(entries().map(|entry| Action::Claim { worker, entry }));
                if self.may(s, |f| f.lost_replies) {
                    into.extend(entries().map(|entry| Action::ClaimReplyLost { worker, entry }));
                }
            }
            Doing::Claiming(nonce) => {
                into.push(Action::ClaimAgain { worker });
                if s.last[usize::from(id)] != nonce {
                    into.extend(entries().map(|entry| Action::ClaimAnew { worker, entry }));
                }
            }
            Doing::Running(_) => {
                into.push(Action::Heartbeat { worker });
                self.offer_verdicts(s, worker, into);
                if self.may(s, |f| f.releases) {
                    into.push(Action::SendRelease { worker });
                }
            }
            Doing::Settling(_) => {
                into.push(Action::Settle { worker });
                into.push(Action::Heartbeat { worker });
                if self.may(s, |f| f.lost_replies) {
                    into.push(Action::SettleReplyLost { worker });
                }
            }
            Doing::Releasing(_) => into.push(Action::Release { worker }),
        }
    }

    fn offer_verdicts(&self, s: &State, worker: u8, into: &mut Vec<Action>) {
        let mut send = |verdict| into.push(Action::Send { worker, verdict });
        let overdue = self.is_overdue(s, worker);
        if !overdue {
            send(Verdict::Complete { claim_next: false });
            if self.follow_ups {
                send(Verdict::Complete { claim_next: true });
            }
        }
        if overdue || self.may(s, |f| f.retries) {
            send(Verdict::Retry);
        }
        if self.failing {
            send(Verdict::Fail);
        }
    }

    /// Whether the attempt of this worker's claim was over before: it only says what follows from that.
    pub(crate) fn is_overdue(&self, s: &State, worker: u8) -> bool {
        match s.workers[usize::from(worker)].doing {
            Doing::Running(c) => s.claims[usize::from(c)].ticket.timed_out(),
            Doing::Nothing | Doing::Claiming(_) | Doing::Settling(_) | Doing::Releasing(_) => false,
        }
    }

    fn offer_store(&self, s: &State, into: &mut Vec<Action>) {
        for ticket in Ticket::all() {
            if s.running.has(ticket) {
                into.push(Action::Look { ticket });
                if self.may(s, |f| f.timeouts) {
                    into.push(Action::LookOverdue { ticket });
                }
                if self.has(Mutation::ReapActsOnOldList) && s.keys[ticket.task()].is_none() {
                    into.push(Action::List { ticket });
                }
            }
            if s.listed.has(ticket) {
                into.push(Action::ActOnList { ticket });
            }
            if s.delayed.has(ticket) {
                into.push(Action::Promote { ticket });
            }
        }
        let may_lapse = self.may(s, |f| f.lapses);
        for task in 0..TASKS {
            if s.keys[task].is_some() && (may_lapse || !self.lapses_key(s, task)) {
                into.push(Action::ExpireKey { task: task as u8 });
            }
        }
        for id in 0..6 {
            if s.is_present(id) && (may_lapse || !s.lives(id)) {
                into.push(Action::ExpirePresence { id });
            }
        }
    }

    /// Whether the owner of this claim key would go on extending it.
    pub(crate) fn lapses_key(&self, s: &State, task: usize) -> bool {
        s.keys[task].is_some_and(|claim| s.is_believed(claim))
    }

    fn offer_late(&self, s: &State, into: &mut Vec<Action>) {
        for (at, sent) in s.claims().iter().enumerate() {
            let claim = at as u8;
            into.push(Action::HeartbeatLate { claim });
            if sent.settles.is_some() {
                into.push(Action::SettleLate { claim });
            }
            if sent.releases {
                into.push(Action::ReleaseLate { claim });
            }
            let nonce = sent.record.nonce;
            if s.last[usize::from(sent.record.worker)] != nonce {
                let entries = Ticket::all().filter(|t| s.ready[usize::from(t.0)] > 0);
                into.extend(entries.map(|entry| Action::ClaimLate { claim, entry }));
            }
        }
    }

    pub(crate) fn take(&self, s: &mut State, action: Action) {
        match action {
            Action::Start { run } => self.start(s, run),
            Action::Cancel => {
                s.cancels += 1;
                self.end(s, Status::Cancelled);
            }
            Action::Look { ticket } => self.look(s, ticket, false),
            Action::List { ticket } => s.listed.add(ticket),
            Action::ActOnList { ticket } => self.act_on_list(s, ticket),
            Action::Promote { ticket } => self.promote(s, ticket),
            Action::Claim { worker, entry } => self.take_claim(s, worker, entry),
            Action::ClaimAgain { worker } => self.claim_again(s, worker),
            Action::ClaimAnew { worker, entry } => self.claim_anew(s, worker, entry),
            Action::Heartbeat { worker } => self.heartbeat(s, worker),
            Action::Send { worker, verdict } => self.send(s, worker, verdict),
            Action::Settle { worker } => self.take_settle(s, worker),
            Action::Release { worker } => {
                if let Doing::Releasing(claim) = s.workers[usize::from(worker)].doing {
                    self.release(s, claim);
                }
                s.workers[usize::from(worker)].doing = Doing::Nothing;
            }
            Action::StartLate
            | Action::ClaimReplyLost { .. }
            | Action::ClaimLate { .. }
            | Action::HeartbeatLate { .. }
            | Action::SettleReplyLost { .. }
            | Action::SettleLate { .. }
            | Action::SendRelease { .. }
            | Action::ReleaseLate { .. }
            | Action::Crash { .. }
            | Action::ExpireKey { .. }
            | Action::ExpirePresence { .. }
            | Action::LookOverdue { .. } => self.take_fault(s, action),
        }
    }

    fn take_claim(&self, s: &mut State, worker: u8, entry: Ticket) {
        let id = s.workers[usize::from(worker)].id;
        let nonce = s.new_nonce();
        if let Some(claim) = self.claim(s, id, nonce, entry) {
            s.workers[usize::from(worker)].doing = Doing::Running(claim);
        }
    }

    fn claim_again(&self, s: &mut State, worker: u8) {
        let worker = usize::from(worker);
        let Worker { id, doing } = s.workers[worker];
        if let Doing::Claiming(nonce) = doing {
            let known = s.last[usize::from(id)] == nonce;
            let claim = known.then(|| self.claimed_before(s, id, nonce)).flatten();
            s.workers[worker].doing = claim.map_or(Doing::Nothing, Doing::Running);
        }
    }

    fn claim_anew(&self, s: &mut State, worker: u8, entry: Ticket) {
        let worker = usize::from(worker);
        let Worker { id, doing } = s.workers[worker];
        if let Doing::Claiming(nonce) = doing
            && let Some(claim) = self.claim(s, id, nonce, entry)
        {
            s.workers[worker].doing = Doing::Running(claim);
        }
    }

    fn heartbeat(&self, s: &mut State, worker: u8) {
        let worker = usize::from(worker);
        let Worker { id, doing } = s.workers[worker];
        s.presence |= 1 << id;
        match doing {
            Doing::Running(claim) if !self.extend(s, claim) => {
                s.workers[worker].doing = Doing::Nothing;
            }
            // The settlement is under way: its own answer decides.
            Doing::Settling(claim) => {
                self.extend(s, claim);
            }
            Doing::Running(_) | Doing::Nothing | Doing::Claiming(_) | Doing::Releasing(_) => {}
        }
    }

    fn send(&self, s: &mut State, worker: u8, verdict: Verdict) {
        let worker = usize::from(worker);
        if let Doing::Running(claim) = s.workers[worker].doing {
            if verdict == Verdict::Retry && !s.claims[usize::from(claim)].ticket.timed_out() {
                s.faults.retries += 1;
                s.faults.all += 1;
            }
            if verdict == (Verdict::Complete { claim_next: true }) {
                s.claims[usize::from(claim)].next = s.new_nonce();
            }
            s.claims[usize::from(claim)].settles = Some(verdict);
            s.workers[worker].doing = Doing::Settling(claim);
        }
    }

    fn take_settle(&self, s: &mut State, worker: u8) {
        let worker = usize::from(worker);
        let Doing::Settling(claim) = s.workers[worker].doing else {
            return;
        };
        let doing = match self.execute_settle(s, claim) {
            None => Doing::Settling(claim),
            Some(Settled::Stored { next: Some(next) }) => Doing::Running(next),
            Some(Settled::Stored { next: None } | Settled::Lost | Settled::Cancelled) => {
                Doing::Nothing
            }
        };
        s.workers[worker].doing = doing;
    }

    /// Nothing: only the first of two calls was executed.
    fn execute_settle(&self, s: &mut State, number: u8) -> Option<Settled> {
        let claim = s.claims[usize::from(number)];
        if self.has(Mutation::SettleGivesUpFirst) && !claim.half && self.holds(s, &claim) {
            s.claims[usize::from(number)].half = true;
            s.untrack(claim.ticket);
            s.keys[claim.ticket.task()] = None;
            return None;
        }
        claim.settles.map(|verdict| self.settle(s, number, verdict))
    }

    fn take_fault(&self, s: &mut State, action: Action) {
        let before = s.faults;
        self.take_late(s, action);
        match action {
            Action::ClaimReplyLost { worker, entry } => {
                s.faults.lost_replies += 1;
                self.take_claim(s, worker, entry);
                s.workers[usize::from(worker)].doing = Doing::Claiming(s.nonces);
            }
            Action::SettleReplyLost { worker } => {
                s.faults.lost_replies += 1;
                if let Doing::Settling(claim) = s.workers[usize::from(worker)].doing {
                    self.execute_settle(s, claim);
                }
            }
            Action::SendRelease { worker } => {
                s.faults.releases += 1;
                if let Doing::Running(claim) = s.workers[usize::from(worker)].doing {
                    s.claims[usize::from(claim)].releases = true;
                    s.workers[usize::from(worker)].doing = Doing::Releasing(claim);
                }
            }
            Action::Crash { worker } => {
                s.faults.crashes += 1;
                let dead = &mut s.workers[usize::from(worker)];
                // Who comes instead has another name.
                dead.id = 1 + s.faults.crashes;
                dead.doing = Doing::Nothing;
                s.presence |= 1 << dead.id;
            }
            Action::ExpireKey { task } => {
                s.faults.lapses += u8::from(self.lapses_key(s, usize::from(task)));
                s.keys[usize::from(task)] = None;
            }
            Action::ExpirePresence { id } => {
                s.faults.lapses += u8::from(s.lives(id));
                s.presence &= !(1 << id);
            }
            Action::LookOverdue { ticket } => {
                s.faults.timeouts += 1;
                self.look(s, ticket, true);
            }
            _ => {}
        }
        s.faults.all += u8::from(s.faults != before);
    }

    /// A call that was held up, or sent twice: it is executed, and nobody waits for its reply.
    fn take_late(&self, s: &mut State, action: Action) {
        match action {
            Action::StartLate => self.start(s, 1),
            Action::ClaimLate { claim, entry } => {
                let sent = s.claims[usize::from(claim)].record;
                self.claim(s, sent.worker, sent.nonce, entry);
            }
            Action::HeartbeatLate { claim } => {
                s.presence |= 1 << s.claims[usize::from(claim)].record.worker;
                self.extend(s, claim);
            }
            Action::SettleLate { claim } => {
                self.execute_settle(s, claim);
            }
            Action::ReleaseLate { claim } => self.release(s, claim),
            _ => return,
        }
        s.faults.late_calls += 1;
    }
}
