//! Worker processes, and what can be done to them.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    ledger::{Ledger, Phase},
    program::{SETUP, Setup},
    wait,
};

/// A worker process. Killed when dropped; its log is shown when the test has failed.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    ledger: Ledger,
}

impl Process {
    /// Starts it; it may take a moment until it works.
    pub(crate) fn spawn(setup: &Setup, log: &Path) -> Self {
        let out = File::create(log).expect("a log file");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .env(
                SETUP,
                serde_json::to_string(setup).expect("the setup as JSON"),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .expect("a worker process can be started");
        Self {
            child,
            log: log.to_owned(),
            ledger: Ledger::open(&setup.ledger),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it works, and returns its worker id.
    pub(crate) async fn up(&mut self) -> String {
        wait::until_some("the worker process works", async || {
            let ended = self.child.try_wait().expect("the state of a child");
            assert!(
                ended.is_none(),
                "the worker process ended before it worked: {ended:?}"
            );
            let pid = self.child.id();
            self.ledger
                .lines()
                .into_iter()
                .find(|l| l.phase == Phase::Up && l.pid == pid)
                .map(|l| l.instance)
        })
        .await
    }

    /// SIGKILL, and the process is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("the end of a killed process");
    }

    /// SIGSTOP: it does nothing any more, and does not know.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// SIGTERM: it shuts down in good order.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        wait::until_some("the worker process ends", async || {
            self.child.try_wait().expect("the state of a child")
        })
        .await
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the state of a child")
            .is_some()
    }

    /// SIGTERM, and waits for an end in good order.
    pub(crate) async fn shut_down(mut self) {
        self.terminate();
        let status = self.ended().await;
        assert!(
            status.success(),
            "a worker that was told to stop ended with {status}"
        );
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("a signal to a process of the test");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("worker process {} may still run", self.child.id());
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_else(|error| error.to_string());
            let from = log.len().saturating_sub(4000);
            let tail = log.get(from..).unwrap_or(&log);
            eprintln!("--- worker process {}\n{tail}", self.child.id());
        }
    }
}
