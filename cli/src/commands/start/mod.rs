//! `tenure start`: one instance, or many from a file.

mod file;
mod many;
mod one;

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tenure::{Client, IdPolicy, InstanceId, ids::WorkflowName};

use super::{result::Wait, signal::path};
use crate::{
    actor, answer::Answer, connect::Connection, exit::Exit, filter::label, payload::Source,
};

/// Options of `tenure start`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure start order --id order-42 --input '{\"number\": 42}'
  tenure start order --input @order.json --wait --timeout 30s      prints the result
  tenure start report --delay 5m --label tenant=acme
  tenure start order --from orders.jsonl --if-exists use-existing

A file for --from has one object in each line, and all of it is optional:
  {\"id\": \"order-1\", \"input\": {\"number\": 1}, \"labels\": {\"tenant\": \"acme\"}, \"delay\": \"5m\"}
  {\"id\": \"order-2\", \"input\": {\"number\": 2}, \"at\": \"2026-12-24T18:00:00Z\"}
If a line cannot be read, nothing of the file is started. With ids in it and --if-exists use-existing the same file can be
started again after a failure: nothing is started twice.

What JSON cannot hold is written as {\"$bytes\": \"<base64>\"}, {\"$int\": \"18446744073709551615\"} and so on.
The workflow is the definition that its workers have published under the name; see `tenure definitions`.
Exit codes: 0 started, or there already as --if-exists allows; 1 some of a file were refused, or (--wait) it failed;
2 nothing was started since the input is wrong; 3 no such workflow; 4 the id is taken; 6 not over within --timeout.")]
pub(crate) struct Args {
    /// The workflow
    workflow: WorkflowName,
    /// What it starts with: JSON, @file, or - for standard input
    #[arg(long, default_value = "null", value_name = "JSON")]
    input: Source,
    /// The same in MessagePack: a file, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "input", value_parser = path)]
    input_msgpack: Option<Source>,
    /// The instance's id, if not one made up
    #[arg(long, value_name = "ID")]
    id: Option<InstanceId>,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    wait: Wait,
    /// Start many: a file of JSON lines, or - for standard input
    #[arg(long, value_name = "FILE", value_parser = path,
          conflicts_with_all = ["input", "input_msgpack", "id", "wait", "timeout"])]
    from: Option<Source>,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

/// What holds for all that are started, where a line of a file does not say otherwise.
#[derive(Debug, Clone, clap::Args)]
struct How {
    /// Begin after a while: 90s, 5m, 2h
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION", conflicts_with = "at")]
    delay: Option<Duration>,
    /// Begin at a time: 2026-12-24T18:00:00Z
    #[arg(long, value_parser = at, value_name = "TIME")]
    at: Option<DateTime<Utc>>,
    /// A label; several times for several
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Who starts it; empty for nobody [default: user@machine]
    #[arg(long, value_name = "WHO", default_value_t = actor::name(), hide_default_value = true)]
    created_by: String,
    /// How many crashes of its workers each task survives
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_crashes: u32,
    /// What happens if the id is taken
    #[arg(long, value_name = "POLICY", default_value = IdPolicy::Fail.as_str(), value_parser = policy())]
    if_exists: IdPolicy,
}

/// When something begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    Now,
    After(Duration),
    At(DateTime<Utc>),
}

impl How {
    fn begin(&self) -> Begin {
        match (self.delay, self.at) {
            (Some(delay), _) => Begin::After(delay),
            (None, Some(time)) => Begin::At(time),
            (None, None) => Begin::Now,
        }
    }
}

fn at(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|_| "a time is given with its zone, as in 2026-12-24T18:00:00Z".to_owned())
}

fn policy() -> impl TypedValueParser<Value = IdPolicy> {
    PossibleValuesParser::new(IdPolicy::ALL.map(IdPolicy::as_str)).try_map(|word| {
        let policy = IdPolicy::ALL.into_iter().find(|p| p.as_str() == word);
        policy.ok_or("no policy")
    })
}

/// Sets on a start, whatever it is for, what all starts have in common.
macro_rules! with {
    ($start:expr, $how:expr, $begin:expr) => {{
        let (mut start, how) = ($start, $how);
        start = start.if_exists(how.if_exists).max_crashes(how.max_crashes);
        if !how.created_by.is_empty() {
            start = start.created_by(&how.created_by);
        }
        for (key, value) in &how.labels {
            start = start.label(key, value);
        }
        match $begin {
            Begin::Now => start,
            Begin::After(delay) => start.delay(delay),
            Begin::At(time) => start.at(time),
        }
    }};
}
use with;

/// Starts what was asked for.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    if let Some(source) = &args.from {
        let lines = file::read(source, &args.how)?;
        let client = Client::new(args.connection.open().await?);
        return many::run(&client, &args, lines).await;
    }
    let input = match &args.input_msgpack {
        Some(source) => source.message_pack()?,
        None => args.input.payload()?,
    };
    let client = Client::new(args.connection.open().await?);
    one::run(&client, &args, input).await
}
