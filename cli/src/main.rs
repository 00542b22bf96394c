//! The command line of Tenure.

mod actor;
mod answer;
mod bench;
mod commands;
mod connect;
mod demo;
mod exit;
mod filter;
mod moment;
mod payload;
mod text;
mod worker;

use std::{io::IsTerminal, num::NonZeroUsize, process::ExitCode};

use clap::{CommandFactory, Parser, Subcommand};

use exit::Exit;

/// A worker makes and drops many small strings on several threads: this takes a tenth of its CPU time away.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durable workflows on plain Redis.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, disable_help_subcommand = true, after_help = Exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts an instance, or many from a file
    Start(commands::start::Args),
    /// Prints the result of an instance
    Result(commands::result::Args),
    /// Sends a signal to an instance
    Signal(commands::signal::Args),
    /// Lists instances, or counts them
    List(commands::list::Args),
    /// Shows all of an instance: its tasks with their errors, its graph, what it began with and resulted in
    Show(commands::show::Args),
    /// Says why an instance does not move, and what can be done
    Why(commands::why::Args),
    /// Tells changes of status as they happen
    Events(commands::events::Args),
    #[command(flatten)]
    Control(commands::control::Command),
    /// Shows the instances that failed, by their errors; retries or discards them
    Dead(commands::dead::Args),
    /// A live screen: states, throughput, queues, workers, the newest failures
    Top(commands::top::Args),
    /// Lists the queues: how much waits, for how long, and who reads it
    Queues(commands::queues::Args),
    /// Lists the workers that live, and how busy they are
    Workers(commands::workers::Args),
    /// Lists the workflows that workers have published
    Definitions(commands::definitions::Args),
    /// Looks for damage in what is stored, and mends it
    Doctor(commands::doctor::Args),
    /// Lists the keys of an instance, and how to look at each with redis-cli
    Keys(commands::keys::Args),
    /// Does one round of the reaper: takes back what workers that died still hold
    Reap(commands::reap::Args),
    /// Makes one-liners of redis-cli: installs the functions of Tenure on a Redis 7
    Functions(commands::functions::Args),
    /// Runs a worker until it is told to stop (SIGTERM, Ctrl-C)
    Worker(worker::Args),
    /// Runs 1000 orders through a workflow and shows what happened to them
    Demo(demo::Args),
    /// Measures how fast it is, against what the same Redis can do at most, and counts afterwards
    Bench(bench::Args),
    /// A worker process of a benchmark
    #[command(hide = true)]
    BenchWorker(bench::worker::Args),
    /// Prints what a shell needs to complete commands
    Completions(commands::completions::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("TENURE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(cli.command.log_level())),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let done = runtime(cli.command.threads())
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(run(cli.command)));
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("tenure: {error:#}");
            Exit::of(&error).into()
        }
    }
}

/// A runtime with so many threads, or one for each core. A single thread is the one that calls, so that nothing has to be
/// woken to hand work over.
fn runtime(threads: Option<NonZeroUsize>) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match threads.map(NonZeroUsize::get) {
        Some(1) => tokio::runtime::Builder::new_current_thread(),
        Some(threads) => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
        None => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}

async fn run(command: Command) -> anyhow::Result<Exit> {
    let done = match command {
        Command::Control(command) => return commands::control::run(command).await,
        Command::Queues(args) => return commands::queues::run(args).await,
        Command::Top(args) => return commands::top::run(args).await,
        Command::Dead(args) => return commands::dead::run(args).await,
        Command::Workers(args) => return commands::workers::run(args).await,
        Command::Definitions(args) => return commands::definitions::run(args).await,
        Command::Functions(args) => return commands::functions::run(args).await,
        Command::Start(args) => return commands::start::run(args).await,
        Command::Result(args) => return commands::result::run(args).await,
        Command::Signal(args) => return commands::signal::run(args).await,
        Command::Why(args) => return commands::why::run(args).await,
        Command::Show(args) => return commands::show::run(args).await,
        Command::List(args) => return commands::list::run(args).await,
        Command::Keys(args) => return commands::keys::run(args).await,
        Command::Reap(args) => return commands::reap::run(args).await,
        Command::Events(args) => return commands::events::run(args).await,
        Command::Completions(args) => return commands::completions::run(&args, Cli::command()),
        Command::Doctor(args) => return commands::doctor::run(args).await,
        Command::Demo(args) => demo::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::BenchWorker(args) => bench::worker::run(args).await,
        Command::Worker(args) => worker::run(args).await,
    };
    done.map(|()| Exit::Done)
}

impl Command {
    /// How many threads run it; unless it says so, as many as there are cores.
    fn threads(&self) -> Option<NonZeroUsize> {
        match self {
            Self::Bench(args) => Some(args.threads),
            Self::BenchWorker(args) => Some(args.threads),
            _ => None,
        }
    }

    /// What is logged when `TENURE_LOG` says nothing: a worker tells what it does, the others show a table.
    fn log_level(&self) -> &'static str {
        match self {
            Self::Worker(_) => "info",
            // It says itself what is wrong, and a line on standard error would tear the screen.
            Self::Top(_) => "off",
            _ => "error",
        }
    }
}
