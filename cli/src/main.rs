//! The command line of Tenure.

mod bench;
mod connect;
mod demo;
mod worker;

use std::{io::IsTerminal, process::ExitCode};

use clap::{Parser, Subcommand};

/// Durable workflows on plain Redis.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, about, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs 1000 orders through a workflow and shows what happened to them
    Demo(demo::Args),
    /// Measures how fast it is, against what the same Redis can do at most, and counts afterwards
    Bench(bench::Args),
    /// A worker process of a benchmark
    #[command(hide = true)]
    BenchWorker(bench::worker::Args),
    /// Runs a worker until it is told to stop (SIGTERM, Ctrl-C)
    Worker(worker::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("TENURE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(cli.command.log_level())),
        )
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let done = match cli.command {
        Command::Demo(args) => demo::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::BenchWorker(args) => bench::worker::run(args).await,
        Command::Worker(args) => worker::run(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tenure: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Command {
    /// What is logged when `TENURE_LOG` says nothing: a worker tells what it does, the others show a table.
    fn log_level(&self) -> &'static str {
        match self {
            Self::Demo(_) | Self::Bench(_) | Self::BenchWorker(_) => "error",
            Self::Worker(_) => "info",
        }
    }
}
