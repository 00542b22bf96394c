//! From a description to a connection.

use std::path::Path;

use tenure::{Namespace, RedisStore, store::redis::RedisStoreBuilder};

use super::{
    parts::{Parts, Place},
    secret::Secret,
};
use crate::exit::Usage;

/// Whether an address holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoginOf {
    pub(super) user: bool,
    pub(super) password: bool,
}

/// What an address says of who connects.
pub(super) fn login_of(url: &str) -> LoginOf {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme.ends_with("unix") {
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let has = |name: &str| query.split('&').any(|pair| pair.starts_with(name));
        return LoginOf {
            user: has("user="),
            password: has("pass="),
        };
    }
    let login = rest.rsplit_once('@').map_or("", |(login, _)| login);
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    LoginOf {
        user: !user.is_empty(),
        password: !password.is_empty(),
    }
}

/// The address without the parts of its login that are said elsewhere.
pub(super) fn without(url: &str, said: LoginOf) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme.ends_with("unix") {
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let goes = |pair: &str| {
            (said.user && pair.starts_with("user=")) || (said.password && pair.starts_with("pass="))
        };
        let stays: Vec<&str> = query.split('&').filter(|pair| !goes(pair)).collect();
        return format!("{scheme}://{path}?{}", stays.join("&"));
    }
    let Some((login, place)) = rest.rsplit_once('@') else {
        return url.to_owned();
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    match (user, password) {
        ("", _) if said.password => format!("{scheme}://{place}"),
        (_, "") if said.user => format!("{scheme}://{place}"),
        _ if said.user && said.password => format!("{scheme}://{place}"),
        _ if said.user => format!("{scheme}://:{password}@{place}"),
        _ if said.password => format!("{scheme}://{user}@{place}"),
        _ => url.to_owned(),
    }
}

pub(super) fn namespace(parts: &Parts) -> anyhow::Result<Namespace> {
    match &parts.namespace {
        None => Ok(Namespace::default()),
        Some(name) => Namespace::new(name.as_str())
            .map_err(|e| Usage::new(format!("the namespace: {e}")).into()),
    }
}

/// What connects.
pub(super) fn builder(parts: &Parts) -> anyhow::Result<RedisStoreBuilder> {
    let mut builder = place(parts)?.namespace(namespace(parts)?);
    if let Some(user) = &parts.user {
        builder = builder.user(user);
    }
    if let Some(password) = password(parts.password.as_ref(), parts.password_file.as_deref())? {
        builder = builder.password(password.reveal());
    }
    Ok(certificates(builder, parts)?)
}

fn place(parts: &Parts) -> anyhow::Result<RedisStoreBuilder> {
    let scheme = if is_encrypted(parts) {
        "rediss"
    } else {
        "redis"
    };
    let db = parts.db.map_or_else(String::new, |db| format!("/{db}"));
    Ok(match parts.place() {
        None => {
            return Err(Usage::new(
                "which Redis? Give --redis URL or --host HOST, or set TENURE_REDIS_URL (--help names all ways)",
            )
            .into());
        }
        Some(Place::Address) => {
            RedisStore::builder(parts.redis.as_ref().map_or("", Secret::reveal))
        }
        Some(Place::Host) => {
            let host = parts.host.as_deref().unwrap_or("127.0.0.1");
            let port = parts.port.unwrap_or(6379);
            RedisStore::builder(format!("{scheme}://{}:{port}{db}", bracketed(host)))
        }
        Some(Place::Socket) => {
            let path = parts.socket.as_deref().unwrap_or(Path::new(""));
            let path = std::path::absolute(path)?;
            let db = parts.db.map_or_else(String::new, |db| format!("?db={db}"));
            let path = path.to_string_lossy();
            let path: Vec<String> = path.split('/').map(escaped).collect();
            RedisStore::builder(format!("redis+unix://{}{db}", path.join("/")))
        }
        Some(Place::Cluster) => {
            let nodes = nodes("--cluster", parts.cluster.as_deref(), 6379)?;
            let urls = nodes.into_iter().map(|node| format!("{scheme}://{node}"));
            RedisStore::builder("").cluster(urls)
        }
        Some(Place::Sentinel) => sentinel(parts, scheme, &db)?,
    })
}

