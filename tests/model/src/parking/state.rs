//! Lists and parking places, and what each worker knows.

use std::fmt::{Display, Formatter, Result};

use super::Parking;

pub(crate) const LISTS: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Working,
    Stopping,
    Gone,
}

/// What a claim says of parking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    Never,
    WhenShort,
    /// The worker believes that it is parked.
    Parked,
}

/// A claim under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) want: u8,
    pub(crate) mode: Mode,
    /// The list to look into first.
    pub(crate) first: usize,
    /// What the store did, until the reply is there: how many were taken, and whether the worker is parked.
    pub(crate) reply: Option<(u8, bool)>,
    /// What the store remembers of this call: a repeat gets it again.
    pub(crate) taken: u8,
    /// Only when it is two calls: the lists were looked into.
    pub(crate) half: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    pub(crate) slots: u8,
    pub(crate) running: u8,
    /// A hint is under way to it.
    pub(crate) mail: bool,
    /// Something may stand in its lists.
    pub(crate) hot: bool,
    /// A hint came that it may be unable to follow.
    pub(crate) hinted: bool,
    pub(crate) parked: bool,
    pub(crate) first: usize,
    pub(crate) call: Option<Call>,
}

impl Worker {
    /// Slots that neither run nor are promised to a call.
    pub(crate) fn free(&self) -> u8 {
        self.slots - self.running - self.call.map_or(0, |c| c.want)
    }

    /// Slots that are free when the call under way is answered, if it has been executed.
    pub(crate) fn free_soon(&self) -> u8 {
        let promised = match self.call {
            Some(Call {
                reply: Some((got, _)),
                ..
            }) => got,
            Some(call) => call.want,
            None => 0,
        };
        self.slots - self.running - promised
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// Tasks that are not ready yet.
    pub(crate) coming: [u8; LISTS],
    pub(crate) ready: [u8; LISTS],
    /// Parked workers, the newest last.
    pub(crate) idle: [Vec<usize>; LISTS],
    pub(crate) woken: Vec<bool>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) lost_hints: u8,
    pub(crate) lost_replies: u8,
    pub(crate) polls: u8,
    pub(crate) left: u8,
}

impl State {
    /// Every worker looks when it starts.
    pub(crate) fn new(model: &Parking) -> Self {
        let worker = |&(_, slots): &(u8, u8)| Worker {
            phase: Phase::Working,
            slots,
            running: 0,
            mail: false,
            hot: true,
            hinted: false,
            parked: false,
            first: 0,
            call: None,
        };
        Self {
            coming: model.tasks,
            ready: [0; LISTS],
            idle: Default::default(),
            woken: vec![false; model.workers.len()],
            workers: model.workers.iter().map(worker).collect(),
            lost_hints: 0,
            lost_replies: 0,
            polls: 0,
            left: 0,
        }
    }

    /// Wakes the worker that parked last at a list.
    pub(crate) fn wake(&mut self, list: usize) {
        if let Some(worker) = self.idle[list].pop() {
            self.woken[worker] = true;
            self.hint(worker);
        }
    }

    /// Nobody hears a hint to a worker that is gone.
    pub(crate) fn hint(&mut self, worker: usize) {
        let to = &mut self.workers[worker];
        to.mail = to.phase != Phase::Gone;
    }
}

impl Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self { ready, idle, .. } = self;
        for list in 0..LISTS {
            writeln!(
                f,
                "list {list}: {} ready, parked {:?}",
                ready[list], idle[list]
            )?;
        }
        for (at, worker) in self.workers.iter().enumerate() {
            writeln!(f, "w{at}: {worker:?}")?;
        }
        Ok(())
    }
}
