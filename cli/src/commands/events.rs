//! `tenure events`: changes of status, as they happen.

use std::{pin::pin, time::Duration};

use serde::Serialize;
use tenure::{
    Client, Status,
    client::EventFilter,
    store::{Event, StatusEvent},
};

use crate::{
    answer::{Answer, line},
    connect::Connection,
    exit::Exit,
    filter::status,
    moment,
    text::cut,
};

/// Options of `tenure events`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure events                                   until Ctrl-C
  tenure events --status failed --json            an object in each line
  tenure events --prefix order- --limit 10        the next ten
  tenure events --for 1m | grep -c completed      how many in a minute

Nothing is kept: it tells what happens from now on. Where some were missed, since it was too slow or its connection broke, it
says so; `tenure list` tells how things stand. Ctrl-C ends it as any program (130 in the shell).")]
pub(crate) struct Args {
    /// Changes to this status; several times: to any of them
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status())]
    status: Vec<Status>,
    /// Changes of instances whose id begins so
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// End after so many changes
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_parser = humantime::parse_duration, value_name = "DURATION")]
    duration: Option<Duration>,
    /// As without it: there is nothing to tell but what comes
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Serialize)]
struct Told {
    at: String,
    id: String,
    run: String,
    from: Option<&'static str>,
    to: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<StatusEvent> for Told {
    fn from(event: StatusEvent) -> Self {
        Self {
            at: moment::at(event.at),
            id: event.id.to_string(),
            run: event.run.to_string(),
            from: event.from.map(Status::as_str),
            to: event.to.as_str(),
            error: event.error,
        }
    }
}

/// Tells them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let mut filter = EventFilter::new();
    if let Some(prefix) = &args.prefix {
        filter = filter.id_prefix(prefix);
    }
    let filter = args
        .status
        .iter()
        .copied()
        .fold(filter, EventFilter::status);
    let mut events = client.events(filter).await?;
    let end = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let mut end = pin!(end);
    let mut told = 0;
    while args.limit.is_none_or(|limit| told < limit) {
        let event = tokio::select! {
            event = events.next() => event,
            () = &mut end => None,
        };
        match event {
            Some(Event::Changed(event)) => {
                told += 1;
                changed(&event.into(), args.answer)?;
            }
            Some(Event::Missed { events }) => missed(events, args.answer)?,
            Some(_) => {}
            None => break,
        }
    }
    Ok(Exit::Done)
}

fn changed(event: &Told, answer: Answer) -> anyhow::Result<()> {
    if answer.json {
        return line(&serde_json::to_string(event)?);
    }
    let from = event.from.unwrap_or("new");
    let mut text = format!("{}  {}  {from} → {}", event.at, event.id, event.to);
    if let Some(error) = &event.error {
        text += &format!("  {}", cut(error, 200));
    }
    line(&text)
}

fn missed(events: Option<u64>, answer: Answer) -> anyhow::Result<()> {
    if answer.json {
        return line(&serde_json::json!({"missed": true, "events": events}).to_string());
    }
    line(&match events {
        Some(number) => format!("-- {number} changes were missed here"),
        None => "-- changes may have been missed here: the connection was broken".to_owned(),
    })
}
