//! The workflows of the tests. What a task does is said by the input of its instance, so that few graphs serve all.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::BoxFuture;
use nix::{sys::signal, unistd::Pid};
use serde::{Deserialize, Serialize};
use tenure::{RetryPolicy, TaskContext, TaskError, Workflow};
use tokio::time::sleep;

use crate::ledger::{Ledger, Phase};

/// How often a handler that waits for a gate looks.
const LOOK: Duration = Duration::from_millis(5);

/// The input of an instance, and the result of every task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// What each task does; a task that is not named is done at once.
    plan: BTreeMap<String, Vec<Step>>,
    /// The results that led here, oldest first.
    pub(crate) trail: Vec<Mark>,
}

/// One execution whose result was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) task: String,
    pub(crate) attempt: u32,
    pub(crate) pid: u32,
    pub(crate) token: u64,
}

/// Something to do, in attempts up to a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    act: Act,
    last_attempt: u32,
}

/// What a handler can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Waits for so many milliseconds.
    Sleep(u64),
    /// Waits until the file is there.
    Gate(PathBuf),
    /// Blocks its thread until the file is there.
    Block(PathBuf),
    /// Computes, without a pause for its runtime, until the file is there.
    Spin(PathBuf),
    /// Appends a line every 10 ms until the file is there.
    Tick(PathBuf),
    /// Returns an error.
    Fail,
    /// Panics.
    Panic(String),
    /// Kills its own process.
    Kill,
}

impl Job {
    /// In every attempt of a task.
    pub(crate) fn act(self, task: &str, act: Act) -> Self {
        self.act_until(u32::MAX, task, act)
    }

    /// In the attempts of a task up to a number.
    pub(crate) fn act_until(mut self, last_attempt: u32, task: &str, act: Act) -> Self {
        self.plan
            .entry(task.to_owned())
            .or_default()
            .push(Step { act, last_attempt });
        self
    }
}

/// The workflows that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// `a`, retried at once, three attempts.
    One,
    /// As `One`, under another name.
    Other,
    /// `a`, then `b`.
    Two,
    /// `a`, one attempt.
    Once,
    /// `a` with a timeout of an hour.
    Hour,
    /// `a` with a timeout of [`TIMEOUT`], two attempts.
    Timed,
    /// `a` with many attempts, soon after each other.
    Stubborn,
    /// A delay of [`DELAY`], then `a`.
    Later,
    /// `a`, then the branches `b` and (after a short delay) `c` then `d`, joined by `e`.
    Mesh,
    /// `split`, [`FAN`] branches `w-<i>`, joined by `gather`.
    Fan,
    /// `a` in the queue `left`.
    Left,
    /// `a` in the queue `right`.
    Right,
}

/// The timeout of `Timed`.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(700);
/// The delay of `Later`.
pub(crate) const DELAY: Duration = Duration::from_millis(1500);
/// The branches of `Fan`.
pub(crate) const FAN: usize = 100;

/// A workflow, its handlers writing to a ledger.
pub(crate) fn workflow(kind: Kind, ledger: &Ledger) -> Workflow<Job, Job> {
    let name = format!("{kind:?}").to_lowercase();
    let new = || Workflow::builder(name.as_str());
    let work = || handler(ledger);
    let at_once = |attempts| RetryPolicy::fixed(Duration::ZERO).max_attempts(attempts);
    let built = match kind {
        Kind::One | Kind::Other => new().task("a", work()).retry(at_once(3)).build(),
        Kind::Two => new().task("a", work()).task("b", work()).build(),
        Kind::Once => new().task("a", work()).retry(RetryPolicy::none()).build(),
        Kind::Hour => new()
            .task("a", work())
            .timeout(Duration::from_secs(3600))
            .build(),
        Kind::Timed => new()
            .task("a", work())
            .timeout(TIMEOUT)
            .retry(at_once(2))
            .build(),
        Kind::Stubborn => {
            let soon = RetryPolicy::fixed(Duration::from_millis(20)).max_attempts(50);
            new().task("a", work()).retry(soon).build()
        }
        Kind::Later => new().delay("wait", DELAY).task("a", work()).build(),
        Kind::Mesh => new()
            .task("a", work())
            .retry(at_once(10))
            .fork(|fork| {
                fork.branch(|b| b.task("b", work()).retry(at_once(10)))
                    .branch(|b| {
                        b.task("c", work())
                            .retry(at_once(10))
                            .delay("rest", Duration::from_millis(30))
                            .task("d", work())
                    })
            })
            .join(
                "e",
                joiner(ledger, |(left, right): (Job, Job)| vec![left, right]),
            )
            .build(),
        Kind::Fan => new()
            .task("split", work())
            .fork_each(0..FAN, |i, branch| branch.task(format!("w-{i}"), work()))
            .join("gather", joiner(ledger, |all: Vec<Job>| all))
            .build(),
        Kind::Left | Kind::Right => new().task("a", work()).queue(name.as_str()).build(),
    };
    built.expect("the workflows of the tests are right")
}

