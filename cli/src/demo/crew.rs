//! Who works in a demo: one worker in this process, or two processes of which one is killed.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use tenure::{MemoryStore, Worker, WorkerHandle};

use super::{
    ledger::{self, Ledger},
    orders,
};
use crate::connect::Connection;

/// How long the claims of the demo's processes hold: what a killed worker held is back after that.
const CLAIM_TTL: &str = "2s";

/// The workers of a demo.
pub(crate) struct Crew {
    members: Members,
    killed: Option<Killed>,
}

enum Members {
    Embedded(WorkerHandle),
    Processes(Vec<Child>),
}

/// The worker that was killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Killed {
    /// When, in milliseconds since the Unix epoch.
    pub(crate) at: u64,
}

impl Crew {
    /// A worker in this process.
    pub(crate) fn embedded(
        store: MemoryStore,
        ledger: &Path,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        let workflow = orders::workflow(Some(Ledger::append_to(ledger)?))?;
        let worker = Worker::builder(store)
            .workflow(&workflow)
            .concurrency(concurrency)
            .build()?
            .spawn();
        Ok(Self {
            members: Members::Embedded(worker),
            killed: None,
        })
    }

    /// Two worker processes.
    pub(crate) fn processes(
        connection: &Connection,
        ledger: &Path,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        let mut crew = Self {
            members: Members::Processes(Vec::new()),
            killed: None,
        };
        for _ in 0..2 {
            let mut command = Command::new(std::env::current_exe()?);
            connection.hand_on(&mut command)?;
            let child = command
                .args([
                    "worker",
                    "--demo",
                    "--claim-ttl",
                    CLAIM_TTL,
                    "--concurrency",
                    &concurrency.to_string(),
                ])
                .arg("--ledger")
                .arg(ledger)
                .env("TENURE_LOG", "error")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .context("a worker process could not be started")?;
            if let Members::Processes(children) = &mut crew.members {
                children.push(child);
            }
        }
        Ok(crew)
    }

    /// What is about to happen, in a sentence.
    pub(crate) fn introduction(&self, instances: u32) -> String {
        match &self.members {
            Members::Embedded(_) => {
                format!("{instances} orders on the embedded store, one worker in this process")
            }
            Members::Processes(children) => {
                let ids: Vec<_> = children
                    .iter()
                    .map(|child| child.id().to_string())
                    .collect();
                format!(
                    "{instances} orders on Redis, worker processes {}; one is killed half-way",
                    ids.join(" and ")
                )
            }
        }
    }

    /// Kills one of the processes with SIGKILL, once. Answers whether it did.
    pub(crate) fn kill_one(&mut self) -> bool {
        let Members::Processes(children) = &mut self.members else {
            return false;
        };
        let (None, Some(child)) = (self.killed, children.first_mut()) else {
            return false;
        };
        let killed = Killed { at: ledger::now() };
        if child.kill().is_err() {
            return false;
        }
        self.killed = Some(killed);
        true
    }

    /// Who was killed.
    pub(crate) fn killed(&self) -> Option<Killed> {
        self.killed
    }

    /// Ends all workers and waits for them.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        match &mut self.members {
            Members::Embedded(worker) => {
                worker.shutdown();
                worker.join().await?;
            }
            Members::Processes(children) => {
                for child in children.iter() {
                    terminate(child).await;
                }
                for child in children {
                    tokio::task::block_in_place(|| child.wait())?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Crew {
    /// A demo that fails leaves no processes behind.
    fn drop(&mut self) {
        if let Members::Processes(children) = &mut self.members {
            for child in children {
                if let Err(error) = child.kill().and_then(|()| child.wait()) {
                    tracing::debug!(%error, "a worker process was gone already");
                }
            }
        }
    }
}

/// SIGTERM, so that the worker drains. The standard library only knows SIGKILL.
async fn terminate(child: &Child) {
    let sent = tokio::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    if !matches!(
        tokio::time::timeout(Duration::from_secs(5), sent).await,
        Ok(Ok(_))
    ) {
        tracing::debug!(process = child.id(), "no SIGTERM could be sent");
    }
}
