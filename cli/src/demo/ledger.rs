//! A file to which handlers append what they did, before and after: the witness that no worker can talk out of it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use uuid::Uuid;

/// An open ledger. Each line is one `write` to a file opened for appending, so lines of several processes never mix.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<File>);

/// Where in a task a line was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handler has begun.
    Begin,
    /// It is about to return its result.
    End,
    /// It is about to return an error.
    Fail,
}

/// `<phase> <instance> <task> <attempt> <process> <ms> <gave|-> <task=token,…|->`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) phase: Phase,
    pub(crate) instance: String,
    pub(crate) task: String,
    pub(crate) attempt: u32,
    pub(crate) process: u32,
    /// Milliseconds since the Unix epoch.
    pub(crate) at: u64,
    /// The token of the result.
    pub(crate) gave: Option<Uuid>,
    /// The tokens of the results that the task was given: what was committed, as its successor sees it.
    pub(crate) saw: Vec<(String, Uuid)>,
}

/// The wall clock, in milliseconds since the Unix epoch: the only clock that two processes share.
#[expect(
    clippy::disallowed_methods,
    reason = "the ledger compares times of several processes"
)]
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

impl Ledger {
    /// Opens a ledger, making the file if there is none.
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(
            OpenOptions::new().create(true).append(true).open(path)?,
        )))
    }

    /// Appends a line.
    pub(crate) fn write(&self, line: &Line) -> io::Result<()> {
        (&*self.0).write_all(line.to_text().as_bytes())
    }
}

impl Line {
    fn to_text(&self) -> String {
        let phase = match self.phase {
            Phase::Begin => "begin",
            Phase::End => "end",
            Phase::Fail => "fail",
        };
        let gave = self
            .gave
            .map_or_else(|| "-".to_owned(), |token| token.to_string());
        let saw = if self.saw.is_empty() {
            "-".to_owned()
        } else {
            self.saw
                .iter()
                .map(|(task, token)| format!("{task}={token}"))
                .collect::<Vec<_>>()
                .join(",")
        };
        let Self {
            instance,
            task,
            attempt,
            process,
            at,
            ..
        } = self;
        format!("{phase} {instance} {task} {attempt} {process} {at} {gave} {saw}\n")
    }

    /// Reads a line; `None` for one that was cut off when its process was killed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let phase = match parts.next()? {
            "begin" => Phase::Begin,
            "end" => Phase::End,
            "fail" => Phase::Fail,
            _ => return None,
        };
        let (instance, task) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (attempt, process, at) = (
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        );
        let gave = match parts.next()? {
            "-" => None,
            token => Some(token.parse().ok()?),
        };
        let saw = match parts.next()? {
            "-" => Vec::new(),
            pairs => pairs
                .split(',')
                .map(|pair| {
                    let (task, token) = pair.split_once('=')?;
                    Some((task.to_owned(), token.parse().ok()?))
                })
                .collect::<Option<_>>()?,
        };
        parts.next().is_none().then_some(Self {
            phase,
            instance,
            task,
            attempt,
            process,
            at,
            gave,
            saw,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Phase};
    use uuid::Uuid;

    fn line() -> Line {
        Line {
            phase: Phase::End,
            instance: "demo-1".into(),
            task: "ship".into(),
            attempt: 2,
            process: 4711,
            at: 1_700_000_000_000,
            gave: Some(Uuid::from_u128(7)),
            saw: vec![
                ("charge".into(), Uuid::from_u128(9)),
                ("mail".into(), Uuid::from_u128(10)),
            ],
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let text = line().to_text();
        assert_eq!(Line::parse(text.trim_end()), Some(line()));
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_taken_for_a_whole_one() {
        let text = line().to_text();
        let whole = text.trim_end();
        for end in 0..whole.len() {
            assert_ne!(Line::parse(&whole[..end]), Some(line()));
        }
    }
}
