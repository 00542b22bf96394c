//! What the figures depend on.

use std::{fmt, num::NonZeroUsize};

use serde::Serialize;

use super::{
    place::Place,
    stats::{section, text},
};

/// What the figures depend on.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    /// `release` or `debug`.
    build: &'static str,
    version: &'static str,
    /// Threads of the client and of each worker process.
    threads: NonZeroUsize,
    cores: usize,
    os: &'static str,
    architecture: &'static str,
    redis: String,
    /// How many processes wanted a core on average over the last minute, before the first load; absent where the system
    /// does not say. What else runs makes every figure worse.
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<f64>,
}

impl Machine {
    pub(crate) async fn of(place: &Place, threads: NonZeroUsize) -> anyhow::Result<Self> {
        let mut redis = String::from("unknown");
        if let Some(node) = place.nodes.first() {
            let server = section(&mut node.clone(), "server").await?;
            if let Some(version) = text(&server, "redis_version") {
                version.clone_into(&mut redis);
            }
        }
        Ok(Self {
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
            version: env!("CARGO_PKG_VERSION"),
            threads,
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            os: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            redis,
            busy: load_average(),
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = match self.threads.get() {
            1 => String::from("1 thread"),
            several => format!("{several} threads"),
        };
        write!(
            f,
            "Tenure {} ({} build, {threads}), Redis {}, {} cores, {} {}",
            self.version, self.build, self.redis, self.cores, self.os, self.architecture
        )?;
        match self.busy {
            Some(busy) => write!(f, ", load {busy} before"),
            None => Ok(()),
        }
    }
}

fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}
