use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{RedisServer, server::free_port};

const INSTALL: &str = "certificates for a test cannot be made; install `openssl` (Debian, Ubuntu: `apt-get install \
    openssl`) and run the tests again";

/// What may be in a certificate: an authority signs others, the rest are for one machine.
const KINDS: &str = "[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
[machine]
basicConstraints = CA:FALSE
subjectAltName = IP:127.0.0.1
";

/// An authority, and certificates of a server and of a client that it signed; in files that go when it is dropped.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// Makes all of them.
    ///
    /// # Panics
    /// When there is no `openssl`.
    #[must_use]
    pub fn make() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        fs::write(dir.path().join("kinds"), KINDS).expect("a file");
        openssl(dir.path(), "ca", "authority", &[]);
        for name in ["server", "client"] {
            let signed = ["-CA", "ca.pem", "-CAkey", "ca.key"];
            openssl(dir.path(), name, "machine", &signed);
        }
        Self { dir }
    }

    /// A file: `ca`, `server` or `client`, with the end `pem` or `key`.
    #[must_use]
    pub fn file(&self, name: &str, end: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.{end}"))
    }

    /// What is in it.
    ///
    /// # Panics
    /// When there is no such file.
    #[must_use]
    pub fn pem(&self, name: &str, end: &str) -> Vec<u8> {
        fs::read(self.file(name, end)).expect("a certificate")
    }

    /// Starts a server that speaks TLS on the second value, and only with clients that show a certificate.
    ///
    /// # Panics
    /// As [`RedisServer::start`].
    #[must_use]
    pub fn server(&self) -> (RedisServer, u16) {
        let port = free_port();
        let path = |name, end| self.file(name, end).to_string_lossy().into_owned();
        let server = RedisServer::with([
            "--save".to_owned(),
            String::new(),
            "--tls-port".to_owned(),
            port.to_string(),
            "--tls-cert-file".to_owned(),
            path("server", "pem"),
            "--tls-key-file".to_owned(),
            path("server", "key"),
            "--tls-ca-cert-file".to_owned(),
            path("ca", "pem"),
            "--tls-auth-clients".to_owned(),
            "yes".to_owned(),
        ]);
        (server, port)
    }
}

fn openssl(dir: &Path, name: &str, kind: &str, more: &[&str]) {
    let made = Command::new("openssl")
        .current_dir(dir)
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "30"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-config", "kinds", "-extensions", kind])
        .args(["-subj", &format!("/CN={name}")])
        .args(["-keyout", &format!("{name}.key")])
        .args(["-out", &format!("{name}.pem")])
        .args(more)
        .output()
        .unwrap_or_else(|error| panic!("{INSTALL} ({error})"));
    assert!(made.status.success(), "{INSTALL} ({made:?})");
}
