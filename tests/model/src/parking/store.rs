//! What a claim does about parking.

use super::{
    Mutation, Parking,
    state::{Call, LISTS, Mode, State},
};

impl Parking {
    /// The claim is executed: takes, parks or unparks, and wakes others for what it leaves.
    pub(crate) fn execute(&self, s: &mut State, worker: usize) {
        let Some(mut call) = s.workers[worker].call else {
            return;
        };
        s.woken[worker] = false;
        if call.taken > 0 && !call.half {
            call.reply = Some((call.taken, false));
            s.workers[worker].call = Some(call);
            return;
        }
        let first = call.first;
        let order = (0..LISTS).map(|i| (first + i) % LISTS);
        let lists: Vec<usize> = order.filter(|&list| self.serves(worker, list)).collect();
        let looked = if call.half {
            lists.len()
        } else {
            take(s, &mut call, &lists)
        };
        if self.has(Mutation::ParksWithoutLooking) && !call.half && call.want > 0 {
            call.half = true;
            s.workers[worker].call = Some(call);
            return;
        }
        let short = call.taken < call.want;
        let parks = short && call.mode != Mode::Never;
        for &list in &lists {
            if parks || (!short && call.mode == Mode::Parked) {
                s.idle[list].retain(|&w| w != worker);
            }
            if parks {
                s.idle[list].push(worker);
            }
        }
        let others = match self.mutation {
            Some(Mutation::LeavesTheRest) => 0,
            Some(Mutation::LeavesOtherLists) => looked,
            _ => lists.len(),
        };
        for &list in &lists[..others] {
            if !short && s.ready[list] > 0 {
                s.wake(list);
            }
        }
        call.half = false;
        call.reply = Some((call.taken, parks));
        s.workers[worker].call = Some(call);
    }
}

/// Takes what is wanted; answers how many lists were looked into.
fn take(s: &mut State, call: &mut Call, lists: &[usize]) -> usize {
    for (looked, &list) in lists.iter().enumerate() {
        if call.want > 0 && call.taken == call.want {
            return looked;
        }
        let got = s.ready[list].min(call.want - call.taken);
        s.ready[list] -= got;
        call.taken += got;
    }
    lists.len()
}
