use std::{
    ffi::OsStr,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use redis::{Connection, FromRedisValue, RedisError, Value};
use tempfile::TempDir;

const INSTALL: &str = "`redis-server` cannot be started; install it (Debian, Ubuntu: `apt-get install redis-server`; \
    macOS: `brew install redis`) and run the tests again";
/// How often something is looked at while it is waited for, and for how long at most.
const LOOKS: u32 = 600;
const LOOK: Duration = Duration::from_millis(10);

/// A `redis-server` of a test. Killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    dir: TempDir,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    ///
    /// # Panics
    /// When there is no `redis-server`, or it does not come up.
    #[must_use]
    pub fn start() -> Self {
        Self::with(["--save", "", "--appendonly", "no"])
    }

    /// Starts a server whose data survives [`RedisServer::restart`].
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    #[must_use]
    pub fn durable() -> Self {
        Self::with([
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
        ])
    }

    /// Starts a server with these arguments behind the address and the directory.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    #[must_use]
    pub fn with(args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::with_environment(args, [("LC_ALL", "C")])
    }

    /// As [`RedisServer::with`], with these environment variables.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    #[must_use]
    pub fn with_environment(
        args: impl IntoIterator<Item = impl Into<String>>,
        environment: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        let environment: Vec<(String, String)> = environment
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        // Another process may take the port before the server does: then it ends at once, and another port is tried.
        for _ in 0..10 {
            let dir = TempDir::new().expect("a temporary directory");
            let port = free_port();
            let child = spawn(port, dir.path(), &args, &environment);
            let mut server = Self {
                port,
                dir,
                args: args.clone(),
                environment: environment.clone(),
                child,
            };
            if server.comes_up() {
                return server;
            }
        }
        panic!("no redis-server came up with {args:?}");
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The address with a user and a password.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// The directory of the server's files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection for looking around.
    ///
    /// # Panics
    /// When the server does not take it.
    #[must_use]
    pub fn connection(&self) -> Connection {
        connect(self.port).expect("a connection to the test's server")
    }

    /// Runs one command.
    ///
    /// # Panics
    /// When it fails, or answers something else than a `T`.
    pub fn run<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_run(words).expect("the command")
    }

    /// Runs one command.
    ///
    /// # Errors
    /// What the server says.
    pub fn try_run<T: FromRedisValue>(&self, words: &[&str]) -> Result<T, RedisError> {
        command(words).query(&mut connect(self.port)?)
    }

    /// A number of `INFO`, such as `used_cpu_sys` or `total_commands_processed`.
    ///
    /// # Panics
    /// When there is no such number.
    #[must_use]
    pub fn info(&self, section: &str, name: &str) -> f64 {
        let text: String = self.run(&["INFO", section]);
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or_else(|| panic!("no number `{name}` in INFO {section}"))
    }

    /// Ends the process at once, as a crash would; its files stay.
    ///
    /// # Panics
    /// When it cannot be ended.
    pub fn stop(&mut self) {
        self.resume();
        self.child.kill().expect("kill the test's server");
        self.child.wait().expect("wait for the test's server");
    }

    /// Starts it again after [`RedisServer::stop`], on the same port and files.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn restart(&mut self) {
        self.child = spawn(self.port, self.dir.path(), &self.args, &self.environment);
        assert!(self.comes_up(), "the server did not come up again");
    }

    /// Stops the process without ending it: connections stay open and nothing answers.
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on after [`RedisServer::freeze`].
    ///
    /// # Panics
    /// When the signal cannot be sent.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("a signal to the test's server");
    }

    fn comes_up(&mut self) -> bool {
        for _ in 0..LOOKS {
            if self
                .child
                .try_wait()
                .expect("the state of a child")
                .is_some()
            {
                return false;
            }
            if answers(self.port) {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have been stopped by the test; a child that is gone cannot be killed, and need not be.
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("the test's server on port {} may still run", self.port);
        }
    }
}

/// A port that nobody listens on just now, low enough for the cluster bus 10000 above it.
pub(crate) fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        if port < 55_000 {
            return port;
        }
    }
}

fn spawn(port: u16, dir: &Path, args: &[String], environment: &[(String, String)]) -> Child {
    let port = port.to_string();
    let fixed: [&OsStr; 8] = [
        "--bind".as_ref(),
        "127.0.0.1".as_ref(),
        "--port".as_ref(),
        port.as_ref(),
        "--dir".as_ref(),
        dir.as_ref(),
        "--enable-debug-command".as_ref(),
        "local".as_ref(),
    ];
    Command::new("redis-server")
        .args(fixed)
        .args(args)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{INSTALL} ({error})"))
}

pub(crate) fn connect(port: u16) -> Result<Connection, RedisError> {
    let client = redis::Client::open(("127.0.0.1", port))?;
    let connection = client.get_connection_with_timeout(Duration::from_secs(5))?;
    connection.set_read_timeout(Some(Duration::from_secs(20)))?;
    Ok(connection)
}

pub(crate) fn command(words: &[&str]) -> redis::Cmd {
    let mut cmd = redis::Cmd::new();
    for word in words {
        cmd.arg(*word);
    }
    cmd
}

/// Whether a server listens and has loaded its data; one that wants a password answers too.
pub(crate) fn answers(port: u16) -> bool {
    let Ok(mut connection) = connect(port) else {
        return false;
    };
    match redis::cmd("PING").query::<Value>(&mut connection) {
        Ok(_) => true,
        Err(error) => error.code() == Some("NOAUTH"),
    }
}
