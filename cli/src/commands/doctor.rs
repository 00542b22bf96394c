//! `tenure doctor`: what is wrong with what is stored, and putting it right.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use tenure::{
    ids::Partition,
    store::Store,
    store::redis::{Doctor, Finding, Outcome, Progress, Report},
};

use crate::{
    answer::{Answer, line},
    connect::Connection,
    exit::Exit,
};

/// Options of `tenure doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure doctor                   is anything wrong? Silent, and exit code 0, if not
  tenure doctor --fix             mends what is safe, and says what it did
  tenure doctor --json | jq -r '.findings[].key'
  tenure doctor --partition 3 --batch 100    a part of it, in smaller bites

Workers may go on meanwhile. What seems wrong is looked at again twice before it is a finding.
Notes (settings that lose data, clocks that differ) go to standard error and are no findings.
Exit code 1: something is wrong, with --fix: something is wrong still.
Needs the rights of a worker, and SCAN, TYPE and HSCAN; INFO and CONFIG for the notes.")]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
    /// Mend what is safe to mend
    #[arg(long)]
    fix: bool,
    /// Look at this partition alone
    #[arg(long, value_name = "NUMBER")]
    partition: Option<u16>,
    /// How many keys to read at once
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000), value_name = "KEYS")]
    batch: u16,
    /// No notes, no progress: findings alone
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    id: Option<String>,
    problem: String,
    outcome: &'static str,
    /// What was done, or what can be done.
    what: &'static str,
}

impl From<&Finding> for Row {
    fn from(finding: &Finding) -> Self {
        let (outcome, what) = match finding.outcome {
            Outcome::Mended(how) => ("mended", how),
            Outcome::Left(advice) => ("left", advice),
            Outcome::Mendable(how) => ("mendable", how),
            _ => ("unknown", ""),
        };
        Self {
            key: finding.key.clone(),
            id: finding.id.as_ref().map(ToString::to_string),
            problem: finding.problem.to_string(),
            outcome,
            what,
        }
    }
}

#[derive(Debug, Serialize)]
struct Told {
    well: bool,
    keys: usize,
    instances: usize,
    findings: Vec<Row>,
    notes: Vec<String>,
}

impl From<Report> for Told {
    fn from(report: Report) -> Self {
        Self {
            well: report.is_well(),
            keys: report.keys,
            instances: report.instances,
            findings: report.findings.iter().map(Row::from).collect(),
            notes: report.notes.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Looks, and mends if it is told to.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let store = args.connection.open().await?;
    let mut doctor = store.doctor().batch(args.batch.into());
    if let Some(number) = args.partition {
        let mut all = Partition::all(store.partitions());
        let partition = all.find(|one| one.number() == number).ok_or_else(|| {
            anyhow::anyhow!(
                "there is no partition {number}: this namespace has those from 0 to {}",
                store.partitions().get() - 1
            )
        })?;
        doctor = doctor.partition(partition);
    }
    let shows = !args.quiet && std::io::stderr().is_terminal();
    if shows {
        doctor = doctor.on_progress(progress);
    }
    let report = look(&doctor, args.fix).await;
    if shows {
        eprint!("\r\x1b[K");
    }
    let told = Told::from(report?);
    if args.answer.json {
        args.answer.write(&told, |_| String::new())?;
    } else {
        if !args.quiet {
            for note in &told.notes {
                eprintln!("note: {note}");
            }
        }
        if !told.findings.is_empty() {
            line(render(&told, args.fix).trim_end())?;
        }
    }
    Ok(if told.well { Exit::Done } else { Exit::Failed })
}

async fn look(doctor: &Doctor, fix: bool) -> Result<Report, tenure::StoreError> {
    if fix {
        doctor.mend().await
    } else {
        doctor.examine().await
    }
}

fn progress(progress: &Progress) {
    let (keys, partition) = (progress.keys, progress.partition);
    let again = match progress.suspects {
        0 => String::new(),
        count => format!(", {count} to look at again"),
    };
    let mut err = std::io::stderr().lock();
    // A terminal that is gone is no reason to stop.
    write!(err, "\r\x1b[Kpartition {partition}: {keys} keys{again}").ok();
    err.flush().ok();
}

fn render(told: &Told, fix: bool) -> String {
    let mut text = String::new();
    for row in &told.findings {
        let before = match row.outcome {
            "mended" => "mended: ",
            "mendable" => "`tenure doctor --fix` mends it: ",
            _ => "not mended: ",
        };
        text.push_str(&format!(
            "{}: {}\n  {before}{}\n",
            row.key, row.problem, row.what
        ));
    }
    let count = told.findings.len();
    let things = if count == 1 { "finding" } else { "findings" };
    if fix {
        let mended = told
            .findings
            .iter()
            .filter(|row| row.outcome == "mended")
            .count();
        text.push_str(&format!("{count} {things}, {mended} mended\n"));
    } else {
        text.push_str(&format!("{count} {things}\n"));
    }
    text
}
