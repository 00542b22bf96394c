//! Worker processes of a load.

use std::{num::NonZeroUsize, process::Stdio, time::Duration};

use anyhow::{Context, ensure};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
};

use super::{flow::Shape, place::Place};

/// How a worker process works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) shape: Shape,
    pub(crate) concurrency: u64,
    pub(crate) ttl: Duration,
    pub(crate) threads: NonZeroUsize,
    /// Handlers never return.
    pub(crate) hold: bool,
}

/// A worker process; killed when dropped.
pub(crate) struct Member {
    child: Child,
    stdin: ChildStdin,
}

impl Member {
    /// Starts a process, which connects and then waits for [`Member::go`].
    pub(crate) async fn start(place: &Place, work: Work) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("bench-worker")
            .args(["--namespace", place.namespace.as_str()])
            .args(["--shape", &work.shape.to_string()])
            .args(["--concurrency", &work.concurrency.to_string()])
            .args(["--claim-ttl", &format!("{}ms", work.ttl.as_millis())])
            .args(["--threads", &work.threads.to_string()])
            .args(work.hold.then_some("--hold"))
            // The address may hold a password: it goes by the environment, which other users cannot list.
            .env("TENURE_REDIS_URL", &place.url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .context("a worker process could not be started")?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
            anyhow::bail!("a worker process has no pipes");
        };
        let line = BufReader::new(stdout).lines().next_line().await?;
        ensure!(
            line.as_deref() == Some("ready"),
            "a worker process did not come up"
        );
        Ok(Self { child, stdin })
    }

    /// Lets it begin.
    pub(crate) async fn go(&mut self) -> anyhow::Result<()> {
        self.stdin.write_all(b"go\n").await?;
        Ok(self.stdin.flush().await?)
    }

    /// Kills it with SIGKILL and waits for its end.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Tells it to shut down and waits for its end, so that its CPU time counts.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let Self { mut child, stdin } = self;
        drop(stdin);
        let status = child.wait().await?;
        ensure!(status.success(), "a worker process failed: {status}");
        Ok(())
    }
}
