//! `tenure definitions`: the workflows that workers have published.

use serde::Serialize;
use tenure::{Client, store::DefinitionRecord};

use crate::{
    answer::{Answer, table},
    connect::Connection,
    exit::Exit,
};

/// Options of `tenure definitions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tenure definitions              which workflows there are, in which versions
  tenure definitions --json | jq -r '.[] | select(.current) | .workflow'

A start by name uses the current definition. It is the first one that was published.")]
pub(crate) struct Args {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, Serialize)]
struct Row {
    workflow: String,
    definition: String,
    current: bool,
}

impl From<DefinitionRecord> for Row {
    fn from(record: DefinitionRecord) -> Self {
        Self {
            workflow: record.workflow.to_string(),
            definition: record.hash.to_string(),
            current: record.current,
        }
    }
}

/// Lists them.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    let client = Client::new(args.connection.open().await?);
    let rows: Vec<Row> = client
        .definitions()
        .await?
        .into_iter()
        .map(Into::into)
        .collect();
    args.answer.write(&rows, |rows| render(rows))?;
    Ok(Exit::Done)
}

fn render(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "no definitions: no worker has been here yet".to_owned();
    }
    let cells = rows.iter().map(|row| {
        let current = if row.current { "yes" } else { "" };
        [
            row.workflow.clone(),
            row.definition.clone(),
            current.to_owned(),
        ]
    });
    table(["workflow", "definition", "current"], cells)
}
