//! `tenure workers`: who is there, and how busy.

use serde::Serialize;
use tenure::{Client, store::WorkerRecord, time::Timestamp};

use crate::{
    answer::{Answer, table},
    connect::Connection,
    exit::Exit,
    moment,
};

/// Options of `tenure workers`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure workers                  who is there, and how busy
  tenure workers --json | jq '[.[] | .slots - .busy] | add'    free slots of all of them

Workers say this of themselves every 30 s; one that died is listed for up to 90 s.")]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    host: String,
    pid: u32,
    slots: usize,
    busy: usize,
    draining: bool,
    queues: Vec<String>,
    workflows: Vec<String>,
    started_at: String,
    seen_at: String,
    #[serde(skip)]
    up: String,
    #[serde(skip)]
    seen: String,
}

impl Row {
    fn new(record: WorkerRecord, now: Timestamp) -> Self {
        let ago = |time: Timestamp| moment::span(now.since(time));
        let mut workflows: Vec<String> = record
            .definitions
            .iter()
            .map(|(workflow, hash)| format!("{workflow}:{hash}"))
            .collect();
        workflows.sort_unstable();
        Self {
            id: record.id.to_string(),
            host: record.host,
            pid: record.pid,
            slots: record.slots,
            busy: record.busy,
            draining: record.draining,
            queues: record.queues.iter().map(ToString::to_string).collect(),
            workflows,
            started_at: moment::at(record.started_at),
            seen_at: moment::at(record.seen_at),
            up: ago(record.started_at),
            seen: ago(record.seen_at),
        }
    }
}

/// Lists them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let now = client.now().await?;
    let workers = client.workers().await?.into_iter();
    let rows: Vec<Row> = workers.map(|record| Row::new(record, now)).collect();
    args.answer.write(&rows, |rows| render(rows))?;
    Ok(Exit::Done)
}

fn render(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no workers".to_owned();
    }
    let cells = rows.iter().map(|row| {
        let state = if row.draining { "draining" } else { "" };
        [
            row.id.clone(),
            format!("{}:{}", row.host, row.pid),
            format!("{}/{}", row.busy, row.slots),
            state.to_owned(),
            row.up.clone(),
            format!("{} ago", row.seen),
            row.queues.join(" "),
            row.workflows.join(" "),
        ]
    });
    let head = [
        "worker",
        "process",
        "busy",
        "state",
        "up",
        "seen",
        "queues",
        "workflows",
    ];
    table(head, cells)
}
