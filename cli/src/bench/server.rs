//! A redis-server of a benchmark's own.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tempfile::TempDir;

const INSTALL: &str = "`redis-server` cannot be started; install it (Debian, Ubuntu: `apt-get install redis-server`; \
    macOS: `brew install redis`), or give the address of a Redis with --redis";
/// How often a new server is looked at, and how long at most.
const LOOKS: u32 = 1000;
const LOOK: Duration = Duration::from_millis(10);

/// What a server keeps on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// Nothing.
    None,
    /// An append-only file, synced once a second.
    EverySecond,
    /// An append-only file, synced before a write is answered.
    Always,
}

impl Persistence {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::None => &["--appendonly", "no"],
            Self::EverySecond => &["--appendonly", "yes", "--appendfsync", "everysec"],
            Self::Always => &["--appendonly", "yes", "--appendfsync", "always"],
        }
    }
}

/// A running server on a free port of the loopback interface, with a directory of its own. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    child: Child,
    _dir: TempDir,
}

impl Server {
    /// Starts one and waits until it answers.
    pub(crate) async fn start(
        persistence: Persistence,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        // Another process may take the port before the server does: then it ends at once, and another port is tried.
        for _ in 0..10 {
            let dir = tempfile::tempdir().context("a directory for a redis-server")?;
            let port = free_port()?;
            let child = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
                .args(["--save", ""])
                .args(persistence.arguments())
                .args(arguments)
                .arg("--dir")
                .arg(dir.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .context(INSTALL)?;
            let mut server = Self {
                port,
                child,
                _dir: dir,
            };
            if server.comes_up().await? {
                return Ok(server);
            }
        }
        bail!("no redis-server came up; `redis-server --port 0` may say why");
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    async fn comes_up(&mut self) -> anyhow::Result<bool> {
        for _ in 0..LOOKS {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if answers(&self.url()).await {
                return Ok(true);
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            tracing::debug!(%error, port = self.port, "a redis-server was gone already");
        }
    }
}

async fn answers(url: &str) -> bool {
    let Ok(mut connection) = super::stats::connect(url).await else {
        return false;
    };
    redis::cmd("PING").exec_async(&mut connection).await.is_ok()
}

/// A port that nobody listens on just now, low enough for the cluster bus 10000 above it.
fn free_port() -> anyhow::Result<u16> {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a free port")?;
        let port = listener.local_addr()?.port();
        if port < 55_000 {
            return Ok(port);
        }
    }
}
