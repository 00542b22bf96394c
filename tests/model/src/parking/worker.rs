//! What a worker does by itself. It has one claim under way at most.

use super::{
    Action, Mutation, Parking,
    state::{Call, LISTS, Mode, Phase, State, Worker},
};

impl Parking {
    pub(crate) fn offer(&self, s: &State, worker: usize, into: &mut Vec<Action>) {
        let w = &s.workers[worker];
        if s.woken[worker] {
            into.push(Action::WakeAgain { worker });
        }
        if w.phase == Phase::Gone {
            return;
        }
        if w.mail {
            into.push(Action::Hear { worker });
            if s.lost_hints < self.lost_hints {
                into.push(Action::LoseHint { worker });
            }
        }
        if w.running > 0 {
            into.push(Action::Finish { worker });
        }
        match w.call {
            Some(Call { reply: None, .. }) => into.push(Action::Execute { worker }),
            Some(Call { reply: Some(_), .. }) => {
                into.push(Action::Reply { worker });
                if s.lost_replies < self.lost_replies {
                    into.push(Action::LoseReply { worker });
                }
            }
            None if w.phase == Phase::Working => {
                if w.hot && self.may_look(w) {
                    into.push(Action::Look { worker });
                } else if self.polls(s, worker) {
                    into.push(Action::Poll { worker });
                }
            }
            None if w.parked || w.hinted => into.push(Action::Farewell { worker }),
            None if w.running == 0 => into.push(Action::Leave { worker }),
            None => {}
        }
        if w.phase == Phase::Working && s.left < self.leaving {
            into.push(Action::Stop { worker });
        }
    }

    /// A worker without a free slot looks only to pass a hint on.
    pub(crate) fn may_look(&self, w: &Worker) -> bool {
        w.free() > 0 || (w.hinted && !self.has(Mutation::BusyWorkerKeepsHint))
    }

    /// Polls happen at any time; those after a loss, that find something, as often as needed.
    fn polls(&self, s: &State, worker: usize) -> bool {
        let needed = s.lost_hints > 0 && self.finds(s, worker);
        needed || (s.polls < self.polls && s.workers[worker].free() > 0)
    }

    /// Whether a poll would find something now.
    pub(crate) fn finds(&self, s: &State, worker: usize) -> bool {
        let there = |list| self.serves(worker, list) && s.ready[list] > 0;
        s.workers[worker].free() > 0 && (0..LISTS).any(there)
    }

    pub(crate) fn act(&self, s: &mut State, worker: usize, action: Action) {
        let w = &mut s.workers[worker];
        match action {
            Action::Hear { .. } => (w.mail, w.hot, w.hinted) = (false, true, true),
            Action::LoseHint { .. } => {
                w.mail = false;
                s.lost_hints += 1;
            }
            Action::Look { .. } => send(w),
            Action::Poll { .. } => {
                send(w);
                s.polls = (s.polls + 1).min(self.polls);
            }
            Action::Reply { .. } => self.answered(w),
            Action::LoseReply { .. } => {
                if let Some(call) = &mut w.call {
                    call.reply = None;
                }
                s.lost_replies += 1;
            }
            Action::Finish { .. } => w.running -= 1,
            Action::Stop { .. } => {
                w.phase = Phase::Stopping;
                s.left += 1;
                if self.has(Mutation::LeavesWhileParked) && w.call.is_some() {
                    w.phase = Phase::Gone;
                }
            }
            Action::Farewell { .. } => {
                (w.parked, w.hinted, w.hot) = (false, false, false);
                w.call = Some(call(w, 0, Mode::Parked));
            }
            Action::Leave { .. } => (w.phase, w.mail) = (Phase::Gone, false),
            Action::Arrive { .. } | Action::Execute { .. } | Action::WakeAgain { .. } => {}
        }
    }

    fn answered(&self, w: &mut Worker) {
        let Some((call, (got, parked))) = w.call.take().and_then(|c| Some((c, c.reply?))) else {
            return;
        };
        if self.has(Mutation::ReplyForgetsHint) {
            (w.hot, w.hinted) = (false, false);
        }
        if call.want > 0 {
            w.running += got;
            w.parked = parked;
            w.hot |= got == call.want;
        }
    }
}

fn send(w: &mut Worker) {
    let want = w.free();
    let mode = match (want, w.parked) {
        (0, _) => Mode::Never,
        (_, true) => Mode::Parked,
        (_, false) => Mode::WhenShort,
    };
    w.first = (w.first + 1) % LISTS;
    w.hinted = false;
    // What stands there is still to be claimed when a slot is free.
    w.hot = want == 0;
    w.call = Some(call(w, want, mode));
}

fn call(w: &Worker, want: u8, mode: Mode) -> Call {
    Call {
        want,
        mode,
        first: w.first,
        reply: None,
        taken: 0,
        half: false,
    }
}