type Done = BoxFuture<'static, Result<Job, TaskError>>;

fn handler(ledger: &Ledger) -> impl Fn(TaskContext, Job) -> Done + Clone + Send + Sync + 'static {
    let ledger = ledger.clone();
    move |context, job| Box::pin(work(ledger.clone(), context, job))
}

fn joiner<I: 'static>(
    ledger: &Ledger,
    all: fn(I) -> Vec<Job>,
) -> impl Fn(TaskContext, I) -> Done + Clone + Send + Sync + 'static {
    let ledger = ledger.clone();
    move |context, input| {
        let mut joined = Job::default();
        for job in all(input) {
            joined.plan.extend(job.plan);
            for mark in job.trail {
                if !joined.trail.contains(&mark) {
                    joined.trail.push(mark);
                }
            }
        }
        Box::pin(work(ledger.clone(), context, joined))
    }
}

async fn work(ledger: Ledger, context: TaskContext, mut job: Job) -> Result<Job, TaskError> {
    let mut entry = Entry::begin(ledger, &context);
    let (task, attempt) = (context.task().to_string(), context.attempt());
    let steps: Vec<Step> = job
        .plan
        .get(&task)
        .into_iter()
        .flatten()
        .filter(|s| attempt <= s.last_attempt)
        .cloned()
        .collect();
    for step in steps {
        if let Err(error) = entry.perform(step.act).await {
            entry.end(Phase::Fail);
            return Err(error);
        }
    }
    entry.end(Phase::End);
    job.trail.push(Mark {
        task,
        attempt,
        pid: std::process::id(),
        token: entry.token,
    });
    Ok(job)
}

/// An execution in the ledger: it does not end without a line.
struct Entry {
    ledger: Ledger,
    instance: String,
    task: String,
    attempt: u32,
    token: u64,
    ended: bool,
}

impl Entry {
    fn begin(ledger: Ledger, context: &TaskContext) -> Self {
        let entry = Self {
            ledger,
            instance: context.instance().to_string(),
            task: context.task().to_string(),
            attempt: context.attempt(),
            token: fastrand::u64(..),
            ended: false,
        };
        entry.write(Phase::Begin);
        entry
    }

    fn write(&self, phase: Phase) {
        self.ledger
            .write(phase, &self.instance, &self.task, self.attempt, self.token);
    }

    fn end(&mut self, phase: Phase) {
        self.write(phase);
        self.ended = true;
    }

    async fn perform(&self, act: Act) -> Result<(), TaskError> {
        match act {
            Act::Sleep(millis) => sleep(Duration::from_millis(millis)).await,
            Act::Gate(gate) => {
                while !is_open(&gate) {
                    sleep(LOOK).await;
                }
            }
            Act::Block(gate) => {
                while !is_open(&gate) {
                    std::thread::sleep(LOOK);
                }
            }
            Act::Spin(gate) => {
                while !is_open(&gate) {
                    std::hint::black_box((0..10_000_u64).fold(1_u64, |x, i| x.wrapping_mul(i | 1)));
                }
            }
            Act::Tick(gate) => {
                while !is_open(&gate) {
                    self.write(Phase::Tick);
                    sleep(Duration::from_millis(10)).await;
                }
            }
            Act::Fail => return Err("told to fail".into()),
            Act::Panic(message) => std::panic::panic_any(message),
            Act::Kill => signal::kill(Pid::this(), signal::SIGKILL)
                .map_err(|error| TaskError::from(error.to_string()))?,
        }
        Ok(())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            self.write(Phase::Drop);
        }
    }
}

fn is_open(gate: &Path) -> bool {
    gate.exists()
}
