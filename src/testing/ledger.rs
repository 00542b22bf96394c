use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;

use super::{Digest, Line};
use crate::{
    codec::CodecError,
    ids::{IdError, InstanceId, RunId, TaskName},
    store::{Claimed, SettleReply, Settlement, Status, StatusEvent, Verdict},
    task::{Retry, TaskContext, TaskError},
    time::{Clock, Timestamp},
};

/// Why a ledger cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The file.
    #[error("the ledger's file cannot be used")]
    File(#[from] io::Error),
    /// A value that cannot be stored either.
    #[error(transparent)]
    Value(#[from] CodecError),
    /// A line that is no line of a ledger.
    #[error(transparent)]
    Line(#[from] IdError),
}

/// Where handlers, clients and observers write down what happens, in the order in which it happens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Ledger {
    sink: Arc<Mutex<Sink>>,
    clock: Clock,
}

#[derive(Debug)]
enum Sink {
    Memory(Vec<Line>),
    File(File),
}

impl Ledger {
    /// In the memory of this process, on the machine's clock.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::of(Sink::Memory(Vec::new()))
    }

    /// In a file to which several processes append: each line is written whole, with one call, so that a process which is
    /// killed leaves no half of one.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn append_to(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self::of(Sink::File(file)))
    }

    fn of(sink: Sink) -> Self {
        Self {
            sink: Arc::new(Mutex::new(sink)),
            clock: Clock::system(),
        }
    }

    /// Another clock. It must never run slower than the store's, or timers seem to be early: where the store's clock is
    /// stepped, step this one forward with it and never back.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Writes a line.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn write(&self, line: Line) -> Result<(), LedgerError> {
        match &mut *self.sink() {
            Sink::Memory(lines) => lines.push(line),
            Sink::File(file) => file.write_all(format!("{line}\n").as_bytes())?,
        }
        Ok(())
    }

    /// A start was acknowledged.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn started(&self, id: &InstanceId, run: RunId) -> Result<(), LedgerError> {
        let id = id.clone();
        self.write(Line::Started { id, run })
    }

    /// A client was told the end of a run.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn told(
        &self,
        id: &InstanceId,
        run: RunId,
        status: Status,
        result: Option<Digest>,
    ) -> Result<(), LedgerError> {
        let id = id.clone();
        self.write(Line::Told {
            id,
            run,
            status,
            result,
        })
    }

    /// The store gave out a claim.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn claimed(&self, claimed: &Claimed) -> Result<(), LedgerError> {
        let Some((worker, nonce)) = claimed.record.worker.clone().zip(claimed.record.nonce) else {
            return Ok(());
        };
        self.write(Line::Claimed {
            worker,
            id: claimed.ticket.id.clone(),
            run: claimed.run,
            task: claimed.ticket.task.clone(),
            attempt: claimed.record.attempt,
            nonce: nonce.to_string(),
        })
    }

    /// The store answered to a settlement; only what it stored of completed attempts is written down.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn settled(&self, item: &Settlement, reply: &SettleReply) -> Result<(), LedgerError> {
        let SettleReply::Stored { next } = reply else {
            return Ok(());
        };
        if let Some(next) = next {
            self.claimed(next)?;
        }
        match item.verdict {
            Verdict::Completed { .. } => self.write(Line::Stored {
                id: item.holding.ticket.id.clone(),
                run: item.holding.run,
                task: item.holding.ticket.task.clone(),
                attempt: item.holding.record.attempt,
            }),
            Verdict::Wait(_)
            | Verdict::Retry { .. }
            | Verdict::Failed { .. }
            | Verdict::Paused { .. } => Ok(()),
        }
    }

    /// The store published a change of status; only ends, and what goes back on one, are written down.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn event(&self, event: &StatusEvent) -> Result<(), LedgerError> {
        if event.from.is_some_and(Status::is_terminal) {
            return self.write(Line::Retried {
                id: event.id.clone(),
                run: event.run,
            });
        }
        if !event.to.is_terminal() {
            return Ok(());
        }
        self.write(Line::Over {
            id: event.id.clone(),
            run: event.run,
            status: event.to,
        })
    }

    /// First thing in a handler, before any effect.
    ///
    /// # Errors
    /// [`LedgerError`]; the handler should fail with it.
    pub fn began<I: Serialize + ?Sized>(
        &self,
        context: &TaskContext,
        input: &I,
    ) -> Result<Entry, LedgerError> {
        let entry = Entry {
            ledger: self.clone(),
            id: context.instance().clone(),
            run: context.run(),
            task: context.task().clone(),
            attempt: context.attempt(),
        };
        self.write(Line::Began {
            at: self.clock.now(),
            id: entry.id.clone(),
            run: entry.run,
            task: entry.task.clone(),
            attempt: entry.attempt,
            failures: context.failures(),
            input: Digest::of(input)?,
        })?;
        Ok(entry)
    }

    /// All that was written by this process, if the ledger is in memory.
    #[must_use]
    pub fn history(&self) -> History {
        match &*self.sink() {
            Sink::Memory(lines) => History(lines.clone()),
            Sink::File(_) => History::default(),
        }
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        // A line is pushed whole or not at all.
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler that has begun. Dropping it writes nothing: that is what a process that dies leaves.
#[derive(Debug)]
#[must_use = "a handler that ends says so with done() or failed()"]
pub struct Entry {
    ledger: Ledger,
    id: InstanceId,
    run: RunId,
    task: TaskName,
    attempt: u32,
}

impl Entry {
    /// Last thing in a handler that succeeds.
    ///
    /// # Errors
    /// As [`Ledger::began`].
    pub fn done<O: Serialize + ?Sized>(self, output: &O) -> Result<(), LedgerError> {
        let output = Some(Digest::of(output)?);
        self.end(output, None)
    }

    /// Last thing in a handler that fails.
    ///
    /// # Errors
    /// [`LedgerError::File`].
    pub fn failed(self, error: &TaskError) -> Result<(), LedgerError> {
        let wait = match error.retry() {
            Retry::After(wait) => Some(wait),
            Retry::Policy | Retry::Never => None,
        };
        self.end(None, wait)
    }

    fn end(self, output: Option<Digest>, wait: Option<Duration>) -> Result<(), LedgerError> {
        let at: Timestamp = self.ledger.clock.now();
        self.ledger.write(Line::Ended {
            at,
            id: self.id,
            run: self.run,
            task: self.task,
            attempt: self.attempt,
            output,
            wait,
        })
    }
}

/// What a ledger holds, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History(pub(super) Vec<Line>);

impl History {
    /// Reads the file of [`Ledger::append_to`]. A last line without its end is left out: it is being written.
    ///
    /// # Errors
    /// [`LedgerError::File`] and [`LedgerError::Line`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        let text = std::fs::read_to_string(path)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self(lines))
    }

    /// The lines.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_to_a_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let (memory, file) = (Ledger::in_memory(), Ledger::append_to(&path).unwrap());
        for ledger in [&memory, &file] {
            let clock = Clock::manual(Timestamp::from_millis(5));
            let ledger = ledger.clone().with_clock(clock);
            let mut parts = crate::task::ContextParts::for_test("a").unwrap();
            parts.run = "0198c0de-7e57-7000-8000-00000000abcd".parse().unwrap();
            parts.instance = InstanceId::new("order 42").unwrap();
            let (id, run) = (parts.instance.clone(), parts.run);
            let context = TaskContext::new(parts);
            ledger.started(&id, run).unwrap();
            ledger.began(&context, &1).unwrap().done(&2).unwrap();
            let error = TaskError::retry_after("later", Duration::from_millis(7));
            ledger.began(&context, &1).unwrap().failed(&error).unwrap();
            drop(ledger.began(&context, "").unwrap());
            ledger.told(&id, run, Status::Failed, None).unwrap();
            ledger
                .write(Line::Over {
                    id: id.clone(),
                    run,
                    status: Status::Failed,
                })
                .unwrap();
            ledger
                .write(Line::Stored {
                    id: id.clone(),
                    run,
                    task: TaskName::new("a").unwrap(),
                    attempt: 3,
                })
                .unwrap();
            ledger
                .write(Line::Claimed {
                    worker: crate::ids::WorkerId::new("w").unwrap(),
                    id,
                    run,
                    task: TaskName::new("a").unwrap(),
                    attempt: 3,
                    nonce: "abcdefgh".into(),
                })
                .unwrap();
        }
        assert_eq!(History::read(&path).unwrap(), memory.history());
        std::fs::write(&path, "began\tnonsense\n").unwrap();
        let error = History::read(&path).unwrap_err();
        assert!(matches!(error, LedgerError::Line(_)), "{error}");
    }

    #[test]
    fn half_a_line_at_the_end_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let run = RunId::unique();
        std::fs::write(&path, format!("started\t{run}\ta\nstar")).unwrap();
        assert_eq!(History::read(&path).unwrap().lines().len(), 1);
    }
}
