//! The workflows of the loads, and the witness of their handlers.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tenure::{BuildErrors, TaskError, Workflow};
use tokio_util::sync::CancellationToken;

use super::{clock, measure::histogram};

/// Bytes of each input and output, as stored.
pub(crate) const PAYLOAD: usize = 100;

/// What goes from task to task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// The moment that a latency is counted from; see [`Latency`].
    at: u64,
    pad: String,
}

impl Payload {
    /// With a moment in microseconds.
    pub(crate) fn at(at: u64) -> Self {
        /// Map header, names, the number and the header of the string.
        const OTHER: usize = 1 + 3 + 9 + 4 + 2;
        Self {
            at,
            pad: "x".repeat(PAYLOAD - OTHER),
        }
    }

    pub(crate) fn now() -> Self {
        Self::at(clock::micros())
    }
}

/// The form of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// So many tasks, one after the other.
    Chain(u32),
    /// A task, so many branches of one task, a join.
    Fan(u32),
}

impl Shape {
    /// How many tasks an instance has.
    pub(crate) fn tasks(self) -> u64 {
        match self {
            Self::Chain(length) => length.into(),
            Self::Fan(width) => u64::from(width) + 2,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(length) => write!(f, "chain-{length}"),
            Self::Fan(width) => write!(f, "fan-{width}"),
        }
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('-').and_then(|(kind, number)| {
            let number = number.parse().ok()?;
            match kind {
                "chain" => Some(Self::Chain(number)),
                "fan" => Some(Self::Fan(number)),
                _ => None,
            }
        });
        parsed.with_context(|| format!("`{text}` is not chain-N or fan-N"))
    }
}

/// Which latency handlers record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Latency {
    /// None.
    Nothing,
    /// From the moment in the input to the first handler.
    UntilFirst,
    /// From the first handler to the last.
    FirstToLast,
}

/// What handlers saw.
#[derive(Debug)]
pub(crate) struct Witness {
    latency: Latency,
    runs: AtomicU64,
    ended: AtomicU64,
    /// When the last handler that was cancelled was told so.
    told: AtomicU64,
    recorded: Mutex<Histogram<u64>>,
    /// While this is not cancelled, handlers do not return.
    gate: Option<CancellationToken>,
}

impl Witness {
    pub(crate) fn new(latency: Latency) -> Arc<Self> {
        Self::with(latency, None)
    }

    /// Handlers hold their claims until the token is cancelled.
    pub(crate) fn holding(gate: CancellationToken) -> Arc<Self> {
        Self::with(Latency::Nothing, Some(gate))
    }

    fn with(latency: Latency, gate: Option<CancellationToken>) -> Arc<Self> {
        Arc::new(Self {
            latency,
            runs: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            told: AtomicU64::new(0),
            recorded: Mutex::new(histogram()),
            gate,
        })
    }

    /// How many handlers were run.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// How many last handlers of an instance were run.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// The latencies, which are taken from it.
    pub(crate) fn take_latency(&self) -> Histogram<u64> {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut recorded, histogram())
    }

    /// Records microseconds.
    pub(crate) fn record(&self, micros: u64) {
        self.recorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .saturating_record(micros);
    }

    /// Until that many handlers of this process were run, looked at each millisecond.
    pub(crate) async fn until_runs(&self, count: u64) {
        while self.runs() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A handler has begun.
    pub(crate) fn begun(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// A handler was told of its cancellation.
    pub(crate) fn cancelled_at(&self, micros: u64) {
        self.told.store(micros, Ordering::Release);
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// When the last one was told.
    pub(crate) fn told(&self) -> u64 {
        self.told.load(Ordering::Acquire)
    }

    async fn first(&self, mut payload: Payload) -> Payload {
        let now = clock::micros();
        match self.latency {
            Latency::UntilFirst => self.record(now.saturating_sub(payload.at)),
            Latency::FirstToLast => payload.at = now,
            Latency::Nothing => {}
        }
        self.between(payload).await
    }

    async fn between(&self, payload: Payload) -> Payload {
        self.begun();
        if let Some(gate) = &self.gate {
            gate.cancelled().await;
        }
        payload
    }

    fn last(&self, payload: &Payload) {
        if self.latency == Latency::FirstToLast {
            self.record(clock::micros().saturating_sub(payload.at));
        }
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy)]
enum Step {
    First,
    Between,
    Last,
    Only,
}

async fn run(witness: Arc<Witness>, step: Step, payload: Payload) -> Result<Payload, TaskError> {
    let payload = match step {
        Step::First | Step::Only => witness.first(payload).await,
        Step::Between | Step::Last => witness.between(payload).await,
    };
    if matches!(step, Step::Last | Step::Only) {
        witness.last(&payload);
    }
    Ok(payload)
}

/// A workflow of this form.
pub(crate) fn workflow(
    shape: Shape,
    witness: &Arc<Witness>,
) -> Result<Workflow<Payload, Payload>, BuildErrors> {
    let handler = |step| {
        let witness = Arc::clone(witness);
        move |payload: Payload| run(Arc::clone(&witness), step, payload)
    };
    let builder = Workflow::builder::<Payload>(shape.to_string());
    match shape {
        Shape::Chain(0 | 1) => builder.task("task", handler(Step::Only)).build(),
        Shape::Chain(length) => {
            let mut chain = builder.task("task-1", handler(Step::First)).anywhere();
            for number in 2..=length {
                let step = if number == length {
                    Step::Last
                } else {
                    Step::Between
                };
                chain = chain
                    .task(format!("task-{number}"), handler(step))
                    .anywhere();
            }
            chain.build()
        }
        Shape::Fan(width) => {
            let join = handler(Step::Last);
            builder
                .task("split", handler(Step::First))
                .fork_each(0..width, |number, branch| {
                    branch.task(format!("branch-{number}"), handler(Step::Between))
                })
                .join("join", move |mut parts: Vec<Payload>| {
                    let join = join.clone();
                    async move {
                        match parts.pop() {
                            Some(last) => join(last).await,
                            None => Err(TaskError::permanent("a join without branches")),
                        }
                    }
                })
                .build()
        }
    }
}

/// What [`behind_a_signal`] waits for.
pub(crate) const SIGNAL: &str = "go";

/// A workflow of one task behind a signal, whose payload is the task's input.
pub(crate) fn behind_a_signal(
    witness: &Arc<Witness>,
) -> Result<Workflow<Payload, Payload>, BuildErrors> {
    let witness = Arc::clone(witness);
    Workflow::builder::<Payload>("signalled")
        .await_signal::<Payload>(SIGNAL)
        .task("task", move |payload: Payload| {
            run(Arc::clone(&witness), Step::Only, payload)
        })
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_the_size_that_is_promised() {
        let bytes = tenure::codec::encode(&Payload::now()).unwrap();
        assert_eq!(bytes.len(), PAYLOAD);
    }

    #[test]
    fn a_shape_is_read_as_it_is_written_and_has_its_tasks() {
        for shape in [Shape::Chain(1), Shape::Chain(40), Shape::Fan(10)] {
            assert_eq!(shape.to_string().parse::<Shape>().unwrap(), shape);
            let workflow = workflow(shape, &Witness::new(Latency::Nothing)).unwrap();
            assert_eq!(workflow.graph().nodes().len() as u64, shape.tasks());
        }
        assert!("chain".parse::<Shape>().is_err());
    }
}
