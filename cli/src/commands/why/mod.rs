//! `tenure why`: one sentence that says why an instance does not move, what it was seen from, and what can be done.

mod explain;
mod gather;
mod reason;
mod sentence;
mod tell;
#[cfg(test)]
mod tests;

use tenure::{Client, ClientError, InstanceId, StoreError};

use self::reason::{Answered, Reason};
use crate::{answer::Answer, connect::Connection, exit::Exit};

/// Options of `tenure why`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure why order-42             what it waits for, since when, and what can be done
  tenure why order-42 --json | jq -r .reason

It reads a bounded number of records and changes nothing. If something should stand for a task and does not, it looks
again before it says so: a busy instance moves while it is looked at.
Exit codes: 0 it goes on, waits for something, or has completed; 1 it is dead, damaged, or cannot go on by itself;
3 no such instance.")]
pub(crate) struct Args {
    /// The instance
    id: InstanceId,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

/// Says why.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let answered = ask(&client, &args.id).await?;
    args.answer
        .write(&tell::Told::of(&args.id, &answered), tell::Told::text)?;
    Ok(match answered.first() {
        reason if reason.needs_somebody() => Exit::Failed,
        _ => Exit::Done,
    })
}

async fn ask(client: &Client, id: &InstanceId) -> anyhow::Result<Answered> {
    let mut last = None;
    for _ in 0..gather::LOOKS {
        let seen = match gather::evidence(client, id).await {
            Ok(seen) => seen,
            Err(error) => return unreadable(error).map(Answered::only),
        };
        let answered = explain::explain(&seen);
        if !answered.is_doubtful() {
            return Ok(answered);
        }
        last = Some(answered);
        tokio::time::sleep(gather::PAUSE).await;
    }
    last.ok_or_else(|| anyhow::anyhow!("nothing was looked at"))
}

/// A record that cannot be read is a reason too.
fn unreadable(error: anyhow::Error) -> anyhow::Result<Reason> {
    let store = error.chain().find_map(|cause| {
        let client = cause.downcast_ref::<ClientError>();
        match client {
            Some(ClientError::Store(error)) => Some(error.as_ref()),
            Some(_) => None,
            None => cause.downcast_ref::<StoreError>(),
        }
    });
    match store {
        Some(error @ (StoreError::Corrupt { .. } | StoreError::Format { .. })) => {
            Ok(Reason::Damaged {
                what: error.to_string(),
            })
        }
        _ => Err(error),
    }
}
