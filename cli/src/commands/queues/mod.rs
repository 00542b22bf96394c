//! `tenure queues`: how much waits where, for how long, and who reads it.

mod read;

use std::{collections::HashMap, time::Duration};

use serde::Serialize;
use tenure::{Client, time::Timestamp};

pub(crate) use self::read::{Names, Queue, read};
use crate::{
    answer::{Answer, table},
    connect::Connection,
    exit::Exit,
    moment,
};

/// Options of `tenure queues`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure queues
  tenure queues --over 10s         the change is that of ten seconds
  tenure queues --json | jq '.[] | select(.no_worker)'

A queue has one list for each definition: workers take only what they can run. OLDEST is how long ago the instance at the
head of the list was started, so its task waits no longer than that. CHANGE is by how much the list has grown (+) or shrunk
(-) in a second; it takes two looks, and so a second.")]
pub(crate) struct Args {
    /// Between the two looks that tell how the lists change; 0s: one look, without the change
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration, value_name = "DURATION")]
    over: Duration,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Row {
    queue: String,
    workflow: String,
    definition: String,
    ready: usize,
    oldest_ms: Option<u64>,
    head: Option<Head>,
    change_per_second: Option<f64>,
    workers: usize,
    parked: usize,
    no_worker: bool,
    #[serde(skip)]
    oldest: String,
}

#[derive(Debug, Serialize)]
struct Head {
    id: String,
    task: String,
}

/// A look, and when it was.
struct Look {
    at: Timestamp,
    queues: Vec<Queue>,
}

impl Row {
    fn new(queue: Queue, change: Option<f64>) -> Self {
        let millis = |age: Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Self {
            no_worker: queue.is_alone(),
            oldest: queue.oldest.map(moment::span).unwrap_or_default(),
            queue: queue.queue,
            workflow: queue.workflow,
            definition: queue.definition,
            ready: queue.ready,
            oldest_ms: queue.oldest.map(millis),
            head: queue.head.map(|(id, task)| Head { id, task }),
            change_per_second: change,
            workers: queue.workers,
            parked: queue.parked,
        }
    }
}

/// Lists them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let mut names = Names::default();
    let mut before = None;
    if !args.over.is_zero() {
        before = Some(look(&client, &mut names).await?);
        tokio::time::sleep(args.over).await;
    }
    let now = look(&client, &mut names).await?;
    let rows = rows(before.as_ref(), now);
    args.answer.write(&rows, |rows| render(rows))?;
    Ok(Exit::Done)
}

async fn look(client: &Client, names: &mut Names) -> anyhow::Result<Look> {
    let at = client.now().await?;
    let workers = client.workers().await?;
    let queues = read(client, names, &workers, at).await?;
    Ok(Look { at, queues })
}

/// The deepest first, each with how it changed since the look before.
fn rows(before: Option<&Look>, mut now: Look) -> Vec<Row> {
    let known = before.map(|before| {
        let depths = before.queues.iter().map(|q| (q.name(), q.ready));
        let seconds = now.at.since(before.at).as_secs_f64();
        (depths.collect::<HashMap<_, _>>(), seconds.max(0.001))
    });
    now.queues
        .sort_by_key(|queue| (std::cmp::Reverse(queue.ready), queue.name()));
    let change = |queue: &Queue| {
        let (depths, seconds) = known.as_ref()?;
        let before = depths.get(&queue.name()).copied().unwrap_or(0);
        let rate = (queue.ready as f64 - before as f64) / seconds;
        Some((rate * 10.0).round() / 10.0)
    };
    let rows = now.queues.into_iter().map(|queue| {
        let change = change(&queue);
        Row::new(queue, change)
    });
    rows.collect()
}

fn render(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no queues: nothing waits, and no worker is there".to_owned();
    }
    let cells = rows.iter().map(|row| {
        let change = row.change_per_second;
        let note = if row.no_worker { "no worker" } else { "" };
        [
            row.queue.clone(),
            format!("{}:{}", row.workflow, row.definition),
            row.ready.to_string(),
            row.oldest.clone(),
            change
                .map(|rate| format!("{rate:+.1}/s"))
                .unwrap_or_default(),
            row.workers.to_string(),
            row.parked.to_string(),
            note.to_owned(),
        ]
    });
    let head = [
        "queue", "workflow", "ready", "oldest", "change", "workers", "parked", "",
    ];
    let table = table(head, cells);
    let alone: usize = rows.iter().filter(|r| r.no_worker).map(|r| r.ready).sum();
    match alone {
        0 => table,
        _ => format!(
            "{table}\n\n{alone} of these tasks wait in lists that no worker reads: start one that has the definition and serves the queue"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: i64, queues: &[(&str, usize)]) -> Look {
        let queue = |(name, ready): &(&str, usize)| Queue {
            queue: (*name).into(),
            ready: *ready,
            ..Queue::default()
        };
        Look {
            at: Timestamp::from_millis(at),
            queues: queues.iter().map(queue).collect(),
        }
    }

    #[test]
    fn the_change_is_that_of_a_second() {
        let before = look(1_000, &[("a", 10), ("b", 100)]);
        let now = look(3_000, &[("a", 15), ("b", 0), ("c", 4)]);
        let rows = rows(Some(&before), now);
        let told = rows.iter().map(|r| (r.queue.as_str(), r.change_per_second));
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [("a", Some(2.5)), ("c", Some(2.0)), ("b", Some(-50.0))]
        );
    }

    #[test]
    fn one_look_tells_no_change() {
        let rows = rows(None, look(1_000, &[("a", 1)]));
        assert_eq!(rows[0].change_per_second, None);
        assert!(render(&rows).contains("1 of these tasks wait in lists that no worker reads"));
    }
}
