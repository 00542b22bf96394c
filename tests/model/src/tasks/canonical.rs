//! One state for all that differ only in names, in order of what is a set, or in what nothing can ask for any more.
//!
//! Which nonce was drawn and which of two workers is which makes no difference to the protocol: without this the same
//! things would be searched many times.

use super::{
    Tasks,
    state::{Claim, Doing, Fate, Faults, State},
};

impl Tasks {
    pub(crate) fn canonical(&self, s: &mut State) {
        let spent = s.faults.all == self.faults.all;
        if spent {
            s.faults = Faults {
                all: s.faults.all,
                ..Faults::default()
            };
        }
        let late = !spent && s.faults.late_calls < self.faults.late_calls;
        order_claims(s, late);
        name_workers(s);
        if !late {
            forget_calls(s);
        }
        name_nonces(s);
    }
}

/// Claims are a set. Those that nobody holds, and about which no call can arrive, are forgotten.
fn order_claims(s: &mut State, late: bool) {
    let count = s.claimed;
    let matters = |s: &State, at: u8| {
        let held = s.claims[usize::from(at)].fate == Fate::Held;
        late || held || s.is_believed(at) || s.keys.contains(&Some(at))
    };
    let mut kept: Vec<u8> = (0..count).filter(|&at| matters(s, at)).collect();
    kept.sort_by_key(|&at| {
        let c = &s.claims[usize::from(at)];
        (c.run, c.ticket.0 / 2, c.record.attempt, at)
    });
    let old = s.claims;
    s.claims = Default::default();
    for (to, &from) in kept.iter().enumerate() {
        s.claims[to] = old[usize::from(from)];
    }
    s.claimed = kept.len() as u8;
    let place = |from: u8| kept.iter().position(|&k| k == from).unwrap_or(0) as u8;
    for key in s.keys.iter_mut().flatten() {
        *key = place(*key);
    }
    for worker in &mut s.workers {
        worker.doing = match worker.doing {
            Doing::Running(c) => Doing::Running(place(c)),
            Doing::Settling(c) => Doing::Settling(place(c)),
            Doing::Releasing(c) => Doing::Releasing(place(c)),
            other => other,
        };
    }
}

/// The living are 0 and 1, the one that does less first; the dead follow in the order in which they are mentioned.
fn name_workers(s: &mut State) {
    let rank = |s: &State, doing: Doing, id: u8| {
        let kind = match doing {
            Doing::Nothing => (0, 0),
            Doing::Claiming(_) => (1, 0),
            Doing::Running(c) => (2, c),
            Doing::Settling(c) => (3, c),
            Doing::Releasing(c) => (4, c),
        };
        let claimed = s.claims().iter().position(|c| c.record.worker == id);
        (kind, s.is_present(id), claimed, id)
    };
    let [a, b] = s.workers;
    if rank(s, b.doing, b.id) < rank(s, a.doing, a.id) {
        s.workers.swap(0, 1);
    }
    let mut names: Vec<u8> = s.workers.iter().map(|w| w.id).collect();
    let mentioned = s.claims().iter().map(|c| c.record.worker);
    let stored = s.tasks.iter().map(|t| t.worker);
    let present = (0..6).filter(|&id| s.is_present(id));
    for id in mentioned.chain(stored).chain(present).chain(0..6) {
        if !names.contains(&id) {
            names.push(id);
        }
    }
    let name = |id: u8| names.iter().position(|&n| n == id).unwrap_or(0) as u8;
    for worker in &mut s.workers {
        worker.id = name(worker.id);
    }
    let records = s.tasks.iter_mut().filter(|t| t.nonce != 0);
    records.for_each(|t| t.worker = name(t.worker));
    let claimed = usize::from(s.claimed);
    s.claims[..claimed]
        .iter_mut()
        .for_each(|c| c.record.worker = name(c.record.worker));
    let (presence, last) = (s.presence, s.last);
    s.presence = 0;
    for id in 0..6_u8 {
        let to = name(id);
        s.presence |= (presence >> id & 1) << to;
        s.last[usize::from(to)] = last[usize::from(id)];
    }
}

/// Without late calls, only a worker that waits for its claim asks what it took.
fn forget_calls(s: &mut State) {
    for id in 0..6 {
        let waits = |w: &&super::state::Worker| {
            usize::from(w.id) == id && matches!(w.doing, Doing::Claiming(_))
        };
        if s.workers.iter().find(waits).is_none() {
            s.last[id] = 0;
        }
    }
}

/// Nonces are named in the order in which they are met.
fn name_nonces(s: &mut State) {
    let mut met = vec![0];
    let mut name = |nonce: &mut u8| {
        let at = met.iter().position(|n| n == nonce).unwrap_or_else(|| {
            met.push(*nonce);
            met.len() - 1
        });
        *nonce = at as u8;
    };
    let claimed = usize::from(s.claimed);
    let each = |c: &mut Claim, name: &mut dyn FnMut(&mut u8)| {
        name(&mut c.record.nonce);
        name(&mut c.next);
    };
    for claim in &mut s.claims[..claimed] {
        each(claim, &mut name);
    }
    s.tasks.iter_mut().for_each(|t| name(&mut t.nonce));
    s.last.iter_mut().for_each(&mut name);
    for worker in &mut s.workers {
        if let Doing::Claiming(nonce) = &mut worker.doing {
            name(nonce);
        }
    }
    s.nonces = met.len() as u8 - 1;
}
