//! What is stored, what the workers know, and what only the model knows.

/// The tasks of one instance.
pub(crate) const TASKS: usize = 3;
/// Tickets: two runs, three tasks, timed out or not.
pub(crate) const TICKETS: u8 = 12;
/// More claims than any run of a model makes.
const CLAIMS: usize = 10;
/// Workers that ever live: two, and who comes after each crash.
const WORKERS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum TaskState {
    #[default]
    Absent,
    Ready,
    Running,
    Delayed,
    Completed,
    Failed,
    Closed,
}

impl TaskState {
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Ready | Self::Running | Self::Delayed)
    }
}

/// The record of a task; while it runs, its fence. Nonce 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Record {
    pub(crate) state: TaskState,
    pub(crate) attempt: u8,
    pub(crate) nonce: u8,
    pub(crate) failures: u8,
    pub(crate) crashes: u8,
    pub(crate) worker: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Status {
    #[default]
    Absent,
    Running,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A ready entry, a timer, or what the reaper looks at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Ticket(pub(crate) u8);

impl Ticket {
    pub(crate) fn new(run: u8, task: usize) -> Self {
        Self((run - 1) * 6 + task as u8 * 2)
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..TICKETS).map(Self)
    }

    pub(crate) fn run(self) -> u8 {
        self.0 / 6 + 1
    }

    pub(crate) fn task(self) -> usize {
        usize::from(self.0 % 6 / 2)
    }

    /// Whether the attempt is over already, and the engine is to say what follows.
    pub(crate) fn timed_out(self) -> bool {
        self.0 % 2 == 1
    }

    pub(crate) fn as_timed_out(self) -> Self {
        Self(self.0 | 1)
    }

    pub(crate) fn as_ordinary(self) -> Self {
        Self(self.0 & !1)
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.timed_out() { "!" } else { "" };
        write!(f, "run {} task {}{mark}", self.run(), self.task())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tickets(u16);

impl Tickets {
    pub(crate) fn has(self, ticket: Ticket) -> bool {
        self.0 & (1 << ticket.0) != 0
    }

    pub(crate) fn add(&mut self, ticket: Ticket) {
        self.0 |= 1 << ticket.0;
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) {
        self.0 &= !(1 << ticket.0);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the task's ticket is there, whatever it is for.
    pub(crate) fn has_task(self, run: u8, task: usize) -> bool {
        let ticket = Ticket::new(run, task);
        self.has(ticket) || self.has(ticket.as_timed_out())
    }
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let there = Ticket::all().filter(|ticket| self.has(*ticket));
        f.debug_set().entries(there).finish()
    }
}

/// What a worker decided about a task it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    Complete { claim_next: bool },
    Retry,
    Fail,
}

/// What became of a claim, as only somebody who sees everything knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Fate {
    #[default]
    Held,
    /// Its settlement is stored.
    Applied,
    /// It was given back, reaped, closed or replaced.
    TakenAway,
}

/// A claim that was made: what its owner got, and what it sent since. Calls that were sent may arrive at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Claim {
    pub(crate) ticket: Ticket,
    /// Which run the task was of; the same as the ticket's unless entries are mixed up.
    pub(crate) run: u8,
    pub(crate) record: Record,
    pub(crate) settles: Option<Verdict>,
    /// The nonce for the follow-up: the same in each repeat of the settlement.
    pub(crate) next: u8,
    pub(crate) releases: bool,
    /// Only when a settlement is two calls: the first was executed.
    pub(crate) half: bool,
    pub(crate) fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Nothing,
    /// The reply to a claim with this nonce did not come.
    Claiming(u8),
    Running(u8),
    Settling(u8),
    Releasing(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) id: u8,
    pub(crate) doing: Doing,
}

/// What went wrong so far, each kind bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Faults {
    pub(crate) all: u8,
    pub(crate) crashes: u8,
    /// Keys that expired while their owner lived.
    pub(crate) lapses: u8,
    pub(crate) lost_replies: u8,
    pub(crate) late_calls: u8,
    pub(crate) retries: u8,
    pub(crate) releases: u8,
    pub(crate) timeouts: u8,
}

