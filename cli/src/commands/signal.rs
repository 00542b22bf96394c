//! `tenure signal`: says something to an instance.

use serde::Serialize;
use tenure::{
    Client, InstanceId,
    ids::{RunId, SignalId, SignalName},
};

use crate::{answer::Answer, connect::Connection, exit::Exit, payload::Source};

/// Options of `tenure signal`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure signal loan-7 approval --payload '{\"decision\": \"approved\", \"actor\": \"ada\"}'
  tenure signal loan-7 approval --payload @yes.json --signal-id mail-4711
                                     sent twice, it counts once
  tenure show loan-7                 which signals it waits for

A signal that no node waits for yet is kept for the one to come.
Exit codes: 0 it has it; 3 no such instance (or run); 4 it is over, or no node of it waits for this signal ever.")]
pub(crate) struct Args {
    /// The instance
    id: InstanceId,
    /// The signal
    name: SignalName,
    /// What it says: JSON, @file, or - for standard input
    #[arg(long, default_value = "null", value_name = "JSON")]
    payload: Source,
    /// The same in MessagePack: a file, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payload", value_parser = path)]
    payload_msgpack: Option<Source>,
    /// What tells it from others: a second one with this id changes nothing
    #[arg(long, value_name = "ID")]
    signal_id: Option<SignalId>,
    /// The run that is meant, if not whichever is there
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
pub(super) fn path(given: &str) -> Result<Source, std::convert::Infallible> {
    Ok(Source::of_path(given))
}

#[derive(Debug, Serialize)]
struct Told {
    id: String,
    run: String,
    signal: String,
}

/// Sends it.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let payload = match &args.payload_msgpack {
        Some(source) => source.message_pack()?,
        None => args.payload.payload()?,
    };
    let client = Client::new(args.connection.open().await?);
    let mut signal = client.signal_bytes(&args.id, args.name.as_str(), payload);
    if let Some(id) = &args.signal_id {
        signal = signal.id(id.as_str());
    }
    if let Some(run) = args.run {
        signal = signal.run(run);
    }
    let handle = signal.await?;
    let told = Told {
        id: handle.id().to_string(),
        run: handle.run().to_string(),
        signal: args.name.to_string(),
    };
    args.answer.write(&told, |told| {
        format!("`{}` has the signal `{}`", told.id, told.signal)
    })?;
    Ok(Exit::Done)
}
