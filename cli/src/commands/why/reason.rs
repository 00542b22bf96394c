//! Why an instance does not move.

use std::time::Duration;

use tenure::{
    Status,
    ids::{DefinitionHash, QueueName, SignalName, TaskName, WorkerId},
    store::ErrorRecord,
    time::Timestamp,
};

/// Why an instance, or one of its open tasks, does not move.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reason {
    /// What is stored of it cannot be read.
    Damaged { what: String },
    /// A task is open, and nothing stands for it in the place where something should.
    Lost { task: TaskName, place: String },
    /// It is over: completed.
    Completed { at: Option<Timestamp> },
    /// It is dead.
    Dead { error: Option<ErrorRecord> },
    /// A person or program ended it.
    Ended {
        status: Status,
        by: Option<String>,
        reason: Option<String>,
    },
    Paused {
        by: Option<String>,
        reason: Option<String>,
        open: Vec<TaskName>,
        parked: usize,
    },
    /// No worker that lives has its definition.
    NoWorker {
        task: TaskName,
        workflow: String,
        definition: DefinitionHash,
        workers: usize,
        /// Definitions of the same workflow that workers have.
        others: Vec<DefinitionHash>,
    },
    /// Those that have it serve other queues.
    NoQueue {
        task: TaskName,
        queue: QueueName,
        workers: usize,
    },
    /// Those that could are told to stop.
    Draining { task: TaskName, workers: usize },
    /// All slots of those that could are taken.
    Busy {
        task: TaskName,
        ahead: Option<usize>,
        slots: usize,
        workers: usize,
    },
    /// A worker is about to take it.
    Ready {
        task: TaskName,
        ahead: Option<usize>,
        free: usize,
    },
    /// A worker runs it, and says so.
    Running {
        task: TaskName,
        worker: Option<WorkerId>,
        attempt: u32,
        until: Timestamp,
        heard: Option<Duration>,
        deadline: Option<Timestamp>,
    },
    /// Its worker has stopped saying that it lives, and the claim still holds.
    Silent {
        task: TaskName,
        worker: Option<WorkerId>,
        heard: Option<Duration>,
        until: Timestamp,
    },
    /// Its claim has expired; a keeper makes it ready again.
    Expired {
        task: TaskName,
        worker: Option<WorkerId>,
        workers: usize,
    },
    Retry {
        task: TaskName,
        due: Timestamp,
        failures: u32,
        of: Option<u32>,
        error: Option<ErrorRecord>,
    },
    /// A delay or a start at a later time.
    Timer { task: TaskName, due: Timestamp },
    /// A timer that is due should have been seen to.
    Overdue {
        task: TaskName,
        due: Timestamp,
        workers: usize,
    },
    /// It is delayed among so many that its time was not found.
    Delayed { task: TaskName },
    Signal {
        task: TaskName,
        signal: SignalName,
        timeout: Option<Timestamp>,
        early: Vec<SignalName>,
    },
}

impl Reason {
    /// A word for programs. These stay.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => "damaged",
            Self::Lost { .. } => "lost",
            Self::Completed { .. } => "completed",
            Self::Dead { .. } => "dead",
            Self::Ended { .. } => "ended",
            Self::Paused { .. } => "paused",
            Self::NoWorker { .. } => "no-worker",
            Self::NoQueue { .. } => "no-worker-for-queue",
            Self::Draining { .. } => "workers-draining",
            Self::Busy { .. } => "all-slots-busy",
            Self::Ready { .. } => "ready",
            Self::Running { .. } => "running",
            Self::Silent { .. } => "worker-silent",
            Self::Expired { .. } => "claim-expired",
            Self::Retry { .. } => "retry",
            Self::Timer { .. } => "timer",
            Self::Overdue { .. } => "timer-overdue",
            Self::Delayed { .. } => "delayed",
            Self::Signal { .. } => "signal",
        }
    }

    /// Whether it does not go on by itself.
    pub(super) fn needs_somebody(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. } | Self::Lost { .. } | Self::Dead { .. }
        )
    }

    /// What holds an instance up most comes first.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Damaged { .. } | Self::Lost { .. } => 0,
            Self::NoWorker { .. } | Self::NoQueue { .. } | Self::Draining { .. } => 1,
            Self::Overdue { .. } | Self::Expired { .. } => 2,
            Self::Silent { .. } => 3,
            Self::Retry { .. } => 4,
            Self::Signal { .. } => 5,
            Self::Timer { .. } | Self::Delayed { .. } => 6,
            Self::Busy { .. } => 7,
            Self::Running { .. } => 8,
            _ => 9,
        }
    }
}

/// The reason, those of the other open tasks, and what else was seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answered {
    pub(super) now: Option<Timestamp>,
    /// The most important first; never empty.
    pub(super) reasons: Vec<Reason>,
    /// What each is called and how it is.
    pub(super) facts: Vec<(String, String)>,
}

impl Answered {
    pub(super) fn only(reason: Reason) -> Self {
        Self {
            now: None,
            reasons: vec![reason],
            facts: Vec::new(),
        }
    }

    pub(super) fn first(&self) -> &Reason {
        &self.reasons[0]
    }

    pub(super) fn others(&self) -> &[Reason] {
        &self.reasons[1..]
    }

    /// What may be a move that was half seen.
    pub(super) fn is_doubtful(&self) -> bool {
        let doubtful = |r: &Reason| matches!(r, Reason::Lost { .. } | Reason::Expired { .. });
        self.reasons.iter().any(doubtful)
    }
}
