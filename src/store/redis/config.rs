//! Addresses and settings.

use std::{fmt, num::NonZeroU16, time::Duration};

use super::{
    RedisStore,
    address::{Access, cluster_urls, shown},
    connection::Server,
};
use crate::{error::StoreError, ids::Namespace};

/// What a call may take at least and at most before it counts as unanswered.
const RESPONSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Payloads may not be larger than what a Redis string can hold.
const LARGEST: usize = 512 * 1024 * 1024;

/// What a store is connected with.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) namespace: Namespace,
    pub(super) partitions: NonZeroU16,
    pub(super) max_payload: usize,
    pub(super) response_timeout: Duration,
    /// The address without user and password.
    pub(super) shown: String,
    pub(super) cluster: bool,
}

/// Where the server is. Addresses may hold passwords and are never shown as they are.
#[derive(Clone)]
enum Target {
    One(String),
    Cluster(Vec<String>),
    Sentinel {
        master: String,
        sentinels: Vec<String>,
        data: Option<String>,
    },
}

/// Makes a [`RedisStore`]; from [`RedisStore::builder`].
#[derive(Clone)]
pub struct RedisStoreBuilder {
    target: Target,
    access: Access,
    namespace: Namespace,
    partitions: Option<u16>,
    max_payload: usize,
    response_timeout: Duration,
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("server", &self.target.shown())
            .field("namespace", &self.namespace)
            .field("partitions", &self.partitions)
            .field("max_payload", &self.max_payload)
            .field("response_timeout", &self.response_timeout)
            .finish()
    }
}

impl RedisStoreBuilder {
    pub(super) fn new(url: &str) -> Self {
        let target = match url.split_once("://") {
            Some((scheme @ ("redis+cluster" | "rediss+cluster"), rest)) => {
                Target::Cluster(cluster_urls(scheme, rest))
            }
            _ => Target::One(url.to_owned()),
        };
        Self {
            target,
            access: Access::default(),
            namespace: Namespace::default(),
            partitions: None,
            max_payload: 16 * 1024 * 1024,
            response_timeout: Duration::from_secs(3),
        }
    }

    /// The prefix of all keys. Default: `tenure`.
    #[must_use]
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// How many partitions the namespace has; on a cluster each may live on another node. It is written when the
    /// namespace is first used and cannot be changed afterwards: another number is an error at connect.
    /// Default: what is stored, or 1 for a new namespace.
    #[must_use]
    pub fn partitions(mut self, partitions: u16) -> Self {
        self.partitions = Some(partitions);
        self
    }

    /// The largest input or output in bytes; larger ones are refused before they are sent. Default: 16 MiB.
    #[must_use]
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// How long a call may go unanswered, from 100 ms to 60 s; calls with large payloads get ten times as long.
    /// Default: 3 s.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Connects to a Redis Cluster through some of its nodes, given as `redis://` addresses; user and password are
    /// those of the first. The same as an address `redis+cluster://host:port,host:port`.
    #[must_use]
    pub fn cluster(mut self, nodes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.target = Target::Cluster(nodes.into_iter().map(Into::into).collect());
        self
    }

    /// Connects to the master of this name that Sentinels know, given as `redis://` addresses. User and password of the
    /// data nodes are those of the address that the builder was made with, which names no server then, and which is
    /// `rediss://` where data nodes are to be spoken to in encrypted form. User and password of the Sentinels are those
    /// of the first of their addresses. The user of the data needs the command `ROLE` too, by which a new connection makes
    /// sure that it has the master.
    #[must_use]
    pub fn sentinel(
        mut self,
        master: impl Into<String>,
        sentinels: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let data = match self.target {
            Target::One(url) => Some(url),
            Target::Cluster(_) => None,
            Target::Sentinel { data, .. } => data,
        };
        self.target = Target::Sentinel {
            master: master.into(),
            sentinels: sentinels.into_iter().map(Into::into).collect(),
            data,
        };
        self
    }