fn sentinel(parts: &Parts, scheme: &str, db: &str) -> Result<RedisStoreBuilder, Usage> {
    let password = password(
        parts.sentinel_password.as_ref(),
        parts.sentinel_password_file.as_deref(),
    )?;
    let user = parts.sentinel_user.as_deref().unwrap_or_default();
    let login = match &password {
        Some(password) => format!("{}:{}@", escaped(user), escaped(password.reveal())),
        None if user.is_empty() => String::new(),
        None => format!("{}@", escaped(user)),
    };
    let nodes = nodes("--sentinel", parts.sentinel.as_deref(), 26379)?;
    let urls = nodes
        .into_iter()
        .map(|node| format!("{scheme}://{login}{node}"));
    let master = parts.sentinel_master.as_deref().unwrap_or_default();
    // The Sentinels name the host; the rest of this address is what counts.
    Ok(RedisStore::builder(format!("{scheme}://data{db}")).sentinel(master, urls))
}

/// Certificates ask for encryption by being there.
fn is_encrypted(parts: &Parts) -> bool {
    parts
        .tls
        .unwrap_or(parts.tls_ca.is_some() || parts.tls_cert.is_some())
}

#[cfg(feature = "tls")]
fn certificates(mut builder: RedisStoreBuilder, parts: &Parts) -> Result<RedisStoreBuilder, Usage> {
    if let Some(ca) = &parts.tls_ca {
        builder = builder.tls_ca(read("the CA certificate", ca)?);
    }
    if let (Some(certificate), Some(key)) = (&parts.tls_cert, &parts.tls_key) {
        let certificate = read("the client certificate", certificate)?;
        builder = builder.tls_client(certificate, read("the client key", key)?);
    }
    Ok(builder)
}

#[cfg(not(feature = "tls"))]
fn certificates(builder: RedisStoreBuilder, parts: &Parts) -> Result<RedisStoreBuilder, Usage> {
    if parts.tls_ca.is_some() || parts.tls_cert.is_some() {
        return Err(Usage::new(
            "this program was built without the feature `tls` and cannot use certificates",
        ));
    }
    Ok(builder)
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, Usage> {
    std::fs::read(path).map_err(|e| {
        Usage::new(format!(
            "{what} cannot be read from {}: {e}",
            path.display()
        ))
    })
}

/// A password that was given, or the first line of the file that holds it.
fn password(given: Option<&Secret>, file: Option<&Path>) -> Result<Option<Secret>, Usage> {
    let Some(path) = file else {
        return Ok(given.cloned());
    };
    let wrong = |what: &str| {
        Usage::new(format!(
            "the password cannot be read from {}: {what}",
            path.display()
        ))
    };
    let text = read("the password", path)?;
    // What is wrong with the text says nothing of it.
    let text = String::from_utf8(text).map_err(|_| wrong("it is no UTF-8 text"))?;
    match text.lines().next() {
        None | Some("") => Err(wrong("its first line is empty")),
        Some(line) => Ok(Some(line.to_owned().into())),
    }
}

/// The hosts of a list, each with a port.
fn nodes(option: &str, list: Option<&str>, port: u16) -> Result<Vec<String>, Usage> {
    let names = list.unwrap_or_default().split(',').map(str::trim);
    names
        .map(|node| match node.rsplit_once(':') {
            _ if node.is_empty() || node.contains(['/', '@']) => Err(Usage::new(format!(
                "{option} takes hosts and ports, such as 10.0.0.1:{port},10.0.0.2:{port}; \
                 user and password have options of their own"
            ))),
            Some((host, _)) if !host.contains(':') || host.ends_with(']') => Ok(node.to_owned()),
            _ if node.ends_with(']') => Ok(format!("{node}:{port}")),
            _ => Ok(format!("{}:{port}", bracketed(node))),
        })
        .collect()
}

/// A host as an address holds it.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// A text within an address: all but the plainest bytes by their numbers.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
