//! `tenure list`: which instances there are.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use tenure::{
    Client, Status,
    client::{Cursor, Filter, Page},
    store::{Summary, TaskState},
    time::Timestamp,
};

use crate::{
    answer::{Answer, line},
    connect::Connection,
    exit::Exit,
    filter::Select,
    moment,
    text::{Columns, cut},
};

/// Instances of a page when the rest follows anyway.
const ALL: usize = 1_000;

/// Options of `tenure list`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure list                                     what is under way, then what is over, the newest first
  tenure list --status failed --created-after 2h
  tenure list --workflow order --label tenant=acme --limit 500
  tenure list --count --status running,paused     how many
  tenure list --all --json | jq -r .id            an object in each line

A page that is not the last one says, on standard error, how to go on; in JSON it is `next`.
Counts of what is over are looked up; all others are counted by going through the instances.")]
pub(crate) struct Args {
    #[command(flatten)]
    select: Select,
    /// The most instances of a page
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    limit: u16,
    /// Go on where a page ended
    #[arg(long, value_name = "CURSOR", conflicts_with_all = ["all", "count"])]
    after: Option<Cursor>,
    /// All pages, one after another
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Only how many there are
    #[arg(long, conflicts_with_all = ["all", "limit"])]
    count: bool,
    #[command(flatten)]
    answer: Answer,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    run: String,
    status: &'static str,
    workflow: String,
    definition: String,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    /// Open tasks and where they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tasks: BTreeMap<String, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    age: String,
    #[serde(skip)]
    took: String,
}

impl Row {
    fn new(summary: Summary, now: Timestamp) -> Self {
        let tasks = summary.tasks.iter();
        let error = summary.error.map(|e| format!("{}: {}", e.task, e.message));
        Self {
            id: summary.id.to_string(),
            run: summary.run.to_string(),
            status: summary.status.as_str(),
            workflow: summary.workflow.to_string(),
            definition: summary.definition.to_string(),
            created_at: moment::at(summary.created_at),
            started_at: summary.started_at.map(moment::at),
            finished_at: summary.finished_at.map(moment::at),
            created_by: summary.meta.created_by,
            labels: summary.meta.labels,
            tasks: tasks
                .map(|(task, record)| (task.to_string(), record.state.as_str()))
                .collect(),
            error,
            age: format!("{} ago", moment::span(now.since(summary.created_at))),
            took: summary.finished_at.map_or_else(String::new, |end| {
                moment::span(end.since(summary.created_at))
            }),
        }
    }

    const HEAD: [&'static str; 7] = [
        "ID", "STATUS", "WORKFLOW", "CREATED", "TOOK", "AT", "LABELS",
    ];

    fn cells(&self) -> [String; 7] {
        let labels = self.labels.iter().map(|(k, v)| format!("{k}={v}"));
        [
            self.id.clone(),
            self.status.to_owned(),
            self.workflow.clone(),
            self.age.clone(),
            self.took.clone(),
            self.place(),
            cut(&labels.collect::<Vec<_>>().join(" "), 60),
        ]
    }

    /// Why it failed, or the tasks that something more must happen to: those that run first.
    fn place(&self) -> String {
        if let Some(error) = &self.error {
            return cut(error, 60);
        }
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(_, state)| **state != TaskState::Running.as_str());
        let shown = tasks
            .iter()
            .take(2)
            .map(|(task, state)| format!("{task} {state}"));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if tasks.len() > 2 {
            text += &format!(" and {} more", tasks.len() - 2);
        }
        text
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    instances: Vec<Row>,
    /// Instances whose records cannot be read: `tenure doctor` says why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    next: Option<String>,
}

impl Listed {
    fn new(page: Page, now: Timestamp) -> Self {
        let rows = page.instances.into_iter();
        Self {
            instances: rows.map(|summary| Row::new(summary, now)).collect(),
            unreadable: page.unreadable.iter().map(ToString::to_string).collect(),
            next: page.next.map(|next| next.to_string()),
        }
    }
}

