//! For tests of workflows, with the feature `testing`: by a test that moves the time ([`TestEnv`]), and under faults.
//!
//! | part | what it does |
//! |---|---|
//! | [`TestEnv`] | the real worker on a store in memory, with a clock that skips |
//! | [`Ledger`] | handlers write down what they do, before and after their effect |
//! | [`Check`] | compares ledger and store: what holds at all times, and what holds when all is quiet |
//! | [`FaultyStore`] | a store behind a line on which processes die, replies get lost and calls come twice |
//! | [`Seeded`] | ids, nonces and jitter of this thread come from a seed |
//! | [`Clock::simulated`](crate::time::Clock::simulated) | a store's clock that follows tokio's, also when it is paused |
//!
//! ```
//! use tenure::{
//!     Client, MemoryStore, TaskContext, TaskError, Worker, Workflow,
//!     testing::{Check, Ledger},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> anyhow::Result<()> {
//! let ledger = Ledger::in_memory();
//! let book = ledger.clone();
//! let double = Workflow::builder("double")
//!     .task("double", move |ctx: TaskContext, n: u32| {
//!         let book = book.clone();
//!         async move {
//!             let entry = book.began(&ctx, &n)?;
//!             let doubled = 2 * n;
//!             entry.done(&doubled)?;
//!             Ok::<_, TaskError>(doubled)
//!         }
//!     })
//!     .build()?;
//! let store = MemoryStore::new();
//! let worker = Worker::builder(store.clone()).workflow(&double).build()?.spawn();
//! let handle = Client::new(store.clone()).start(&double, 21).id("a").await?;
//! ledger.started(handle.id(), handle.run())?;
//! assert_eq!(handle.result().await?, 42);
//! worker.shutdown();
//! worker.join().await?;
//!
//! let check = Check::new(double.graph());
//! assert_eq!(check.always(&store, &ledger.history()).await?, []);
//! assert_eq!(check.finally(&store, &ledger.history()).await?, []);
//! # Ok(())
//! # }
//! ```

mod check;
mod digest;
mod env;
mod faulty;
mod ledger;
mod line;
mod link;
mod places;
mod rules;
mod seeded;
mod signals;
mod timing;

pub(crate) use self::seeded::uuid;
pub use self::{
    check::{Check, Rule, Violation},
    digest::Digest,
    env::{Attempt, TestEnv},
    faulty::FaultyStore,
    ledger::{Entry, History, Ledger, LedgerError},
    line::Line,
    link::{Fault, HintFault, Link, Passage, Script, Transition},
    seeded::Seeded,
};
