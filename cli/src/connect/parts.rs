//! What can be said about a connection, wherever it is said.

use std::path::PathBuf;

use serde::Deserialize;

use super::secret::Secret;

/// All of it, each part given or not: by options, by variables of the environment, by keys of the configuration file.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Parts {
    /// Address of the Redis, such as redis://host:6379, rediss://host (encrypted), redis+unix:///path or
    /// redis+cluster://host:port,host:port [env: TENURE_REDIS_URL]
    #[arg(long, value_name = "URL", help_heading = "Connection")]
    pub(super) redis: Option<Secret>,
    /// Prefix of all keys [default: tenure] [env: TENURE_NAMESPACE]
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub(super) namespace: Option<String>,
    /// Instead of an address: the host [default: 127.0.0.1] [env: TENURE_REDIS_HOST]
    #[arg(
        long,
        value_name = "HOST",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) host: Option<String>,
    /// and its port [default: 6379] [env: TENURE_REDIS_PORT]
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) port: Option<u16>,
    /// Instead of an address: a unix socket [env: TENURE_REDIS_SOCKET]
    #[arg(
        long,
        value_name = "PATH",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) socket: Option<PathBuf>,
    /// Instead of an address: some nodes of a cluster [env: TENURE_REDIS_CLUSTER]
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) cluster: Option<String>,
    /// Instead of an address: some Sentinels [env: TENURE_REDIS_SENTINEL]
    #[arg(
        long,
        value_name = "HOST:PORT,…",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) sentinel: Option<String>,
    /// The name by which the Sentinels know the master [env: TENURE_REDIS_SENTINEL_MASTER]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) sentinel_master: Option<String>,
    /// The user of the Sentinels, which have their own [env: TENURE_REDIS_SENTINEL_USER]
    #[arg(
        long,
        value_name = "USER",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) sentinel_user: Option<String>,
    /// The password of the Sentinels, in a file [env: TENURE_REDIS_SENTINEL_PASSWORD_FILE; the password itself:
    /// TENURE_REDIS_SENTINEL_PASSWORD]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) sentinel_password_file: Option<PathBuf>,
    /// The user [env: TENURE_REDIS_USER]
    #[arg(
        long,
        value_name = "USER",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) user: Option<String>,
    /// The password, in a file [env: TENURE_REDIS_PASSWORD_FILE; the password itself: TENURE_REDIS_PASSWORD]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) password_file: Option<PathBuf>,
    /// The number of the database [default: 0] [env: TENURE_REDIS_DB]
    #[arg(
        long,
        value_name = "NUMBER",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) db: Option<u32>,
    /// Encrypt, with Sentinels too [env: TENURE_REDIS_TLS]
    #[arg(
        long,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) tls: Option<bool>,
    /// Whom to believe: certificates of authorities, in PEM [default: the system's] [env: TENURE_REDIS_TLS_CA]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) tls_ca: Option<PathBuf>,
    /// What to show a Redis that asks for a certificate, in PEM [env: TENURE_REDIS_TLS_CERT]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) tls_cert: Option<PathBuf>,
    /// and its key, in PEM [env: TENURE_REDIS_TLS_KEY]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Connection",
        hide_short_help = true
    )]
    pub(super) tls_key: Option<PathBuf>,
    /// By the environment alone: an option is in the list of processes.
    #[arg(skip)]
    #[serde(skip)]
    pub(super) password: Option<Secret>,
    #[arg(skip)]
    #[serde(skip)]
    pub(super) sentinel_password: Option<Secret>,
}

/// The ways to say where Redis is, of which one is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Address,
    Host,
    Socket,
    Cluster,
    Sentinel,
}

