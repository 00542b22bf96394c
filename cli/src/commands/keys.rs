//! `tenure keys`: where an instance is stored, for who wants to look with redis-cli.

use serde::Serialize;
use tenure::{InstanceId, store::redis::KeyRecord};

use crate::{
    answer::{Answer, table},
    connect::Connection,
    exit::Exit,
    moment,
};

/// Options of `tenure keys`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure keys order-42            its keys, and how to look at each
  tenure keys order-42 --json | jq -r '.[] | select(.own) | .key'

To look is harmless; to write is not: every change goes through a script that keeps all keys in step.")]
pub(crate) struct Args {
    /// The instance
    #[arg(value_name = "ID")]
    id: InstanceId,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    #[serde(rename = "type")]
    kind: String,
    size: u64,
    ttl_ms: Option<u128>,
    /// Whether it holds this instance alone.
    own: bool,
    purpose: String,
    look: String,
    #[serde(skip)]
    ttl: String,
}

impl From<KeyRecord> for Row {
    fn from(record: KeyRecord) -> Self {
        Self {
            look: look(&record.kind, &record.key),
            own: record.role.is_own(),
            purpose: record.role.to_string(),
            ttl_ms: record.ttl.map(|ttl| ttl.as_millis()),
            ttl: record.ttl.map_or_else(|| "stays".to_owned(), moment::span),
            kind: record.kind,
            size: record.size,
            key: record.key,
        }
    }
}

/// Lists them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let store = args.connection.open().await?;
    let rows: Vec<Row> = store
        .keys_of(&args.id)
        .await?
        .into_iter()
        .map(Row::from)
        .collect();
    if rows.is_empty() {
        eprintln!(
            "tenure: no instance `{}` in namespace `{}`: none of its keys is there",
            args.id,
            args.connection.namespace()?
        );
        return Ok(Exit::NotFound);
    }
    args.answer.write(&rows, |rows| render(rows))?;
    Ok(Exit::Done)
}

/// The line that shows what is in a key; of one that many share, the first entries.
fn look(kind: &str, key: &str) -> String {
    let key = quoted(key);
    match kind {
        "hash" => format!("redis-cli HGETALL {key}"),
        "list" => format!("redis-cli LRANGE {key} 0 99"),
        "set" => format!("redis-cli SSCAN {key} 0"),
        "zset" => format!("redis-cli ZRANGE {key} 0 99 WITHSCORES"),
        "string" => format!("redis-cli GET {key}"),
        _ => format!("redis-cli TYPE {key}"),
    }
}

/// As one word of a shell: braces and what else an id may hold mean nothing then.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn render(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        [
            row.purpose.clone(),
            row.kind.clone(),
            row.size.to_string(),
            row.ttl.clone(),
            row.look.clone(),
        ]
    });
    table(["holds", "type", "size", "ttl", "look at it by"], cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_word_of_a_shell() {
        assert_eq!(
            look("hash", "{t:0}:instance:it's"),
            r"redis-cli HGETALL '{t:0}:instance:it'\''s'"
        );
    }
}
