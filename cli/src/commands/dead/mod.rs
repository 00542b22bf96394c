//! `tenure dead`: the instances that failed, by their errors; retries or discards one kind of them.

mod group;
mod list;
mod steer;

use serde::Serialize;
use tenure::{Client, Status, client::Filter, store::Summary, time::Timestamp};

use self::group::{Group, Groups};
use crate::{
    answer::{Answer, cut, table},
    connect::Connection,
    exit::{Exit, Usage},
    filter::Select,
    moment,
};

/// Options of `tenure dead`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tenure dead                             what failed, grouped by error
  tenure dead --created-after 1d --json | jq '.groups[0]'
  tenure dead list --error 3f9a1c20       the instances of one group
  tenure dead retry --error 3f9a1c20      brings them back to life, after asking
  tenure dead discard --created-before 30d --yes

Deaths are of one group when they are of the same task of the same workflow, and their messages differ in numbers and
ids only. The name of a group is made of these, and stays the same."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    look: Look,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Lists them one by one, the newest first
    List(list::Args),
    /// Brings them back to life, at the task that failed
    Retry(steer::RetryArgs),
    /// Deletes them, with all that is stored of them
    Discard(steer::DiscardArgs),
}

#[derive(Debug, clap::Args)]
struct Look {
    #[command(flatten)]
    select: Select,
    /// How many to look at, the newest first
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Shown {
    /// How many instances were looked at.
    instances: usize,
    /// Whether there are more.
    more: bool,
    groups: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    group: String,
    count: usize,
    workflow: String,
    task: String,
    error: String,
    first_at: String,
    last_at: String,
    example: String,
    message: String,
    #[serde(skip)]
    first: String,
    #[serde(skip)]
    last: String,
}

impl Row {
    fn new(group: Group, now: Timestamp) -> Self {
        let ago = |time: Timestamp| format!("{} ago", moment::span(now.since(time)));
        Self {
            group: group.kind.name(),
            count: group.count,
            first_at: moment::at(group.first),
            last_at: moment::at(group.last),
            first: ago(group.first),
            last: ago(group.last),
            workflow: group.kind.workflow,
            task: group.kind.task,
            error: group.kind.error,
            example: group.example,
            message: group.message,
        }
    }
}

/// Shows them, or does what is asked.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        None => look(args.look).await,
        Some(Command::List(args)) => list::run(args).await,
        Some(Command::Retry(args)) => steer::retry(args).await,
        Some(Command::Discard(args)) => steer::discard(args).await,
    }
}

async fn look(args: Look) -> anyhow::Result<Exit> {
    check(&args.select)?;
    let client = Client::new(args.connection.open().await?);
    let now = client.now().await?;
    let mut groups = Groups::default();
    let walk = Walk::new(&client, &args.select, args.limit).await?;
    let (instances, more) = walk.run(|summary| groups.add(summary)).await?;
    let shown = Shown {
        instances,
        more,
        groups: groups
            .into_sorted()
            .into_iter()
            .map(|group| Row::new(group, now))
            .collect(),
    };
    args.answer.write(&shown, render)?;
    Ok(Exit::Done)
}

/// Dead is a status of its own.
fn check(select: &Select) -> Result<(), Usage> {
    match select.status.iter().find(|s| **s != Status::Failed) {
        None => Ok(()),
        Some(status) => Err(Usage::new(format!(
            "dead are the instances that failed, {status} ones are not; leave --status out"
        ))),
    }
}

/// What is said to a group that nothing dead is of.
fn unknown(group: &str) -> Exit {
    eprintln!("no dead instance is of a group {group}; `tenure dead` shows the groups there are");
    Exit::NotFound
}

/// Through the dead, page by page, the newest first.
struct Walk<'a> {
    client: &'a Client,
    filter: Filter,
    left: usize,
}

impl<'a> Walk<'a> {
    async fn new(client: &'a Client, select: &Select, limit: usize) -> anyhow::Result<Self> {
        let mut filter = select.filter(client).await?;
        if select.status.is_empty() {
            filter = filter.status(Status::Failed);
        }
        Ok(Self {
            client,
            filter,
            left: limit,
        })
    }

    /// Shows each; answers how many there were, and whether there are more.
    async fn run(mut self, mut each: impl FnMut(&Summary)) -> anyhow::Result<(usize, bool)> {
        let mut seen = 0;
        while self.left > 0 {
            let filter = self.filter.clone().limit(self.left.min(1_000));
            let page = self.client.list(&filter).await?;
            page.instances.iter().for_each(&mut each);
            seen += page.instances.len();
            self.left -= page.instances.len();
            match page.next {
                Some(next) => self.filter = self.filter.after(next),
                None => return Ok((seen, false)),
            }
        }
        Ok((seen, true))
    }
}

fn render(shown: &Shown) -> String {
    if shown.groups.is_empty() {
        return "no dead instances".to_owned();
    }
    let cells = shown.groups.iter().map(|row| {
        [
            row.group.clone(),
            row.count.to_string(),
            row.workflow.clone(),
            row.task.clone(),
            row.first.clone(),
            row.last.clone(),
            cut(&row.example, 40),
            cut(&row.error, 80),
        ]
    });
    let head = [
        "group", "count", "workflow", "task", "first", "last", "example", "error",
    ];
    format!("{}\n\n{}", sentence(shown), table(head, cells))
}

fn sentence(shown: &Shown) -> String {
    let plural = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    };
    let instances = plural(shown.instances, "dead instance", "dead instances");
    let groups = plural(shown.groups.len(), "kind of error", "kinds of errors");
    match shown.more {
        true => format!("the newest {instances} (there may be more, see --limit), {groups}"),
        false => format!("{instances}, {groups}"),
    }
}
