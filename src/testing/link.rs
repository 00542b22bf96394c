use std::{
    fmt,
    future::pending,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::store::{ClaimReply, SettleReply, Settlement, TickReply};

/// Which of a store's methods is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transition {
    /// absent → live.
    Start,
    /// ready → running.
    Claim,
    /// A heartbeat.
    Extend,
    /// running → its outcome.
    Settle,
    /// running → ready.
    Release,
    /// What a running task writes down.
    Note,
    /// The keeper's round.
    Tick,
    /// waiting → ready, or kept.
    Signal,
    /// Cancel and terminate.
    Control,
    /// All reads, `watch`, `publish` and the opening of mailboxes.
    Read,
}

impl Transition {
    /// Those that change an instance.
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::Claim,
        Self::Extend,
        Self::Settle,
        Self::Release,
        Self::Tick,
        Self::Signal,
        Self::Control,
    ];
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Claim => "claim",
            Self::Extend => "extend",
            Self::Settle => "settle",
            Self::Release => "release",
            Self::Note => "note",
            Self::Tick => "tick",
            Self::Signal => "signal",
            Self::Control => "control",
            Self::Read => "read",
        })
    }
}

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// The process dies before the call is carried out: it and all later ones hang for ever.
    DieBefore,
    /// The process dies after the call was carried out, before its reply.
    DieAfter,
    /// The call is not carried out, and its caller is told so.
    Refuse,
    /// The call is carried out, and its caller is told that no answer came.
    LoseReply,
    /// The call is carried out, and once more so much later, when its caller has long gone on.
    Repeat(Duration),
    /// The process is stopped for so long before the call, with all that it does.
    PauseBefore(Duration),
    /// The process is stopped for so long between the call and its reply.
    PauseAfter(Duration),
}

/// One call: how long its ways take, and what goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passage {
    /// Until it is carried out.
    pub there: Duration,
    /// Until its caller has the answer.
    pub back: Duration,
    /// What goes wrong.
    pub fault: Fault,
}

/// What goes wrong with one hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HintFault {
    /// Nothing.
    #[default]
    None,
    /// It is lost.
    Drop,
    /// It comes so much later, and all behind it too.
    Delay(Duration),
}

/// Decides what goes wrong, and hears what happens. All methods are called in the order of the calls.
pub trait Script: fmt::Debug + Send + Sync {
    /// A call is made.
    fn passage(&self, transition: Transition) -> Passage;

    /// A hint arrives.
    fn hint(&self) -> HintFault {
        HintFault::None
    }

    /// The store gave out claims, whether or not their worker hears of it.
    fn claimed(&self, _reply: &ClaimReply) {}

    /// The store answered to a settlement.
    fn settled(&self, _item: &Settlement, _reply: &SettleReply) {}

    /// The store recovered and promoted.
    fn ticked(&self, _reply: &TickReply) {}

    /// Something for a log: nothing is formatted unless the script asks for it.
    fn note(&self, _text: &dyn Fn() -> String) {}
}

/// The line between one process and its store. Whoever holds it can cut it; handlers of that process ask it before each
/// effect, so that they stop with their process.
#[derive(Debug)]
pub struct Link {
    pub(super) script: Arc<dyn Script>,
    dead: AtomicBool,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Nothing of the process goes on before.
    paused: Option<Instant>,
    /// Nothing but heartbeats goes on before.
    blocked: Option<Instant>,
}

impl Link {
    /// A line that is whole.
    #[must_use]
    pub fn new(script: Arc<dyn Script>) -> Arc<Self> {
        Arc::new(Self {
            script,
            dead: AtomicBool::new(false),
            held: Mutex::default(),
        })
    }

    /// The process dies.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
    }

    /// Whether the process is dead.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// The process is stopped for a while, as by a signal or a laptop's lid.
    pub fn pause(&self, duration: Duration) {
        let mut held = self.held();
        held.paused = held.paused.max(Some(Instant::now() + duration));
    }

    /// A handler blocks its thread for a while: all but heartbeats is held up.
    pub fn block(&self, duration: Duration) {
        let mut held = self.held();
        held.blocked = held.blocked.max(Some(Instant::now() + duration));
    }

    /// All pauses are over.
    pub fn heal(&self) {
        *self.held() = Held::default();
    }

    /// Until the process goes on; for ever when it is dead.
    pub async fn pass(&self) {
        self.pass_as(Transition::Read).await;
    }

    pub(super) async fn pass_as(&self, transition: Transition) {
        loop {
            if self.is_dead() {
                return pending().await;
            }
            let Some(until) = self.held().until(transition) else {
                return;
            };
            if until <= Instant::now() {
                return;
            }
            // Looked at again now and then, since healing ends a pause early.
            let step = Instant::now() + Duration::from_millis(50);
            tokio::time::sleep_until(until.min(step)).await;
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn until(&self, transition: Transition) -> Option<Instant> {
        match transition {
            Transition::Extend => self.paused,
            _ => self.paused.max(self.blocked),
        }
    }
}