/// Lists them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    if args.count {
        return count(&client, &args).await;
    }
    let filter = args.select.filter(&client).await?;
    if args.all {
        return all(&client, filter, args.answer).await;
    }
    let mut filter = filter.limit(args.limit.into());
    if let Some(cursor) = args.after {
        filter = filter.after(cursor);
    }
    let now = client.now().await?;
    let listed = Listed::new(page(&client, filter).await?, now);
    args.answer.write(&listed, |listed| {
        table(&mut Columns::default(), &listed.instances, true)
    })?;
    complain(&listed.unreadable);
    if let (Some(next), false) = (&listed.next, args.answer.json) {
        eprintln!("there may be more: the same with --after {next}");
    }
    Ok(Exit::Done)
}

/// A page with something on it, or the last one.
async fn page(client: &Client, mut filter: Filter) -> anyhow::Result<Page> {
    let mut unreadable = Vec::new();
    loop {
        let mut page = client.list(&filter).await?;
        unreadable.append(&mut page.unreadable);
        match page.next {
            Some(next) if page.instances.is_empty() => filter = filter.after(next),
            _ => {
                page.unreadable = unreadable;
                return Ok(page);
            }
        }
    }
}

async fn all(client: &Client, filter: Filter, answer: Answer) -> anyhow::Result<Exit> {
    let mut filter = filter.limit(ALL);
    let mut columns = Columns::default();
    let mut is_first = true;
    loop {
        let page = page(client, filter.clone()).await?;
        let next = page.next.clone();
        let listed = Listed::new(page, client.now().await?);
        if answer.json {
            for row in &listed.instances {
                line(&serde_json::to_string(row)?)?;
            }
        } else if is_first || !listed.instances.is_empty() {
            line(&table(&mut columns, &listed.instances, is_first))?;
        }
        complain(&listed.unreadable);
        is_first = false;
        match next {
            Some(next) => filter = filter.after(next),
            None => return Ok(Exit::Done),
        }
    }
}

fn table(columns: &mut Columns, rows: &[Row], with_head: bool) -> String {
    if rows.is_empty() {
        return "no instances".to_owned();
    }
    let head = with_head.then(|| Row::HEAD.map(str::to_owned));
    let cells = head.into_iter().chain(rows.iter().map(Row::cells));
    columns.rows(&cells.collect::<Vec<_>>()).join("\n")
}

fn complain(unreadable: &[String]) {
    for id in unreadable {
        eprintln!("tenure: the record of `{id}` cannot be read; `tenure doctor` says why");
    }
}

#[derive(Debug, Default, Serialize)]
struct Counted {
    total: usize,
    by_status: BTreeMap<&'static str, usize>,
}

async fn count(client: &Client, args: &Args) -> anyhow::Result<Exit> {
    let mut counted = Counted::default();
    let wanted: Vec<Status> = match args.select.status.as_slice() {
        [] => Status::ALL.to_vec(),
        some => some.to_vec(),
    };
    let is_of_status_alone = Select {
        status: Vec::new(),
        ..args.select.clone()
    }
    .is_empty();
    let (known, walked): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|status| is_of_status_alone && status.is_terminal());
    let finished = client.counts().await?.finished;
    for status in known {
        let number = finished.get(&status).copied().unwrap_or(0);
        counted.by_status.insert(status.as_str(), number);
    }
    if !walked.is_empty() {
        let select = Select {
            status: walked,
            ..args.select.clone()
        };
        let filter = select.filter(client).await?.limit(ALL);
        walk(client, filter, &mut counted).await?;
    }
    counted.by_status.retain(|_, number| *number > 0);
    counted.total = counted.by_status.values().sum();
    args.answer.write(&counted, Counted::render)?;
    Ok(Exit::Done)
}

/// Counts by going through them; one that moves meanwhile is counted once.
async fn walk(client: &Client, mut filter: Filter, counted: &mut Counted) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    loop {
        let page = client.list(&filter).await?;
        for instance in page.instances {
            if seen.insert(instance.run) {
                *counted
                    .by_status
                    .entry(instance.status.as_str())
                    .or_default() += 1;
            }
        }
        match page.next {
            Some(next) => filter = filter.after(next),
            None => return Ok(()),
        }
    }
}

impl Counted {
    fn render(&self) -> String {
        let parts = self
            .by_status
            .iter()
            .map(|(status, n)| format!("{n} {status}"));
        match self.by_status.len() {
            0 => "0".to_owned(),
            _ => format!("{}: {}", self.total, parts.collect::<Vec<_>>().join(", ")),
        }
    }
}
