//! `tenure reap`: one round of the reaper, by hand.

use std::time::Duration;

use serde::Serialize;
use tenure::{
    reaper::{ReapReport, Reaper},
    store::{Recovered, Recovery, Retention},
};

use crate::{
    answer::{Answer, table},
    connect::Connection,
    exit::Exit,
};

/// Longer than anything is kept: this program does not know the retention of the workers, and removes nothing of theirs.
const EVER: Duration = Duration::from_secs(50 * 365 * 24 * 3600);

/// Options of `tenure reap`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure reap                     takes back what workers that died still hold
  tenure reap --json | jq .requeued

Every worker does this by itself each second: by hand it is needed where no worker lives. A claim that has not run out
is not touched, so what a worker held is back when its claim time is over (30 s by default), not before. It removes no
finished instances: how long they are kept is what workers are told. Right after Redis was away, wait as long as a claim
holds: workers that live may not have had the time to extend theirs.")]
pub(crate) struct Args {
    /// The most claims in each partition
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "N")]
    batch: u32,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Report {
    requeued: usize,
    failed: usize,
    paused: usize,
    lost: usize,
    timed_out: usize,
    /// There is more to do at once.
    again: bool,
    tasks: Vec<Task>,
}

#[derive(Debug, Serialize)]
struct Task {
    id: String,
    task: String,
    worker: String,
    became: &'static str,
    crashes: Option<u32>,
}

impl From<Recovered> for Task {
    fn from(recovered: Recovered) -> Self {
        let (became, crashes) = match recovered.recovery {
            Recovery::Requeued { crashes } => ("requeued", Some(crashes)),
            Recovery::Failed => ("failed", None),
            Recovery::Paused => ("paused", None),
            Recovery::Lost => ("lost", None),
            Recovery::TimedOut => ("timed_out", None),
        };
        Self {
            id: recovered.id.to_string(),
            task: recovered.task.to_string(),
            worker: recovered.worker.to_string(),
            became,
            crashes,
        }
    }
}

impl From<ReapReport> for Report {
    fn from(report: ReapReport) -> Self {
        Self {
            requeued: report.requeued(),
            failed: report.failed(),
            paused: report.paused(),
            lost: report.lost(),
            timed_out: report.timed_out(),
            again: report.again,
            tasks: report.recovered.into_iter().map(Task::from).collect(),
        }
    }
}

/// Does the round.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let store = args.connection.open().await?;
    let reaper = Reaper::builder(store)
        .batch_size(args.batch)
        .outage_pause(Duration::ZERO)
        .retention(Retention {
            completed: EVER,
            failed: EVER,
            cancelled: EVER,
        })
        .build()?;
    let report = Report::from(reaper.tick().await?);
    args.answer.write(&report, render)?;
    Ok(Exit::Done)
}

fn render(report: &Report) -> String {
    let mut said = sentence(report);
    if !report.tasks.is_empty() {
        let cells = report.tasks.iter().map(|task| {
            [
                task.id.clone(),
                task.task.clone(),
                task.worker.clone(),
                told(task),
            ]
        });
        said.push('\n');
        said.push_str(&table(["instance", "task", "held by", "became"], cells));
    }
    if report.again {
        said.push_str("\nthere is more to do: run it again");
    }
    said
}

fn sentence(report: &Report) -> String {
    let parts = [
        (report.requeued, "ready again"),
        (report.lost, "given back by living workers"),
        (report.timed_out, "past their deadline"),
        (report.failed, "failed after too many crashes"),
        (report.paused, "paused after too many crashes"),
    ];
    let tasks: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if tasks.is_empty() {
        "nothing to do: no claim has run out".to_owned()
    } else {
        format!("tasks: {}", tasks.join(", "))
    }
}

fn told(task: &Task) -> String {
    match (task.became, task.crashes) {
        ("requeued", Some(crashes)) => format!("ready again (crash {crashes})"),
        ("lost", _) => "ready again".to_owned(),
        ("timed_out", _) => "past its deadline".to_owned(),
        (other, _) => format!("{other}: too many crashes"),
    }
}
