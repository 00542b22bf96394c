//! `tenure result`: what an instance resulted in.

use std::{
    io::{self, Write},
    time::Duration,
};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tenure::{Client, ClientError, Handle, InstanceId};

use crate::{
    answer::{Answer, line},
    connect::Connection,
    exit::Exit,
    payload,
};

/// Options of `tenure result`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure result order-42                          the result, as JSON
  tenure result order-42 --timeout 30s            waits for it, for at most 30 s
  tenure result order-42 --wait --json            {\"id\": …, \"status\": …, \"result\": …}, also when it failed
  tenure result order-42 --msgpack > result.bin   its bytes as they are stored

What JSON cannot hold is written as {\"$bytes\": \"<base64>\"}, {\"$int\": \"…\"} and so on: without loss.
Exit codes: 0 a result; 1 it failed, was cancelled or terminated; 3 no such instance; 6 not over yet.")]
pub(crate) struct Args {
    /// The instance
    id: InstanceId,
    #[command(flatten)]
    wait: Wait,
    /// Print the stored bytes, in MessagePack
    #[arg(long, conflicts_with = "json")]
    msgpack: bool,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

/// How long to wait for a result.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Wait {
    /// Wait until it is over
    #[arg(long)]
    pub(crate) wait: bool,
    /// Wait until it is over, for at most this long
    #[arg(long, value_parser = humantime::parse_duration, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,
}

impl Wait {
    pub(crate) fn is_wanted(self) -> bool {
        self.wait || self.timeout.is_some()
    }

    /// The result; with nothing of this given, only if it is there.
    pub(crate) async fn of(self, handle: &Handle) -> Result<Bytes, ClientError> {
        match self.timeout {
            Some(timeout) => handle.result_bytes_within(timeout).await,
            None if self.wait || handle.status().await?.is_terminal() => {
                handle.result_bytes().await
            }
            None => Err(ClientError::TimedOut {
                id: handle.id().clone(),
                after: Duration::ZERO,
            }),
        }
    }
}

/// As `--json` tells it.
#[derive(Debug, Serialize)]
struct Told {
    id: String,
    run: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Prints it.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let handle = client.handle(&args.id).await?;
    let result = args.wait.of(&handle).await;
    if args.msgpack {
        io::stdout().lock().write_all(&result?)?;
        return Ok(Exit::Done);
    }
    tell(&handle, result, args.answer).await
}

/// Prints a result, or says why there is none.
pub(crate) async fn tell(
    handle: &Handle,
    result: Result<Bytes, ClientError>,
    answer: Answer,
) -> anyhow::Result<Exit> {
    let told = |status, result, error| Told {
        id: handle.id().to_string(),
        run: handle.run().to_string(),
        status,
        result,
        error,
    };
    match result {
        Ok(bytes) => {
            let value = payload::to_json(&bytes)?;
            if answer.json {
                line(&serde_json::to_string_pretty(&told(
                    "completed",
                    Some(value),
                    None,
                ))?)?;
            } else {
                line(&serde_json::to_string_pretty(&value)?)?;
            }
            Ok(Exit::Done)
        }
        Err(error) => {
            let status = match &error {
                ClientError::TimedOut { .. } => Some(handle.status().await?.as_str()),
                error => ending(error),
            };
            if let (true, Some(status)) = (answer.json, status) {
                let told = told(status, None, Some(error.to_string()));
                line(&serde_json::to_string_pretty(&told)?)?;
            }
            Err(sooner(error))
        }
    }
}

/// How an instance ended that has no result.
fn ending(error: &ClientError) -> Option<&'static str> {
    match error {
        ClientError::Failed { .. } => Some("failed"),
        ClientError::Cancelled { .. } => Some("cancelled"),
        ClientError::Terminated { .. } => Some("terminated"),
        _ => None,
    }
}

/// An error, with what can be done about it here.
fn sooner(error: ClientError) -> anyhow::Error {
    let hint = match &error {
        ClientError::TimedOut { id, after } if after.is_zero() => {
            format!("`{id}` has no result yet: wait for it with --wait or --timeout")
        }
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(hint)
}
