//! Many instances, with as few calls as they need.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tenure::{Client, ClientError, Handle};

use super::{Args, file::Line};
use crate::exit::Exit;

/// How many are sent between two looks at the progress: a few calls.
const PIECE: usize = 2_000;
/// How many refusals are told to people.
const TOLD: usize = 20;

/// What became of a file.
#[derive(Debug, Default, Serialize)]
struct Summary {
    started: usize,
    existing: usize,
    refused: Vec<Refused>,
    /// Not tried, since Redis failed before.
    not_sent: usize,
    instances: Vec<Instance>,
}

#[derive(Debug, Serialize)]
struct Instance {
    line: usize,
    id: String,
    run: String,
    existing: bool,
}

#[derive(Debug, Serialize)]
struct Refused {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    error: String,
}

pub(super) async fn run(client: &Client, args: &Args, lines: Vec<Line>) -> anyhow::Result<Exit> {
    let bar = ProgressBar::new(lines.len() as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} started  {per_sec}  {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut summary = Summary::default();
    let mut exit = Exit::Done;
    let mut lines = lines.into_iter();
    loop {
        let piece: Vec<Line> = lines.by_ref().take(PIECE).collect();
        if piece.is_empty() {
            break;
        }
        let (names, starts): (Vec<_>, Vec<_>) = piece
            .into_iter()
            .map(|line| ((line.number, line.id), line.start))
            .unzip();
        let answers = client.start_many_named(&args.workflow, starts).await;
        for ((line, id), answer) in names.into_iter().zip(answers) {
            match answer {
                Ok(handle) => summary.count(line, &handle),
                Err(error @ ClientError::UnknownWorkflow { .. }) => return Err(error.into()),
                Err(error) => {
                    exit = worse(exit, &error);
                    summary.refused.push(Refused {
                        line,
                        id: id.map(|id| id.to_string()),
                        error: error.to_string(),
                    });
                }
            }
            bar.inc(1);
        }
        if exit == Exit::Unavailable {
            // What follows would meet the same, after the same patience.
            summary.not_sent = lines.len();
            break;
        }
    }
    bar.finish_and_clear();
    args.answer.write(&summary, Summary::render)?;
    Ok(exit)
}

/// How the command ends after one more refusal: a Redis that is not there outweighs an id that is taken.
fn worse(exit: Exit, error: &ClientError) -> Exit {
    match (exit, Exit::of_client(error)) {
        (_, Exit::Unavailable) | (Exit::Unavailable, _) => Exit::Unavailable,
        _ => Exit::Failed,
    }
}

impl Summary {
    fn count(&mut self, line: usize, handle: &Handle) {
        let existing = handle.was_there();
        match existing {
            true => self.existing += 1,
            false => self.started += 1,
        }
        self.instances.push(Instance {
            line,
            id: handle.id().to_string(),
            run: handle.run().to_string(),
            existing,
        });
    }

    fn render(&self) -> String {
        let mut text = format!("{} started", self.started);
        if self.existing > 0 {
            text += &format!(", {} were there already", self.existing);
        }
        if !self.refused.is_empty() {
            text += &format!(", {} refused", self.refused.len());
        }
        if self.not_sent > 0 {
            text += &format!(", {} not tried after that", self.not_sent);
        }
        for refused in self.refused.iter().take(TOLD) {
            text += &format!("\n  line {}: {}", refused.line, refused.error);
        }
        if self.refused.len() > TOLD {
            text += &format!(
                "\n  and {} more: --json lists all",
                self.refused.len() - TOLD
            );
        }
        text
    }
}