    /// The user of the data, instead of the one in the address. Sentinels have logins of their own. Default: that of the
    /// address, or else the server's user `default`.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.access.user = Some(user.into());
        self
    }

    /// The password of the data, instead of the one in the address, as it is: nothing in it needs to be escaped. It is
    /// shown nowhere. Default: that of the address, or else none.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.access.password = Some(password.into());
        self
    }

    /// Whom to believe in encrypted connections: certificates of authorities, in PEM. For Sentinels and data.
    /// Default: the system's.
    ///
    /// [`RedisStoreBuilder::connect`] refuses what cannot be read as [`StoreError::Certificate`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls_ca(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.access.certificates.ca = Some(pem.into());
        self
    }

    /// What to show a server that asks for a certificate: the chain, and its key, in PEM. For Sentinels and data.
    /// Default: nothing.
    ///
    /// [`RedisStoreBuilder::connect`] refuses what cannot be read as [`StoreError::Certificate`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls_client(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.access.certificates.client = Some((certificate.into(), key.into()));
        self
    }

    /// Connects, and checks that the server can hold Tenure's data: its version, the rights of the user (by touching
    /// every kind of key and channel), the number of partitions. Warns in the log, in a sentence each, when its
    /// settings can lose data.
    ///
    /// # Errors
    /// [`StoreError::Address`], [`StoreError::Certificate`], [`StoreError::Request`], [`StoreError::Unavailable`],
    /// [`StoreError::Login`], [`StoreError::Right`], [`StoreError::Unsuitable`], [`StoreError::Partitions`].
    ///
    /// Dropping the future leaves at most the number of partitions written.
    pub async fn connect(self) -> Result<RedisStore, StoreError> {
        RedisStore::open(self).await
    }

    pub(super) fn asked_partitions(&self) -> Result<Option<NonZeroU16>, StoreError> {
        let check = |asked: u16| {
            NonZeroU16::new(asked)
                .filter(|count| count.get() <= 1024)
                .ok_or_else(|| StoreError::Request {
                    what: "the number of partitions",
                    allowed: "from 1 to 1024".to_owned(),
                    given: asked.to_string(),
                })
        };
        self.partitions.map(check).transpose()
    }

    pub(super) fn settings(&self, partitions: NonZeroU16) -> Result<Settings, StoreError> {
        if !(RESPONSE.0..=RESPONSE.1).contains(&self.response_timeout) {
            return Err(StoreError::Request {
                what: "the response timeout",
                allowed: format!("from {:?} to {:?}", RESPONSE.0, RESPONSE.1),
                given: format!("{:?}", self.response_timeout),
            });
        }
        if !(1..=LARGEST).contains(&self.max_payload) {
            return Err(StoreError::Request {
                what: "the largest payload",
                allowed: format!("from 1 to {LARGEST} bytes"),
                given: self.max_payload.to_string(),
            });
        }
        Ok(Settings {
            namespace: self.namespace.clone(),
            partitions,
            max_payload: self.max_payload,
            response_timeout: self.response_timeout,
            shown: self.target.shown(),
            cluster: matches!(self.target, Target::Cluster(_)),
        })
    }

    pub(super) fn server(&self) -> Result<Server, StoreError> {
        let timeout = self.response_timeout;
        match &self.target {
            Target::One(url) => self.access.one(url, timeout),
            Target::Cluster(urls) => self.access.cluster(urls, timeout),
            Target::Sentinel {
                master,
                sentinels,
                data,
            } => {
                let data = data.as_deref().unwrap_or("redis://data");
                self.access.sentinel(master, sentinels, data, timeout)
            }
        }
    }
}

impl Target {
    fn shown(&self) -> String {
        let all = |urls: &[String]| {
            urls.iter()
                .map(|url| shown(url))
                .collect::<Vec<_>>()
                .join(",")
        };
        match self {
            Self::One(url) => shown(url),
            Self::Cluster(urls) => all(urls),
            Self::Sentinel {
                master, sentinels, ..
            } => format!("{master} by {}", all(sentinels)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_an_address_shows_its_password() {
        for url in [
            "redis://user:s3cret@host:6379/0",
            "redis://:s3cret@host",
            "redis+unix:///run/redis.sock?user=u&pass=s3cret",
            "redis+unix:///run/redis.sock?user=u&pass=at@s3cret",
            "redis://user:a?b/s3cret@host",
            "redis+cluster://u:s3cret@a:1,b:2",
            "http://user:s3cret@host",
            "user:s3cret@host",
        ] {
            let builder = RedisStoreBuilder::new(url);
            let said = format!("{builder:?} {:?}", builder.server().err());
            assert!(!said.contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn a_cluster_address_names_several_nodes() {
        let urls = cluster_urls("redis+cluster", "u:p@a:1, b:2");
        assert_eq!(urls, ["redis://u:p@a:1", "redis://u:p@b:2"]);
    }

    #[test]
    fn absurd_settings_are_refused_with_what_is_allowed() {
        let builder = RedisStore::builder("redis://h");
        let one = NonZeroU16::MIN;
        let timeout = builder
            .clone()
            .response_timeout(Duration::ZERO)
            .settings(one);
        assert!(matches!(timeout, Err(StoreError::Request { .. })));
        let payload = builder.clone().max_payload(0).settings(one);
        assert!(matches!(payload, Err(StoreError::Request { .. })));
        assert!(builder.clone().partitions(0).asked_partitions().is_err());
        assert!(builder.settings(one).is_ok());
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn an_encrypted_address_names_the_feature_that_is_missing() {
        let error = RedisStore::builder("rediss://host").server().err();
        assert!(error.is_some_and(|e| e.to_string().contains("feature `tls`")));
    }
}
