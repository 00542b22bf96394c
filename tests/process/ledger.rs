//! A file to which handlers append what they did: the witness that no worker can talk out of it.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use tenure::time::Clock;

/// An open ledger. Each line is one `write` to a file that is open for appending, so lines of processes never mix.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Arc<File>,
}

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A worker process is there; `instance` is its worker id.
    Up,
    /// A handler begins.
    Begin,
    /// It works.
    Tick,
    /// It is about to return its result.
    End,
    /// It is about to return an error.
    Fail,
    /// Its future was dropped, or it panicked, before it returned.
    Drop,
}

/// `<phase> <ms> <pid> <instance> <task> <attempt> <token>`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) phase: Phase,
    pub(crate) at: i64,
    pub(crate) pid: u32,
    pub(crate) instance: String,
    pub(crate) task: String,
    pub(crate) attempt: u32,
    /// New for each execution of a task; results carry it.
    pub(crate) token: u64,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("the ledger can be opened");
        Self {
            path: path.to_owned(),
            file: Arc::new(file),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line of this process, now.
    pub(crate) fn write(&self, phase: Phase, instance: &str, task: &str, attempt: u32, token: u64) {
        let line = Line {
            phase,
            at: Clock::system().now().as_millis(),
            pid: std::process::id(),
            instance: instance.to_owned(),
            task: task.to_owned(),
            attempt,
            token,
        };
        (&*self.file)
            .write_all(format!("{line}\n").as_bytes())
            .expect("the ledger can be written");
    }

    /// All lines so far. One that was cut off by a kill is none.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.path).expect("the ledger can be read");
        text.split_inclusive('\n')
            .filter(|l| l.ends_with('\n'))
            .filter_map(|line| line.trim_end().parse().ok())
            .collect()
    }

    /// The lines of one phase about one task of an instance.
    pub(crate) fn of(&self, phase: Phase, instance: &str, task: &str) -> Vec<Line> {
        let mut lines = self.lines();
        lines.retain(|line| line.phase == phase && line.instance == instance && line.task == task);
        lines
    }

    /// How many lines of a phase there are.
    pub(crate) fn count(&self, phase: Phase) -> usize {
        self.lines()
            .iter()
            .filter(|line| line.phase == phase)
            .count()
    }
}

impl Phase {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Up, "up"),
        (Self::Begin, "begin"),
        (Self::Tick, "tick"),
        (Self::End, "end"),
        (Self::Fail, "fail"),
        (Self::Drop, "drop"),
    ];
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            phase,
            at,
            pid,
            instance,
            task,
            attempt,
            token,
        } = self;
        let phase = Phase::ALL
            .iter()
            .find(|(p, _)| p == phase)
            .map_or("?", |(_, word)| word);
        write!(f, "{phase} {at} {pid} {instance} {task} {attempt} {token}")
    }
}

impl FromStr for Line {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [phase, at, pid, instance, task, attempt, token] =
            <[&str; 7]>::try_from(parts).map_err(|_| ())?;
        Ok(Self {
            phase: Phase::ALL
                .iter()
                .find(|(_, word)| *word == phase)
                .map(|(p, _)| *p)
                .ok_or(())?,
            at: at.parse().map_err(|_| ())?,
            pid: pid.parse().map_err(|_| ())?,
            instance: instance.to_owned(),
            task: task.to_owned(),
            attempt: attempt.parse().map_err(|_| ())?,
            token: token.parse().map_err(|_| ())?,
        })
    }
}
