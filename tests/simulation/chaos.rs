//! What goes wrong, for all processes of one run, and what the processes are seen to do.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tenure::{
    ids::WorkerId,
    store::Recovery,
    testing::Transition,
    time::{Clock, Timestamp},
};
use tokio::time::Instant;

use crate::{
    coverage::Coverage,
    scenario::{Kind, Scenario},
};

/// Which time passes in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// As tokio says.
    Simulated,
    /// That of the machine, which may be busy with something else: nothing is ever surely in time.
    Real,
}

/// Whether a run keeps a log: that costs more than the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logs {
    Kept,
    None,
}

/// What all processes of one run share.
#[derive(Debug)]
pub(crate) struct Chaos {
    pub(crate) scenario: Scenario,
    pub(crate) store_clock: Clock,
    /// Never behind the store's: stepped forward with it, but not back.
    pub(crate) ledger_clock: Clock,
    time: Time,
    begin: Instant,
    ttl: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    healed: bool,
    faults_left: usize,
    outage: Option<Instant>,
    coverage: Coverage,
    calls: usize,
    serial: u64,
    /// Until when a worker may lose its claims through no fault of the protocol.
    troubled: BTreeMap<String, Instant>,
    all_troubled: Instant,
    /// When a worker was last given claims.
    given: BTreeMap<String, Instant>,
    stepped_back: Duration,
    violations: Vec<String>,
    log: Option<Vec<String>>,
}

/// Much longer than any run lasts.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

/// How long a reply is on its way, when nothing is wrong.
pub(crate) const ON_ITS_WAY: Duration = Duration::from_millis(4);

impl Chaos {
    pub(crate) fn new(scenario: Scenario, ttl: Duration, time: Time, logs: Logs) -> Self {
        let clock = || match time {
            Time::Simulated => Clock::simulated(Timestamp::from_millis(1_700_000_000_000)),
            Time::Real => Clock::system(),
        };
        let begin = Instant::now();
        let state = State {
            healed: false,
            faults_left: scenario.faults,
            outage: None,
            coverage: Coverage::default(),
            calls: 0,
            serial: 0,
            troubled: BTreeMap::new(),
            all_troubled: begin,
            given: BTreeMap::new(),
            stepped_back: Duration::ZERO,
            violations: Vec::new(),
            log: (logs == Logs::Kept).then(Vec::new),
        };
        Self {
            scenario,
            store_clock: clock(),
            ledger_clock: clock(),
            time,
            begin,
            ttl,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other call gets.
    pub(crate) fn serial(&self) -> u64 {
        let mut state = self.state();
        state.serial += 1;
        state.serial
    }

    /// Something went wrong that is no fault of a call.
    pub(crate) fn happened(&self, kind: Kind) {
        self.state().coverage.happened(kind);
        self.note("world", &|| format!("{kind:?}"));
    }

    pub(crate) fn called(&self, transition: Transition) {
        let mut state = self.state();
        if transition != Transition::Read {
            state.calls += 1;
        }
        state.coverage.called(transition);
    }

    pub(crate) fn met(&self, kind: Kind, transition: Transition) {
        self.state().coverage.met(kind, transition);
    }

    /// Whether one more call may go wrong; then it does.
    pub(crate) fn may_fail(&self) -> bool {
        let mut state = self.state();
        if state.healed || state.faults_left == 0 {
            return false;
        }
        state.faults_left -= 1;
        true
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.state().healed
    }

    pub(crate) fn is_away(&self) -> bool {
        let state = self.state();
        !state.healed && state.outage.is_some_and(|until| Instant::now() < until)
    }

    /// The store cannot be reached for a while.
    pub(crate) fn outage(&self, duration: Duration) {
        self.note("world", &|| format!("outage for {duration:?}"));
        self.state().outage = Some(Instant::now() + duration);
        self.trouble_for_all(duration);
    }

    /// The store's clock is moved.
    pub(crate) fn step(&self, millis: i64) {
        self.note("world", &|| format!("the clock is moved by {millis} ms"));
        self.happened(Kind::ClockStep);
        self.store_clock.step(millis);
        self.ledger_clock.step(millis.max(0));
        let back = Duration::from_millis(u64::try_from(-millis).unwrap_or(0));
        self.state().stepped_back += back;
        self.trouble_for_all(back);
    }

    /// Nothing goes wrong any more. Answers with how late timers may be by steps of the clock.
    pub(crate) fn heal(&self) -> Duration {
        self.note("world", &|| "all is well from now on".into());
        let mut state = self.state();
        state.healed = true;
        state.stepped_back
    }

    /// Claims of this worker may run out from now until so long after.
    pub(crate) fn trouble(&self, worker: &str, duration: Duration) {
        let until = Instant::now() + duration + self.aftermath();
        let mut state = self.state();
        let troubled = state.troubled.entry(worker.to_owned()).or_insert(until);
        *troubled = until.max(*troubled);
    }

    /// The store gave claims to this worker.
    pub(crate) fn given(&self, worker: &str) {
        let now = Instant::now();
        self.state().given.insert(worker.to_owned(), now);
    }

    /// A handler holds the thread of this worker. Heartbeats go on, but claims whose reply is on its way are not known yet.
    pub(crate) fn blocked(&self, worker: &str, duration: Duration) {
        self.happened(Kind::Blocked);
        let given = self.state().given.get(worker).copied();
        if given.is_some_and(|given| given.elapsed() <= ON_ITS_WAY) {
            self.trouble(worker, duration);
        }
    }

    /// This worker is gone.
    pub(crate) fn gone(&self, worker: &str) {
        self.trouble(worker, FOR_EVER);
    }

    fn trouble_for_all(&self, duration: Duration) {
        let until = Instant::now() + duration + self.aftermath();
        let mut state = self.state();
        state.all_troubled = state.all_troubled.max(until);
    }

    /// How long after a trouble a reaper may still find what it left.
    fn aftermath(&self) -> Duration {
        3 * self.ttl + Duration::from_secs(12)
    }

    /// A task was taken from a worker: that needs a reason.
    pub(crate) fn recovered(&self, worker: &WorkerId, recovery: Recovery, what: &str) {
        if recovery == Recovery::TimedOut || self.time == Time::Real {
            return;
        }
        let now = Instant::now();
        let mut state = self.state();
        let troubled = state.troubled.get(worker.as_str());
        if state.all_troubled < now && troubled.is_none_or(|until| *until < now) {
            state.violations.push(format!(
                "{recovery:?} of {what}: nothing was wrong with {worker}, which held it"
            ));
        }
    }

    pub(crate) fn time(&self) -> Time {
        self.time
    }

    pub(crate) fn violation(&self, what: String) {
        self.note("world", &|| format!("VIOLATION {what}"));
        self.state().violations.push(what);
    }

    pub(crate) fn is_violated(&self) -> bool {
        !self.state().violations.is_empty()
    }

    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(crate) fn note(&self, who: &str, text: &dyn Fn() -> String) {
        if let Some(log) = &mut self.state().log {
            let at = self.begin.elapsed().as_millis();
            log.push(format!("{at:>6} {who:<8} {}", text()));
        }
    }

    /// What came of the run: violations, coverage, log.
    pub(crate) fn take(&self) -> (Vec<String>, Coverage, Vec<String>) {
        let mut state = self.state();
        (
            std::mem::take(&mut state.violations),
            std::mem::take(&mut state.coverage),
            state.log.take().unwrap_or_default(),
        )
    }
}
