//! Connections: made when needed, shared, and thrown away when they are of no use any more.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use deadpool_redis::{Pool, PoolError, Runtime};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ErrorKind, Pipeline, RedisError,
    RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
    sentinel::SentinelClient,
};
use tokio::time::Instant;

use super::tls::Certificates;

/// How long one attempt to connect may take.
pub(super) const CONNECT: Duration = Duration::from_secs(2);
/// After a failed attempt others fail at once for this long, doubled up to the second value.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Where connections go to.
pub(super) enum Server {
    One(Client),
    Sentinel(tokio::sync::Mutex<SentinelClient>),
    Cluster {
        nodes: Vec<ConnectionInfo>,
        timeout: Duration,
        certificates: Certificates,
    },
}

impl Server {
    async fn connect(&self, timeout: Duration) -> Result<Wire, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(timeout))
            .set_pipeline_buffer_size(1024);
        let connecting = async {
            match self {
                Self::One(client) => client
                    .get_multiplexed_async_connection_with_config(&config)
                    .await
                    .map(Wire::One),
                Self::Sentinel(client) => client
                    .lock()
                    .await
                    .get_async_connection_with_config(&config)
                    .await
                    .map(Wire::One),
                // Not of one client for all: its overall timeout is that of the client, and large calls have another.
                Self::Cluster {
                    nodes,
                    certificates,
                    ..
                } => {
                    let client = cluster_client(nodes, timeout, certificates).build()?;
                    client.get_async_connection().await.map(Wire::Cluster)
                }
            }
        };
        // The crate's own timeout covers the socket, not every step of the handshake.
        match tokio::time::timeout(CONNECT * 2, connecting).await {
            Ok(result) => result,
            Err(_) => Err(RedisError::from(std::io::Error::other(
                "the server did not answer when the connection was made",
            ))),
        }
    }

    /// A plain client of one node, for pub/sub.
    pub(super) async fn node(&self) -> Result<Client, RedisError> {
        match self {
            Self::One(client) => Ok(client.clone()),
            Self::Sentinel(client) => client.lock().await.async_get_client().await,
            // What is published on one node of a cluster is heard on all.
            Self::Cluster { nodes, .. } => {
                let node = fastrand::choice(nodes).ok_or_else(|| {
                    RedisError::from((ErrorKind::InvalidClientConfig, "no node is named"))
                })?;
                Client::open(node.clone())
            }
        }
    }
}

/// A client of a cluster. Its overall timeout is finite: without one a call to a lost node never ends.
pub(super) fn cluster_client(
    nodes: &[ConnectionInfo],
    timeout: Duration,
    certificates: &Certificates,
) -> ClusterClientBuilder {
    let builder = ClusterClient::builder(nodes.to_vec())
        .connection_timeout(CONNECT)
        .response_timeout(timeout)
        .overall_response_timeout(Some(timeout))
        .retries(8)
        .max_retry_wait(200)
        .min_retry_wait(5);
    let builder = certificates.of_cluster(builder);
    match nodes.first() {
        Some(node) => builder.tcp_settings(node.tcp_settings().clone()),
        None => builder,
    }
}

/// One shared connection.
#[derive(Clone)]
pub(super) enum Wire {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(wire) => wire.req_packed_command(cmd),
            Self::Cluster(wire) => wire.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(wire) => wire.req_packed_commands(cmd, offset, count),
            Self::Cluster(wire) => wire.req_packed_commands(cmd, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(wire) => wire.get_db(),
            Self::Cluster(wire) => wire.get_db(),
        }
    }
}

/// A connection that many calls share and that is re-made after it was discarded. Nothing runs in the background: the
/// next call connects, so an idle store of an unreachable server costs nothing.
pub(super) struct Lane {
    timeout: Duration,
    current: Mutex<Current>,
    connecting: tokio::sync::Mutex<()>,
}

struct Current {
    generation: u64,
    wire: Option<Wire>,
    failed: Option<(Instant, Duration, RedisError)>,
}

impl Lane {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            current: Mutex::new(Current {
                generation: 0,
                wire: None,
                failed: None,
            }),
            connecting: tokio::sync::Mutex::new(()),
        }
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Current> {
        // Nothing panics while it is held; a poisoned lock holds a whole value all the same.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> Option<Result<(u64, Wire), RedisError>> {
        let current = self.current();
        match (&current.wire, &current.failed) {
            (Some(wire), _) => Some(Ok((current.generation, wire.clone()))),
            (None, Some((at, pause, error))) if at.elapsed() < *pause => Some(Err(error.clone())),
            (None, _) => None,
        }
    }

    /// The shared connection, made if there is none; with the number to discard it by.
    pub(super) async fn wire(&self, server: &Server) -> Result<(u64, Wire), RedisError> {
        if let Some(ready) = self.ready() {
            return ready;
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(ready) = self.ready() {
            return ready;
        }
        let made = server.connect(self.timeout).await;
        let mut current = self.current();
        match made {
            Ok(wire) => {
                current.generation += 1;
                current.failed = None;
                current.wire = Some(wire.clone());
                Ok((current.generation, wire))
            }
            Err(error) => {
                let pause = current
                    .failed
                    .as_ref()
                    .map_or(PAUSE.0, |(_, pause, _)| (*pause * 2).min(PAUSE.1));
                current.failed = Some((Instant::now(), pause, error.clone()));
                Err(error)
            }
        }
    }

    /// Forgets a connection; the next call makes a new one. One that was made meanwhile stays.
    pub(super) fn discard(&self, generation: u64) {
        let mut current = self.current();
        if current.generation == generation {
            current.wire = None;
        }
    }
}

/// Connections for calls with large payloads, which would hold up all others on a shared one.
pub(super) enum Bulk {
    /// Each call has a connection of its own.
    Pool(Pool),
    /// A cluster or sentinel client finds its nodes itself; large calls share a second one.
    Lane(Lane),
}

impl Bulk {
    /// How many large calls are under way at once, at most.
    const CONNECTIONS: usize = 8;

    pub(super) fn new(server: &Server, timeout: Duration) -> Result<Self, RedisError> {
        let Server::One(client) = server else {
            return Ok(Self::Lane(Lane::new(timeout)));
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(timeout));
        let manager =
            deadpool_redis::Manager::new_with_config(client.get_connection_info().clone(), config)?;
        Pool::builder(manager)
            .max_size(Self::CONNECTIONS)
            .wait_timeout(Some(timeout))
            .create_timeout(Some(CONNECT * 2))
            .recycle_timeout(Some(CONNECT))
            .runtime(Runtime::Tokio1)
            .build()
            .map(Self::Pool)
            .map_err(|e| {
                RedisError::from((
                    ErrorKind::InvalidClientConfig,
                    "no pool of connections",
                    e.to_string(),
                ))
            })
    }
}

pub(super) fn pool_error(error: PoolError) -> RedisError {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Timeout(_) => std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
        other => RedisError::from(std::io::Error::other(other.to_string())),
    }
}
