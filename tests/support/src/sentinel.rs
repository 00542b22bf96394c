use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    RedisServer,
    server::{answers, free_port},
};

/// A Sentinel in front of one master, which it knows as [`RedisSentinel::MASTER`]. Killed when dropped.
#[derive(Debug)]
pub struct RedisSentinel {
    port: u16,
    child: Child,
    _dir: TempDir,
}

impl RedisSentinel {
    /// The name of the master.
    pub const MASTER: &'static str = "orders";

    /// Starts a Sentinel that lets in this user with this password and nobody else, and that logs in at the master with
    /// the second pair.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn start(master: &RedisServer, own: (&str, &str), at_master: (&str, &str)) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let port = free_port();
        let name = Self::MASTER;
        let config = format!(
            "bind 127.0.0.1\nport {port}\ndir {dir}\n\
             sentinel monitor {name} 127.0.0.1 {master} 1\n\
             sentinel auth-user {name} {at_user}\nsentinel auth-pass {name} {at_password}\n\
             user default off\nuser {user} on >{password} allkeys allchannels +@all\n",
            dir = dir.path().display(),
            master = master.port(),
            at_user = at_master.0,
            at_password = at_master.1,
            user = own.0,
            password = own.1,
        );
        let file = dir.path().join("sentinel.conf");
        fs::write(&file, config).expect("the configuration of a Sentinel");
        let child = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a Sentinel");
        let sentinel = Self {
            port,
            child,
            _dir: dir,
        };
        for _ in 0..600 {
            if answers(port) {
                return sentinel;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the Sentinel did not come up");
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for RedisSentinel {
    fn drop(&mut self) {
        if self.child.kill().is_ok() && self.child.wait().is_err() {
            eprintln!("the test's Sentinel on port {} may still run", self.port);
        }
    }
}
