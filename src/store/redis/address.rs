//! Addresses: what they may look like, and what they lead to. They may hold passwords and are never shown whole.

use std::{fmt, time::Duration};

use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsMode,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
    sentinel::{SentinelClientBuilder, SentinelServerType},
};

use super::{
    connection::{Server, cluster_client},
    tls::Certificates,
};
use crate::error::StoreError;

/// An address without user, password and parameters.
pub(super) fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
    let rest = rest.trim_start_matches("//");
    // The address of a socket has its password among the parameters, where an `@` may stand too; in all others it stands
    // in front of the last `@`, and may hold whatever ends an address.
    let rest = match rest.split_once('?') {
        Some((path, _)) if scheme.ends_with("unix") => path,
        _ => rest,
    };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    if scheme.is_empty() {
        return rest.to_owned();
    }
    format!("{scheme}://{rest}")
}

fn address(url: &str, reason: impl fmt::Display) -> StoreError {
    StoreError::Address {
        url: shown(url),
        reason: reason.to_string(),
    }
}

pub(super) fn cluster_urls(scheme: &str, rest: &str) -> Vec<String> {
    let scheme = scheme.trim_end_matches("+cluster");
    let (login, hosts) = rest
        .rsplit_once('@')
        .map_or((String::new(), rest), |(login, hosts)| {
            (format!("{login}@"), hosts)
        });
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{login}{}", host.trim()))
        .collect()
}

/// What all addresses of a store have in common.
#[derive(Clone, Default)]
pub(super) struct Access {
    /// Instead of what the address of the data says.
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) certificates: Certificates,
}

impl Access {
    fn info(&self, url: &str, timeout: Duration) -> Result<ConnectionInfo, StoreError> {
        let info = info(url, timeout)?;
        match info.addr() {
            ConnectionAddr::TcpTls { .. } => {
                let with = self.certificates.put_into(info);
                with.map_err(|e| address(url, e))
            }
            _ => Ok(info),
        }
    }

    /// Of an address where data is.
    fn data(&self, url: &str, timeout: Duration) -> Result<ConnectionInfo, StoreError> {
        let info = self.info(url, timeout)?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        Ok(info.set_redis_settings(settings))
    }

    /// Refuses certificates for an address that is not encrypted: that would send everything in the open.
    fn check(&self, url: &str, addr: &ConnectionAddr) -> Result<(), StoreError> {
        if self.certificates.are_given() && !matches!(addr, ConnectionAddr::TcpTls { .. }) {
            return Err(address(
                url,
                "certificates are given, and it is not encrypted; begin it with rediss://",
            ));
        }
        Ok(())
    }

    pub(super) fn one(&self, url: &str, timeout: Duration) -> Result<Server, StoreError> {
        self.certificates.check()?;
        let info = self.data(url, timeout)?;
        self.check(url, info.addr())?;
        Client::open(info)
            .map(Server::One)
            .map_err(|e| address(url, e))
    }

    pub(super) fn cluster(&self, urls: &[String], timeout: Duration) -> Result<Server, StoreError> {
        let Some(first) = urls.first() else {
            return Err(address("redis+cluster:", "no node is named"));
        };
        self.certificates.check()?;
        let nodes = urls
            .iter()
            .map(|url| self.data(url, timeout))
            .collect::<Result<Vec<_>, _>>()?;
        for (url, node) in urls.iter().zip(&nodes) {
            self.check(url, node.addr())?;
        }
        // Here and not with the first connection, so that an address that cannot be used says so by name.
        cluster_client(&nodes, timeout, &self.certificates)
            .build()
            .map_err(|e| address(first, e))?;
        Ok(Server::Cluster {
            nodes,
            timeout,
            certificates: self.certificates.clone(),
        })
    }

    pub(super) fn sentinel(
        &self,
        master: &str,
        sentinels: &[String],
        data: &str,
        timeout: Duration,
    ) -> Result<Server, StoreError> {
        self.certificates.check()?;
        let nodes = sentinels
            .iter()
            .map(|url| self.info(url, timeout))
            .collect::<Result<Vec<_>, _>>()?;
        let Some(first) = nodes.first() else {
            return Err(address("redis:", "no sentinel is named"));
        };
        let addresses: Vec<ConnectionAddr> = nodes.iter().map(|node| node.addr().clone()).collect();
        let refused = |e| address(sentinels.first().map_or("", String::as_str), e);
        let mut builder = SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)
            .map_err(refused)?
            .set_client_to_sentinel_tcp_settings(first.tcp_settings().clone());
        let login = first.redis_settings();
        if let Some(user) = login.username() {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_sentinel_password(password);
        }
        let data = self.data(data, timeout)?;
        let client = self.master(builder, &data).build().map_err(refused)?;
        Ok(Server::Sentinel(tokio::sync::Mutex::new(client)))
    }

    /// How to speak to the master that the Sentinels name.
    fn master(
        &self,
        mut builder: SentinelClientBuilder,
        data: &ConnectionInfo,
    ) -> SentinelClientBuilder {
        let login = data.redis_settings();
        builder = builder.set_client_to_redis_db(login.db());
        if let Some(user) = login.username() {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = login.password() {
            builder = builder.set_client_to_redis_password(password);
        }
        builder = builder.set_client_to_redis_tcp_settings(data.tcp_settings().clone());
        // A sentinel names a master by host and port: whether to encrypt only the address knows.
        if let ConnectionAddr::TcpTls { insecure, .. } = data.addr() {
            builder = builder.set_client_to_redis_tls_mode(if *insecure {
                TlsMode::Insecure
            } else {
                TlsMode::Secure
            });
        }
        self.certificates.of_master(builder, data.addr())
    }
}

fn info(url: &str, timeout: Duration) -> Result<ConnectionInfo, StoreError> {
    let (scheme, _) = url.split_once(':').unwrap_or_default();
    let known = [
        "redis",
        "rediss",
        "valkey",
        "valkeys",
        "unix",
        "redis+unix",
        "valkey+unix",
    ];
    if !known.contains(&scheme) {
        return Err(address(
            url,
            "it must begin with redis://, rediss://, redis+unix:// or redis+cluster://",
        ));
    }
    if matches!(scheme, "rediss" | "valkeys") {
        Certificates::allow().map_err(|e| address(url, e))?;
    }
    let info = url.into_connection_info().map_err(|e| address(url, e))?;
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(
        TcpKeepalive::new()
            .with_time(Duration::from_secs(5))
            .with_interval(Duration::from_secs(2)),
    );
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(timeout * 2);
    Ok(info.set_tcp_settings(tcp))
}
