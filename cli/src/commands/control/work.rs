//! Does it to one instance after the other, some at once, and tells what became of each.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use tenure::{Client, ClientError, Handle};

use super::{
    outcome::{Kind, Outcome, Tally},
    targets::Target,
    verb::Verb,
};
use crate::{
    answer::{self, Answer},
    exit::Exit,
};

/// How many instances are steered at once.
const AT_ONCE: usize = 16;
/// How long Redis may be away while instances are steered; then it is said which were not.
const PATIENCE: Duration = Duration::from_secs(10);
/// From how many on a bar shows how far it is.
const MANY: usize = 50;

/// What is to be done, why and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) verb: Verb,
    pub(crate) reason: String,
    pub(crate) actor: String,
}

/// Steers all targets in their order; one that cannot be steered does not stop the others, a Redis that is gone does.
pub(crate) async fn work(
    client: &Client,
    order: &Order,
    targets: &[Target],
    answer: Answer,
) -> anyhow::Result<Exit> {
    let client = client.clone().with_patience(PATIENCE);
    let bar = bar(targets.len(), order.verb.done());
    let mut tally = Tally::new();
    let mut outcomes = Vec::new();
    let mut steered = stream::iter(targets)
        .map(|target| steer(&client, order, target))
        .buffered(AT_ONCE);
    while let Some(outcome) = steered.next().await {
        tally.add(&outcome);
        bar.inc(1);
        let is_gone = outcome.outcome == Kind::Unavailable;
        if answer.json {
            outcomes.push(outcome);
        } else {
            bar.suspend(|| answer::line(&outcome.to_string()))?;
        }
        if is_gone {
            break;
        }
    }
    bar.finish_and_clear();
    if answer.json {
        answer.write(&outcomes, |_| String::new())?;
    }
    close(order, &tally, targets.len());
    Ok(tally.exit())
}

/// The last word, on standard error: only when there is more than one line above it, or none.
fn close(order: &Order, tally: &Tally, meant: usize) {
    match (meant, meant - tally.total()) {
        (0, _) => eprintln!("no instance to {}", order.verb.word()),
        (1, 0) => {}
        (_, 0) => eprintln!("{}", tally.told(&order.verb)),
        (_, left) => eprintln!(
            "{}; the {left} behind are left or unknown too: run it again",
            tally.told(&order.verb)
        ),
    }
}

fn bar(count: usize, done: &'static str) -> ProgressBar {
    if count < MANY {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} to go")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(count as u64)
        .with_style(style)
        .with_message(done)
}

async fn steer(client: &Client, order: &Order, target: &Target) -> Outcome {
    match target {
        Target::Found { id, run } => {
            let handle = client.handle_on(id.clone(), *run);
            apply(order, &handle).await.of_filter()
        }
        Target::Named(id) => match named(client, order, id).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::error(id, error),
        },
    }
}

/// Looks first, to tell what was so already.
async fn named(client: &Client, order: &Order, id: &str) -> Result<Outcome, ClientError> {
    let handle = client.handle(id).await?;
    let status = handle.status().await?;
    if order.verb.is_so(status) {
        return Ok(Outcome::already(status, id));
    }
    Ok(apply(order, &handle).await)
}

async fn apply(order: &Order, handle: &Handle) -> Outcome {
    let id = handle.id().as_str();
    match order.verb.apply(handle, &order.reason, &order.actor).await {
        Ok(()) => Outcome::done(&order.verb, id),
        Err(error) => Outcome::error(id, error),
    }
}
