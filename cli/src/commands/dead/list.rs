//! `tenure dead list`: the dead one by one.

use serde::Serialize;
use tenure::{
    Client,
    store::{ErrorKind, Summary},
    time::Timestamp,
};

use super::{Walk, check, group::Kind, unknown};
use crate::{
    answer::{Answer, cut, table},
    connect::Connection,
    exit::Exit,
    filter::Select,
    moment,
};

/// Options of `tenure dead list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure dead list --workflow order --created-after 2h
  tenure dead list --error 3f9a1c20 --json | jq -r '.[].id'")]
pub(super) struct Args {
    /// Those of this group of `tenure dead`
    #[arg(long, value_name = "GROUP", help_heading = crate::filter::WHICH)]
    error: Option<String>,
    #[command(flatten)]
    select: Select,
    /// How many to show, the newest first
    #[arg(long, default_value_t = 100, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    run: String,
    workflow: String,
    task: String,
    attempt: u32,
    kind: Option<ErrorKind>,
    error: String,
    group: String,
    created_at: String,
    failed_at: String,
    #[serde(skip)]
    failed: String,
}

impl Row {
    fn new(summary: &Summary, now: Timestamp) -> Self {
        let error = summary.error.as_ref();
        let at = summary.finished_at.unwrap_or_default();
        Self {
            id: summary.id.to_string(),
            run: summary.run.to_string(),
            workflow: summary.workflow.to_string(),
            task: error.map_or_else(String::new, |error| error.task.to_string()),
            attempt: error.map_or(0, |error| error.attempt),
            kind: error.map(|error| error.kind),
            error: error.map_or_else(String::new, |error| error.message.clone()),
            group: Kind::of(summary).name(),
            created_at: moment::at(summary.created_at),
            failed_at: moment::at(at),
            failed: format!("{} ago", moment::span(now.since(at))),
        }
    }
}

/// Lists them.
pub(super) async fn run(args: Args) -> anyhow::Result<Exit> {
    check(&args.select)?;
    let client = Client::new(args.connection.open().await?);
    let now = client.now().await?;
    let mut rows = Vec::new();
    // Which are of a group is seen by looking at all.
    let looked_at = args.error.as_ref().map_or(args.limit, |_| usize::MAX);
    let walk = Walk::new(&client, &args.select, looked_at).await?;
    let mut more = false;
    let (_, left) = walk
        .run(|summary| {
            let row = Row::new(summary, now);
            match args.error.as_ref().is_none_or(|group| *group == row.group) {
                true if rows.len() < args.limit => rows.push(row),
                true => more = true,
                false => {}
            }
        })
        .await?;
    if let (true, Some(group)) = (rows.is_empty() && !more, &args.error) {
        return Ok(unknown(group));
    }
    args.answer.write(&rows, |rows| render(rows))?;
    if more || left {
        eprintln!(
            "these are the newest {}, there may be more: --limit N",
            rows.len()
        );
    }
    Ok(Exit::Done)
}

fn render(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no dead instances".to_owned();
    }
    let cells = rows.iter().map(|row| {
        [
            row.id.clone(),
            row.workflow.clone(),
            row.task.clone(),
            row.attempt.to_string(),
            row.failed.clone(),
            cut(&row.error, 100),
        ]
    });
    table(
        ["id", "workflow", "task", "attempt", "failed", "error"],
        cells,
    )
}