/// Every part, and which place it belongs to, if it names one.
pub(super) const FIELDS: [(&str, Option<Place>); 19] = [
    ("redis", Some(Place::Address)),
    ("host", Some(Place::Host)),
    ("port", Some(Place::Host)),
    ("socket", Some(Place::Socket)),
    ("cluster", Some(Place::Cluster)),
    ("sentinel", Some(Place::Sentinel)),
    ("sentinel-master", Some(Place::Sentinel)),
    ("sentinel-user", None),
    ("sentinel-password-file", None),
    ("sentinel-password", None),
    ("user", None),
    ("password-file", None),
    ("password", None),
    ("db", None),
    ("tls", None),
    ("tls-ca", None),
    ("tls-cert", None),
    ("tls-key", None),
    ("namespace", None),
];

/// The variable of the environment.
pub(super) fn variable(field: &str) -> String {
    match field {
        "redis" => "TENURE_REDIS_URL".to_owned(),
        "namespace" => "TENURE_NAMESPACE".to_owned(),
        other => format!("TENURE_REDIS_{}", other.to_uppercase().replace('-', "_")),
    }
}

impl Parts {
    /// Where it says that Redis is: the first way, if it says several.
    pub(super) fn place(&self) -> Option<Place> {
        let given = self.given();
        FIELDS.into_iter().find_map(|(field, place)| {
            let is_given = given.iter().any(|(name, _)| *name == field);
            place.filter(|_| is_given)
        })
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.given().iter().any(|(name, _)| *name == field)
    }

    /// What is given, as the environment holds it. It may hold passwords.
    pub(super) fn given(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.to_string_lossy().into_owned());
        let secret = |secret: &Option<Secret>| secret.as_ref().map(|s| s.reveal().to_owned());
        FIELDS
            .into_iter()
            .filter_map(|(field, _)| {
                let value = match field {
                    "redis" => secret(&self.redis),
                    "host" => self.host.clone(),
                    "port" => self.port.map(|port| port.to_string()),
                    "socket" => path(&self.socket),
                    "cluster" => self.cluster.clone(),
                    "sentinel" => self.sentinel.clone(),
                    "sentinel-master" => self.sentinel_master.clone(),
                    "sentinel-user" => self.sentinel_user.clone(),
                    "sentinel-password-file" => path(&self.sentinel_password_file),
                    "sentinel-password" => secret(&self.sentinel_password),
                    "user" => self.user.clone(),
                    "password-file" => path(&self.password_file),
                    "password" => secret(&self.password),
                    "db" => self.db.map(|db| db.to_string()),
                    "tls" => self.tls.map(|tls| tls.to_string()),
                    "tls-ca" => path(&self.tls_ca),
                    "tls-cert" => path(&self.tls_cert),
                    "tls-key" => path(&self.tls_key),
                    "namespace" => self.namespace.clone(),
                    _ => None,
                };
                value.map(|value| (field, value))
            })
            .collect()
    }

    /// Sets one part from a text, or says what it must be.
    pub(super) fn set(&mut self, field: &str, value: String) -> Result<(), &'static str> {
        match field {
            "redis" => self.redis = Some(value.into()),
            "host" => self.host = Some(value),
            "port" => self.port = Some(value.parse().map_err(|_| "a port, from 0 to 65535")?),
            "socket" => self.socket = Some(value.into()),
            "cluster" => self.cluster = Some(value),
            "sentinel" => self.sentinel = Some(value),
            "sentinel-master" => self.sentinel_master = Some(value),
            "sentinel-user" => self.sentinel_user = Some(value),
            "sentinel-password-file" => self.sentinel_password_file = Some(value.into()),
            "sentinel-password" => self.sentinel_password = Some(value.into()),
            "user" => self.user = Some(value),
            "password-file" => self.password_file = Some(value.into()),
            "password" => self.password = Some(value.into()),
            "db" => self.db = Some(value.parse().map_err(|_| "the number of a database")?),
            "tls" => self.tls = Some(value.parse().map_err(|_| "true or false")?),
            "tls-ca" => self.tls_ca = Some(value.into()),
            "tls-cert" => self.tls_cert = Some(value.into()),
            "tls-key" => self.tls_key = Some(value.into()),
            "namespace" => self.namespace = Some(value),
            _ => {}
        }
        Ok(())
    }
}
