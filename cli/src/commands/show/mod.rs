//! `tenure show`: all that is known of one instance.

mod follow;
mod json;
pub(crate) mod picture;
mod tasks;
mod text;
mod tree;

use tenure::{Client, InstanceId, client::EventFilter};

use self::picture::Picture;
use crate::{
    answer::{Answer, line},
    connect::Connection,
    exit::Exit,
};

/// Options of `tenure show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure show order-42                what it is, its tasks with their errors, and its graph
  tenure show order-42 --full         whole payloads, and the results of all tasks
  tenure show order-42 --follow       goes on with each change until it is over
  tenure show order-42 --json | jq '.tasks[] | select(.failures > 0)'

With --follow --json there is one object in each line: the first and the last are the instance, those between are changes.
It looks twice a second, so that a task which is quicker is told with its end alone. Ctrl-C ends it as any program (130 in
the shell); the instance goes on.
Exit codes: 0 shown, and with --follow completed; 1 with --follow: it ended otherwise; 3 no such instance.")]
pub(crate) struct Args {
    /// The instance
    id: InstanceId,
    /// Print payloads whole, and the results of all tasks
    #[arg(long)]
    full: bool,
    /// Go on until it is over
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

/// Shows it.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let handle = client.handle(&args.id).await?;
    if !args.follow {
        let picture = Picture::take(&client, &handle, args.full).await?;
        args.answer.write(&json::Instance::of(&picture), |_| {
            text::render(&picture, args.full)
        })?;
        return Ok(Exit::Done);
    }
    // Before the first look: what happens after it is told.
    let prefix = EventFilter::new().id_prefix(args.id.as_str());
    let events = client.events(prefix).await?;
    let first = Picture::take(&client, &handle, args.full).await?;
    tell(&args, &first)?;
    if first.is_over() {
        return Ok(follow::exit(&first));
    }
    follow::changes(&client, &handle, events, &first, args.answer).await?;
    let last = Picture::take(&client, &handle, args.full).await?;
    if args.answer.json {
        tell(&args, &last)?;
    } else {
        line(&format!("\n{}", text::ending(&last, args.full)))?;
    }
    Ok(follow::exit(&last))
}

fn tell(args: &Args, picture: &Picture) -> anyhow::Result<()> {
    if args.answer.json {
        line(&serde_json::to_string(&json::Instance::of(picture))?)
    } else {
        line(&text::render(picture, args.full))
    }
}
