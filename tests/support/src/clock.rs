use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use tempfile::TempDir;

use crate::RedisServer;

const INSTALL: &str = "the clock of the test's server cannot be set; install libfaketime (Debian, Ubuntu: \
    `apt-get install faketime`) and run the tests again";

/// The clock of a [`RedisServer`] that stands still until the test moves it. Copies move together.
#[derive(Debug, Clone)]
pub struct ServerClock(Arc<Hands>);

#[derive(Debug)]
struct Hands {
    dir: TempDir,
    millis: AtomicI64,
}

impl ServerClock {
    /// The server's time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.0.millis.load(Ordering::SeqCst)
    }

    /// Moves the clock by so many milliseconds, backwards too; the server sees it at its next look.
    ///
    /// # Panics
    /// When the file that the server looks at cannot be written.
    pub fn step(&self, millis: i64) {
        let now = self.0.millis.fetch_add(millis, Ordering::SeqCst) + millis;
        set(self.0.dir.path(), now);
    }
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk, with a clock that stands at this time (milliseconds since the Unix
    /// epoch) until it is moved. Only its wall clock: timeouts of connections and background work go on.
    ///
    /// # Panics
    /// When there is no libfaketime, and as [`RedisServer::start`].
    #[must_use]
    pub fn with_faketime(start: i64) -> (Self, ServerClock) {
        let dir = TempDir::new().expect("a temporary directory");
        set(dir.path(), start);
        let file = stamp(dir.path()).to_string_lossy().into_owned();
        let env = [
            // The C library comes second, and so before the server's own allocator, which would look at the clock
            // before libfaketime is ready for it.
            (
                "LD_PRELOAD",
                "/usr/$LIB/faketime/libfaketime.so.1:libc.so.6",
            ),
            ("FAKETIME_TIMESTAMP_FILE", file.as_str()),
            ("FAKETIME_FMT", "%s"),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let args = ["--save", "", "--appendonly", "no"];
        let server = Self::with_environment(args, env);
        let (seconds, micros): (i64, i64) = server.run(&["TIME"]);
        assert_eq!(seconds * 1000 + micros / 1000, start, "{INSTALL}");
        let millis = AtomicI64::new(start);
        (server, ServerClock(Arc::new(Hands { dir, millis })))
    }
}

fn stamp(dir: &Path) -> PathBuf {
    dir.join("now")
}

/// Half a millisecond more than asked for, so that no rounding takes one away. Renamed into place: a half-written time is
/// never seen.
fn set(dir: &Path, millis: i64) {
    let next = dir.join("next");
    let (seconds, rest) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    fs::write(&next, format!("{seconds}.{rest:03}5\n"))
        .expect("write the time of the test's server");
    fs::rename(&next, stamp(dir)).expect("set the time of the test's server");
}
