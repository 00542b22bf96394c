//! Real worker processes on a real redis-server that are killed, stopped, continued and terminated.
//!
//! This program is both the tests and the worker that they start: with [`program::SETUP`] in its environment it is a
//! worker process, otherwise it runs the tests. Each test has a server, a ledger and processes of its own.

mod cases;
mod check;
mod crew;
mod job;
mod ledger;
mod program;
mod wait;
mod world;

use std::{future::Future, process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Trial};

/// What no test comes near; a test that hangs fails with its own name.
const TOO_LONG: Duration = Duration::from_secs(100);

fn main() -> ExitCode {
    match program::setup() {
        Some(setup) => program::run(setup),
        None => libtest_mimic::run(&Arguments::from_args(), cases::all()).exit_code(),
    }
}

/// A test on a runtime of its own.
fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn() -> F) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let ended = runtime.block_on(async { tokio::time::timeout(TOO_LONG, test()).await });
        runtime.shutdown_background();
        ended.map_err(|_| format!("not over after {TOO_LONG:?}").into())
    })
}
