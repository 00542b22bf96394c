use std::{
    sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use crate::{Args, Result};

/// Bytes of a payload, before the peer encodes it.
const PAYLOAD: usize = 100;

/// The payload of a job: its number, and filling.
pub fn payload(job: usize) -> String {
    format!("{job:08}{}", "x".repeat(PAYLOAD - 8))
}

/// The number of the job that a payload belongs to.
pub fn payload_index(payload: &str) -> usize {
    payload[..8]
        .parse()
        .expect("a payload begins with its job's number")
}

/// What the handlers did: how often each task ran, and when first.
pub struct Ledger {
    begun: Instant,
    tasks_per_job: usize,
    ran: Vec<AtomicU8>,
    first: Vec<AtomicU64>,
    total: AtomicUsize,
    hold: bool,
    speaks: bool,
}

impl Ledger {
    /// A ledger for the tasks of a load.
    pub fn new(args: &Args) -> Self {
        let tasks = args.count * args.shape.tasks();
        Self {
            begun: Instant::now(),
            tasks_per_job: args.shape.tasks(),
            ran: (0..tasks).map(|_| AtomicU8::new(0)).collect(),
            first: (0..tasks).map(|_| AtomicU64::new(0)).collect(),
            total: AtomicUsize::new(0),
            hold: args.hold,
            speaks: args.load == "worker",
        }
    }

    /// What every handler does: notes that task `task` of job `job` runs. In the load `worker` it also says so, and may
    /// never come back.
    pub async fn run(&self, job: usize, task: usize) {
        let index = job * self.tasks_per_job + task;
        let now = u64::try_from(self.begun.elapsed().as_nanos()).expect("nanoseconds of centuries");
        if self.ran[index].fetch_add(1, Ordering::Relaxed) == 0 {
            self.first[index].store(now, Ordering::Relaxed);
            self.total.fetch_add(1, Ordering::Release);
        }
        if self.speaks {
            println!("begin {job}");
        }
        if self.hold {
            std::future::pending::<()>().await;
        }
    }

    /// How many tasks ran, each counted once.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Acquire)
    }

    /// Waits until so many tasks ran.
    pub async fn reached(&self, tasks: usize, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.total() < tasks {
            if Instant::now() > deadline {
                return Err(format!("{} of {tasks} tasks ran in {limit:?}", self.total()).into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// When the only task of a job began first.
    pub fn began(&self, job: usize) -> Instant {
        self.begun + Duration::from_nanos(self.first[job].load(Ordering::Relaxed))
    }

    /// How many tasks ran more than once.
    ///
    /// # Errors
    /// Some never ran.
    pub fn repeated(&self) -> Result<usize> {
        let count = |wanted: fn(u8) -> bool| {
            let ran = self.ran.iter().map(|ran| ran.load(Ordering::Relaxed));
            ran.filter(|times| wanted(*times)).count()
        };
        let never = count(|times| times == 0);
        if never > 0 {
            return Err(format!("{never} tasks never ran").into());
        }
        Ok(count(|times| times > 1))
    }
}
