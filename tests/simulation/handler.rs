//! What tasks do: mostly they are quick and succeed.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use serde::Serialize;
use tenure::{
    TaskContext, TaskError,
    testing::{Ledger, Link},
};

use crate::{chaos::Chaos, mix, scenario::Kind, shape::Token};

/// The process that a handler runs in.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) link: Arc<Link>,
    pub(crate) ledger: Ledger,
}

/// What one attempt does.
enum Act {
    Quick,
    /// Takes its time, perhaps more than it has.
    Slow(Duration),
    /// Holds its thread.
    Block(Duration),
}

enum End {
    Well,
    Badly,
    /// After a wait of its own.
    Later(Duration),
    Never,
}

/// The handler of all tasks and joins.
pub(crate) async fn work<I: Serialize + Send>(
    context: TaskContext,
    input: I,
) -> Result<Token, TaskError> {
    let process: Arc<Process> = context
        .state()
        .ok_or_else(|| TaskError::permanent("there is no process"))?;
    process.link.pass().await;
    let entry = process.ledger.began(&context, &input)?;
    let (act, end) = plan(&process.chaos, &context);
    match act {
        Act::Quick => {}
        Act::Slow(duration) => {
            process.chaos.happened(Kind::Slow);
            tokio::time::sleep(duration).await;
        }
        Act::Block(duration) => {
            process.chaos.blocked(&process.name, duration);
            process.link.block(duration);
            tokio::time::sleep(duration).await;
        }
    }
    process.link.pass().await;
    let error = match end {
        End::Well => {
            let token = Token {
                by: format!("{}/{}", context.task(), context.attempt()),
                serial: process.chaos.serial(),
            };
            entry.done(&token)?;
            return Ok(token);
        }
        End::Badly => TaskError::new("it did not work"),
        End::Later(wait) => TaskError::retry_after("not now", wait),
        End::Never => TaskError::permanent("it will never work"),
    };
    entry.failed(&error)?;
    Err(error)
}

/// The same for the same attempt of the same run, wherever it runs.
fn plan(chaos: &Chaos, context: &TaskContext) -> (Act, End) {
    let name = format!("{}/{}", context.idempotency_key(), context.attempt());
    let mut rng = Rng::with_seed(mix(chaos.scenario.seed, &name));
    let has = |kind| chaos.scenario.has(kind);
    let act = match rng.u8(0..20) {
        0..3 if has(Kind::Slow) => Act::Slow(Duration::from_millis(rng.u64(50..3000))),
        3 if has(Kind::Blocked) => Act::Block(Duration::from_millis(rng.u64(50..2500))),
        4..9 => Act::Slow(Duration::from_millis(rng.u64(1..30))),
        _ => Act::Quick,
    };
    let end = match rng.u16(0..400) {
        0..28 => End::Badly,
        28..36 => End::Later(Duration::from_millis(rng.u64(1..900))),
        36 => End::Never,
        _ => End::Well,
    };
    (act, end)
}
