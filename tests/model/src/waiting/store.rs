//! The transitions, each atomic: what a script does.

use super::{
    Mutation, Timeout, Waiting,
    state::{Claim, ENTRIES, Entry, Fate, NODES, NodeState, State, Status, Value, Verdict},
};

impl Waiting {
    /// waiting → ready, or kept until a node waits. A repeat is answered as the first was.
    pub(super) fn signal(&self, s: &mut State, signal: usize) {
        if s.heard[signal] && !self.has(Mutation::RepeatCountsAgain) {
            s.acknowledged[signal] = true;
            return;
        }
        if !s.is_live() {
            return;
        }
        s.heard[signal] = true;
        s.acknowledged[signal] = true;
        let next = if self.has(Mutation::NewestWaitFirst) {
            s.waits.last()
        } else {
            s.waits.first()
        };
        let Some(&node) = next else {
            s.early.push(signal);
            return;
        };
        s.leave(node);
        s.nodes[node].timer = false;
        self.take(s, node, signal);
    }

    /// A node has its signal, and is ready for an engine to go on from it.
    fn take(&self, s: &mut State, node: usize, signal: usize) {
        let n = &mut s.nodes[node];
        (n.state, n.value) = (NodeState::Ready, Some(Value::Signal(signal)));
        s.queue(node, Entry::Go);
    }

    /// ready → running, from one entry, which goes: taken, parked or dropped.
    pub(super) fn claim(&self, s: &mut State, node: usize, entry: Entry) -> Option<Claim> {
        let status = s.status;
        let n = &mut s.nodes[node];
        n.ready[entry as usize] -= 1;
        if n.state != NodeState::Ready {
            return None;
        }
        if status == Status::Paused && !self.has(Mutation::PauseIgnored) {
            n.parked[entry as usize] += 1;
            return None;
        }
        n.state = NodeState::Running(entry);
        let has_signal = n.value.is_some() && !self.has(Mutation::LateForgetsSignal);
        let verdict = match entry {
            Entry::Enter => Verdict::Wait,
            Entry::Late if !has_signal => Verdict::TooLate,
            Entry::Go | Entry::Late => Verdict::GoOn,
        };
        Some(Claim {
            node,
            verdict,
            fate: Fate::Held,
        })
    }

    /// running → waiting, ready or completed. Neither a repeat nor who lost the claim changes anything.
    pub(super) fn settle(&self, s: &mut State, worker: usize) {
        let Some(claim) = &mut s.workers[worker] else {
            return;
        };
        if claim.fate != Fate::Held {
            return;
        }
        claim.fate = Fate::Settled;
        let Claim { node, verdict, .. } = *claim;
        match (verdict, self.timeout) {
            (Verdict::Wait, _) => self.enter(s, node),
            (Verdict::GoOn, _) => self.complete(s, node),
            (Verdict::TooLate, Timeout::Fails) => s.end(Status::Failed),
            (Verdict::TooLate, Timeout::GoesOn | Timeout::Never) => {
                s.nodes[node].value = Some(Value::Nil);
                self.complete(s, node);
            }
        }
    }

    /// A node takes the oldest signal that came before, or waits from now on. One that has its signal already, and was
    /// entered by an entry that stood twice, keeps it.
    fn enter(&self, s: &mut State, node: usize) {
        if s.nodes[node].value.is_some() && !self.has(Mutation::EntersAgain) {
            s.nodes[node].state = NodeState::Ready;
            s.queue(node, Entry::Go);
        } else if let Some(&signal) = s.early.first() {
            if !self.has(Mutation::EarlySignalStays) {
                s.early.remove(0);
            }
            self.take(s, node, signal);
        } else {
            s.nodes[node].state = NodeState::Waiting;
            s.nodes[node].timer = self.is_timed();
            s.waits.push(node);
            s.listed = true;
        }
    }

    fn complete(&self, s: &mut State, node: usize) {
        s.nodes[node].state = NodeState::Completed;
        if let Some(next) = (0..NODES).find(|&n| s.nodes[n].state == NodeState::Absent) {
            self.enter(s, next);
        }
        if s.nodes.iter().all(|n| n.state == NodeState::Completed) {
            s.end(Status::Completed);
        }
    }

    /// The time of a wait is over: whichever of signal and timer comes first finds the node there.
    pub(super) fn tick(&self, s: &mut State, node: usize) {
        s.nodes[node].timer = false;
        if s.nodes[node].state != NodeState::Waiting {
            return;
        }
        s.nodes[node].state = NodeState::Ready;
        s.queue(node, Entry::Late);
        if !self.has(Mutation::TimerLeavesWait) {
            s.leave(node);
        }
    }

    /// Gives back one parked ticket; who sent it says it again until none is left.
    pub(super) fn resume(&self, s: &mut State) {
        let places = (0..NODES).flat_map(|n| ENTRIES.map(|entry| (n, entry)));
        let mut parked = places.filter(|&(n, entry)| s.nodes[n].parked[entry as usize] > 0);
        if let Some((node, entry)) = parked.next() {
            s.nodes[node].parked[entry as usize] -= 1;
            if !self.has(Mutation::ResumeForgetsTicket) {
                s.queue(node, entry);
            }
        }
        s.status = Status::Running;
        s.resuming = s.parked() > 0;
    }
}

impl State {
    /// A node waits no more.
    fn leave(&mut self, node: usize) {
        self.waits.retain(|&n| n != node);
        self.listed = !self.waits.is_empty();
    }

    /// Only claims ask whether an instance is paused: all else goes on.
    pub(super) fn pause(&mut self) {
        self.faults.pauses += 1;
        (self.status, self.resuming) = (Status::Paused, false);
    }

    /// live → over. Entries and parked tickets stay: the ones fall when they are met, the others go with the snapshot.
    pub(super) fn end(&mut self, status: Status) {
        (self.status, self.resuming, self.listed) = (status, false, false);
        for node in std::mem::take(&mut self.waits) {
            self.nodes[node].timer = false;
        }
        for node in 0..NODES {
            self.take_away(node);
            if self.nodes[node].state != NodeState::Completed {
                self.nodes[node].state = NodeState::Closed;
            }
        }
    }

    /// running → ready, by the entry it was claimed from.
    pub(super) fn reap(&mut self, node: usize) {
        self.take_away(node);
        if let NodeState::Running(entry) = self.nodes[node].state {
            self.nodes[node].state = NodeState::Ready;
            self.queue(node, entry);
        }
    }

    fn take_away(&mut self, node: usize) {
        let held = |c: &&mut Claim| c.node == node && c.fate == Fate::Held;
        let claims = self.workers.iter_mut().flatten().filter(held);
        claims.for_each(|c| c.fate = Fate::TakenAway);
    }
}
