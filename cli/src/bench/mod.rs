//! `tenure bench`: how fast it is, measured against what the same Redis can do at most, and counted afterwards.

mod check;
mod clock;
mod cluster;
mod crew;
mod flow;
mod loads;
mod machine;
mod measure;
mod options;
mod place;
mod reference;
mod row;
mod server;
mod stats;
mod table;
pub(crate) mod worker;

use std::{num::NonZeroUsize, sync::Mutex};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use tokio::time::Instant;

pub(crate) use options::Args;

use machine::Machine;
use options::{Load, Sizes};
use place::Place;
use reference::Reference;
use row::{Row, medians};
use server::Persistence;

/// What all loads share.
pub(crate) struct Bench {
    sizes: Sizes,
    /// Threads of this process and of each worker process.
    threads: NonZeroUsize,
    /// The Redis that was given.
    given: Option<String>,
    /// Every measurement of the reference, as a row.
    references: Mutex<Vec<Row>>,
}

/// All that a benchmark says.
#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    rows: Vec<Row>,
    /// Loads that failed, with their reasons.
    failures: Vec<String>,
    seconds: f64,
}

/// Runs the benchmark. Fails if a load did, or if one of its counts is wrong.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let began = Instant::now();
    let bench = Bench::new(&args);
    let machine = bench.machine().await?;
    eprintln!("{machine}");
    if cfg!(debug_assertions) {
        eprintln!(
            "this is a debug build: its figures say nothing; use `cargo run --release -- bench`"
        );
    }
    let mut report = Report {
        machine,
        rows: Vec::new(),
        failures: Vec::new(),
        seconds: 0.0,
    };
    for load in bench.loads(&args) {
        match bench.measure(load).await {
            Ok(rows) => report.rows.extend(rows),
            Err(error) => report.failures.push(format!("{}: {error:#}", name(load))),
        }
    }
    report.rows.splice(0..0, bench.reference_row());
    report.seconds = began.elapsed().as_secs_f64();
    report.show(args.json)
}

fn name(load: Load) -> String {
    load.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Bench {
    fn new(args: &Args) -> Self {
        Self {
            sizes: Sizes::of(args),
            threads: args.threads,
            given: args.redis.clone(),
            references: Mutex::default(),
        }
    }

    fn loads(&self, args: &Args) -> Vec<Load> {
        let asked: Vec<Load> = if args.only.is_empty() {
            Load::value_variants().to_vec()
        } else {
            args.only.clone()
        };
        let (possible, left_out): (Vec<Load>, Vec<Load>) = asked
            .into_iter()
            .partition(|load| self.given.is_none() || !load.needs_own_server());
        for load in left_out {
            eprintln!("{} is left out: it needs servers of its own", name(load));
        }
        possible
    }

    /// All rounds of a load.
    async fn measure(&self, load: Load) -> anyhow::Result<Vec<Row>> {
        let mut rounds = Vec::new();
        for round in 1..=self.sizes.rounds {
            eprintln!("{}, round {round} of {}", name(load), self.sizes.rounds);
            rounds.push(loads::run(load, self).await?);
        }
        Ok(medians(rounds))
    }

    async fn machine(&self) -> anyhow::Result<Machine> {
        let place = self.place().await?;
        let machine = Machine::of(&place, self.threads).await?;
        place.leave().await?;
        Ok(machine)
    }

    /// A new place for a load.
    pub(crate) async fn place(&self) -> anyhow::Result<Place> {
        match &self.given {
            Some(url) => Place::given(url).await,
            None => Place::own(Persistence::None).await,
        }
    }

    /// Measures the raw reference there and keeps it for the table.
    pub(crate) async fn reference(&self, place: &Place) -> anyhow::Result<Reference> {
        let reference = place
            .reference(self.sizes.reference)
            .await
            .context("the raw reference")?;
        let row = Row::new("raw reference", "calls", reference.calls)
            .spent(&reference.spent)
            .latency("a call", &reference.latency)
            .figure("commands in a call", reference::COMMANDS.into(), "");
        self.references
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(row);
        Ok(reference)
    }

    /// The median of all measurements of the reference.
    fn reference_row(&self) -> Vec<Row> {
        let rows = std::mem::take(
            &mut *self
                .references
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        medians(rows.into_iter().map(|row| vec![row]).collect())
    }
}

impl Report {
    fn show(self, json: bool) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string_pretty(&self)?);
        } else {
            println!("{}", table::render(&self.rows));
            println!(
                "\n{:.0} s. µs, calls (of scripts) and commands (in scripts) are those of one task or whatever is counted.",
                self.seconds
            );
        }
        if !self.failures.is_empty() {
            anyhow::bail!("{}", self.failures.join("\n        "));
        }
        if !json {
            println!(
                "All counts are right: every instance ended once, and nothing is left behind."
            );
        }
        Ok(())
    }
}
