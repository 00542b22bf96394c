//! What goes wrong on the line of one process.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use tenure::{
    store::{ClaimReply, SettleReply, Settlement, TickReply},
    testing::{Fault, HintFault, Ledger, Passage, Script, Transition},
};

use crate::{
    chaos::{Chaos, ON_ITS_WAY},
    mix,
    scenario::Kind,
};

/// The longest way, in milliseconds.
const WAY: u64 = ON_ITS_WAY.as_millis() as u64;

/// The script of one process.
#[derive(Debug)]
pub(crate) struct Line {
    chaos: Arc<Chaos>,
    name: String,
    ledger: Ledger,
    ttl: Duration,
    luck: Mutex<Luck>,
}

#[derive(Debug)]
struct Luck {
    rng: Rng,
    /// How many calls in a row had no answer.
    row: u32,
}

impl Line {
    pub(crate) fn new(chaos: &Arc<Chaos>, name: &str, ledger: &Ledger, ttl: Duration) -> Arc<Self> {
        Arc::new(Self {
            chaos: Arc::clone(chaos),
            name: name.to_owned(),
            ledger: ledger.clone(),
            ttl,
            luck: Mutex::new(Luck {
                rng: Rng::with_seed(mix(chaos.scenario.seed, name)),
                row: 0,
            }),
        })
    }

    fn luck(&self) -> MutexGuard<'_, Luck> {
        self.luck.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.luck().rng.u64(least..most))
    }

    /// How likely a call goes wrong, in hundredths: rare calls more often.
    fn odds(transition: Transition) -> u8 {
        match transition {
            Transition::Start | Transition::Control | Transition::Release | Transition::Note => 40,
            Transition::Signal => 25,
            Transition::Settle => 10,
            Transition::Claim => 5,
            Transition::Extend | Transition::Tick => 3,
            _ => 1,
        }
    }

    fn fault(&self, transition: Transition) -> Fault {
        if self.chaos.is_away() {
            self.chaos.met(Kind::Outage, transition);
            return Fault::Refuse;
        }
        let unlucky = self.luck().rng.u8(0..100) < Self::odds(transition);
        let kind = match self.luck().rng.u8(0..12) {
            0 => Kind::DieBefore,
            1..3 => Kind::DieAfter,
            3..6 => Kind::LoseReply,
            6..8 => Kind::Repeat,
            8..10 => Kind::Pause,
            _ => Kind::Refuse,
        };
        if !unlucky || !self.chaos.scenario.has(kind) || !self.chaos.may_fail() {
            self.luck().row = 0;
            return Fault::None;
        }
        self.chaos.met(kind, transition);
        self.go_wrong(kind, transition)
    }

    fn go_wrong(&self, kind: Kind, transition: Transition) -> Fault {
        match kind {
            Kind::DieBefore => {
                self.chaos.gone(&self.name);
                Fault::DieBefore
            }
            Kind::DieAfter => {
                self.chaos.gone(&self.name);
                Fault::DieAfter
            }
            Kind::Pause => {
                let pause = self.millis(50, 4000);
                self.chaos.trouble(&self.name, pause);
                if self.luck().rng.bool() {
                    Fault::PauseBefore(pause)
                } else {
                    Fault::PauseAfter(pause)
                }
            }
            Kind::Repeat => {
                let later = self.millis(1, 5000);
                if transition == Transition::Claim {
                    // One that comes again when it is forgotten takes tasks of which its worker never hears.
                    self.chaos.trouble(&self.name, later + self.ttl);
                }
                Fault::Repeat(later)
            }
            _ => {
                self.no_answer();
                if kind == Kind::Refuse {
                    Fault::Refuse
                } else {
                    Fault::LoseReply
                }
            }
        }
    }

    /// One answer that is missing is made up for in time; many in a row may last longer than a claim.
    fn no_answer(&self) {
        self.luck().row += 1;
        if self.luck().row > 2 {
            self.chaos.trouble(&self.name, self.ttl);
        }
    }
}

impl Script for Line {
    fn passage(&self, transition: Transition) -> Passage {
        self.chaos.called(transition);
        Passage {
            there: self.millis(0, WAY),
            back: self.millis(0, WAY),
            fault: self.fault(transition),
        }
    }

    fn hint(&self) -> HintFault {
        let kind = match self.luck().rng.u8(0..8) {
            0 => Kind::HintLost,
            1 => Kind::HintLate,
            _ => return HintFault::None,
        };
        if self.chaos.is_healed() || !self.chaos.scenario.has(kind) {
            return HintFault::None;
        }
        self.chaos.happened(kind);
        if kind == Kind::HintLost {
            HintFault::Drop
        } else {
            HintFault::Delay(self.millis(1, 3000))
        }
    }

    fn claimed(&self, reply: &ClaimReply) {
        if !reply.claims.is_empty() {
            self.chaos.given(&self.name);
        }
        for claimed in &reply.claims {
            if claimed.ticket.tail != claimed.run.tail() {
                self.chaos.violation(format!(
                    "{} was given out for run {}",
                    claimed.ticket.entry().replace('\0', " "),
                    claimed.run
                ));
            }
            self.ledger.claimed(claimed).expect("a ledger in memory");
        }
        if !reply.aside.is_empty() {
            let what = format!("set aside: {:?}", reply.aside);
            self.chaos.violation(what);
        }
    }

    fn settled(&self, item: &Settlement, reply: &SettleReply) {
        if matches!(reply, SettleReply::Stored { next: Some(_) }) {
            self.chaos.given(&self.name);
        }
        self.ledger
            .settled(item, reply)
            .expect("a ledger in memory");
    }

    fn ticked(&self, reply: &TickReply) {
        for recovered in &reply.recovered {
            let what = format!("{} of {}", recovered.task, recovered.id);
            self.chaos
                .recovered(&recovered.worker, recovered.recovery, &what);
        }
    }

    fn note(&self, text: &dyn Fn() -> String) {
        self.chaos.note(&self.name, text);
    }
}