/// What must never happen and leaves no trace in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Breach {
    WroteAfterTakenAway,
    SaidStored,
    SaidLost,
    ForeignEntry,
    ForeignWrite,
    FenceRepeated,
    FiredTwice,
    FiredEarly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    // The snapshot.
    pub(crate) run: u8,
    pub(crate) status: Status,
    pub(crate) tasks: [Record; TASKS],
    pub(crate) arrived: u8,
    pub(crate) fired: bool,
    pub(crate) open: u8,
    /// Whether run 1 is among the runs that were replaced.
    pub(crate) replaced: bool,
    // Beside it.
    pub(crate) ready: [u8; TICKETS as usize],
    pub(crate) running: Tickets,
    pub(crate) in_doubt: Tickets,
    pub(crate) delayed: Tickets,
    /// The claim keys, by task: of which claim.
    pub(crate) keys: [Option<u8>; TASKS],
    /// One bit for each worker.
    pub(crate) presence: u8,
    /// The nonce of each worker's last claim.
    pub(crate) last: [u8; WORKERS],
    // Outside.
    pub(crate) workers: [Worker; 2],
    pub(crate) claims: [Claim; CLAIMS],
    pub(crate) claimed: u8,
    /// How many nonces were drawn.
    pub(crate) nonces: u8,
    pub(crate) cancels: u8,
    pub(crate) faults: Faults,
    /// What a reaper found expired and has not acted on; only when it works in two steps.
    pub(crate) listed: Tickets,
    // What only the model knows, of this run.
    pub(crate) commits: [u8; TASKS],
    /// By which attempt.
    pub(crate) results: [Option<u8>; TASKS],
    pub(crate) breach: Option<Breach>,
}

impl State {
    pub(crate) fn nothing() -> Self {
        let worker = |id| Worker {
            id,
            doing: Doing::Nothing,
        };
        Self {
            run: 0,
            status: Status::Absent,
            tasks: Default::default(),
            arrived: 0,
            fired: false,
            open: 0,
            replaced: false,
            ready: [0; TICKETS as usize],
            running: Tickets::default(),
            in_doubt: Tickets::default(),
            delayed: Tickets::default(),
            keys: [None; TASKS],
            presence: 0b11,
            last: [0; WORKERS],
            workers: [worker(0), worker(1)],
            claims: Default::default(),
            claimed: 0,
            nonces: 0,
            cancels: 0,
            faults: Faults::default(),
            listed: Tickets::default(),
            commits: [0; TASKS],
            results: [None; TASKS],
            breach: None,
        }
    }

    pub(crate) fn claims(&self) -> &[Claim] {
        &self.claims[..usize::from(self.claimed)]
    }

    /// Whether a living worker believes that this claim is its own.
    pub(crate) fn is_believed(&self, claim: u8) -> bool {
        let believes = |worker: &Worker| matches!(worker.doing, Doing::Running(c) | Doing::Settling(c) | Doing::Releasing(c) if c == claim);
        self.workers.iter().any(believes)
    }

    pub(crate) fn lives(&self, id: u8) -> bool {
        self.workers.iter().any(|worker| worker.id == id)
    }

    pub(crate) fn is_present(&self, id: u8) -> bool {
        self.presence & (1 << id) != 0
    }

    /// Whether an entry or ticket belongs to the run that is stored and not over.
    pub(crate) fn is_live(&self, ticket: Ticket) -> bool {
        self.status == Status::Running && self.run == ticket.run()
    }

    /// The reaper has nothing to look at any more; its doubt was part of the score.
    pub(crate) fn untrack(&mut self, ticket: Ticket) {
        self.running.remove(ticket);
        self.in_doubt.remove(ticket);
    }

    pub(crate) fn new_nonce(&mut self) -> u8 {
        self.nonces += 1;
        self.nonces
    }

    pub(crate) fn breach(&mut self, breach: Breach) {
        self.breach.get_or_insert(breach);
    }
}
