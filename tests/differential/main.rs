//! Random sequences of calls on both stores: every reply and everything that can be read must be the same.
//!
//! Calls are wrong, late and repeated as often as they are right. Time stands still between them on both stores, and
//! jumps. A failure prints the shortest sequence that was found. `TENURE_DIFFERENTIAL_CASES` says how many sequences are
//! tried. Default: 80.

mod op;
mod stores;
mod world;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::{op::Op, stores::Servers, world::World};

const CASES: u32 = 80;
/// The most steps of one sequence; some are several calls.
const LENGTH: usize = 30;

#[test]
fn both_stores_answer_the_same_to_any_sequence_of_calls() {
    let cases = std::env::var("TENURE_DIFFERENTIAL_CASES")
        .ok()
        .map_or(CASES, |n| n.parse().expect("a number of cases"));
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 1_000,
        ..Config::default()
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let servers = Servers::start();
    let sequences = op::sequences(LENGTH);
    let checked = TestRunner::new(config).run(&sequences, |ops| {
        runtime
            .block_on(check(&servers, &ops))
            .map_err(TestCaseError::fail)
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}

async fn check(servers: &Servers, ops: &[Op]) -> Result<(), String> {
    let mut world = World::new(servers.stores().await).await;
    for (i, op) in ops.iter().enumerate() {
        let step = async {
            world.apply(op).await?;
            world.compare_state().await
        };
        step.await
            .map_err(|difference| format!("call {i}, {op:?}:\n{difference}"))?;
    }
    world.compare_messages().await
}
