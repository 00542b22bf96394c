//! `tenure demo`: orders through a workflow, on the embedded store or on Redis with a worker that is killed half-way.

mod crew;
mod ledger;
pub(crate) mod orders;
pub(crate) mod refund;
mod report;
mod table;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use indicatif::{ProgressBar, ProgressStyle};
use tenure::{Client, Handle, IdPolicy, InstanceId, MemoryStore, Namespace, Start};
use tokio::time::Instant;

pub(crate) use ledger::Ledger;

use crate::{connect::Connection, exit::Usage};
use crew::Crew;
use orders::{Done, Order};

/// How long the demo waits for all instances before it says which are missing.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options of `tenure demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure demo                                     on the embedded store: needs nothing installed
  tenure demo --redis redis://127.0.0.1:6379      two worker processes, one of them killed half-way
  tenure demo --redis redis://127.0.0.1:6379 --keep --instances 50
                                                  leaves its data, to look at with redis-cli")]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
    /// How many orders
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), value_name = "N")]
    instances: u32,
    /// Leave the data in Redis (in --namespace; without this, a namespace of its own is used and removed)
    #[arg(long)]
    keep: bool,
    /// Tasks at once in each worker
    #[arg(long, default_value_t = 100, value_name = "N")]
    concurrency: usize,
    /// Keep the ledger of the handlers in this file
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

/// Runs the demo. Fails if an instance did not complete, or if a result was committed twice.
pub(crate) async fn run(mut args: Args) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir().context("a place for the ledger")?;
    let ledger = args
        .ledger
        .clone()
        .unwrap_or_else(|| scratch.path().join("ledger"));
    if !args.connection.is_given()? {
        if args.keep {
            return Err(
                Usage::new("--keep leaves the data in a Redis; say in which: --redis URL").into(),
            );
        }
        let store = MemoryStore::new();
        let crew = Crew::embedded(store.clone(), &ledger, args.concurrency)?;
        return show(&args, Client::new(store), crew, &ledger).await;
    }
    if !args.keep {
        let own = Namespace::new(format!("tenure-demo-{}", std::process::id()))?;
        args.connection.set_namespace(&own);
    }
    let store = args.connection.open().await?;
    let crew = Crew::processes(&args.connection, &ledger, args.concurrency)?;
    let shown = show(&args, Client::new(store.clone()), crew, &ledger).await;
    if !args.keep {
        store
            .remove_namespace()
            .await
            .context("the demo's data could not be removed")?;
    }
    shown
}

async fn show(
    args: &Args,
    client: Client,
    mut crew: Crew,
    ledger: &std::path::Path,
) -> anyhow::Result<()> {
    println!("{}", crew.introduction(args.instances));
    let began = Instant::now();
    let handles = start(&client, args.instances).await?;
    let started = began.elapsed();
    let missing = wait(&handles, &mut crew).await;
    let took = began.elapsed();
    crew.stop().await?;
    let counted = report::count(&client, &handles, ledger, crew.killed()).await?;
    println!("{}", table::render(&counted, started, took));
    if let (true, Some(handle)) = (args.keep, handles.first()) {
        println!(
            "\nlook at one of them:\n  redis-cli HGETALL '{{{}:0}}:instance:{}'",
            args.connection.namespace()?,
            handle.id()
        );
    }
    ensure!(
        missing == 0,
        "{missing} of {} instances were not over after {PATIENCE:?}",
        args.instances
    );
    ensure!(
        counted.completed == u64::from(args.instances),
        "not all instances completed"
    );
    ensure!(
        counted.committed_twice == 0,
        "{} results were committed twice",
        counted.committed_twice
    );
    Ok(())
}

/// Starts all orders in bulk.
async fn start(client: &Client, instances: u32) -> anyhow::Result<Vec<Handle<Done>>> {
    let workflow = orders::workflow(None)?;
    let width = instances.to_string().len();
    let mut items = Vec::new();
    for number in 1..=instances {
        let id = InstanceId::new(format!("demo-{number:0width$}"))?;
        items.push(
            Start::new(Order { number })
                .instance(id)
                .if_exists(IdPolicy::TerminateAndReplace),
        );
    }
    let answers = client.start_many(&workflow, items).await;
    answers
        .into_iter()
        .collect::<Result<_, _>>()
        .context("an order could not be started")
}

/// Waits for every result, kills a worker half-way, and answers how many never came.
async fn wait(handles: &[Handle<Done>], crew: &mut Crew) -> usize {
    let bar = ProgressBar::new(handles.len() as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} orders  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut results: FuturesUnordered<_> = handles.iter().map(Handle::result).collect();
    let deadline = tokio::time::sleep(PATIENCE);
    tokio::pin!(deadline);
    loop {
        tokio::select! {
            next = results.next() => match next {
                Some(_) => bar.inc(1),
                None => break,
            },
            () = &mut deadline => break,
        }
        if bar.position() * 2 >= handles.len() as u64 && crew.kill_one() {
            bar.set_message("one worker killed");
        }
    }
    bar.finish_and_clear();
    results.len()
}
