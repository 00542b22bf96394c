//! Where a load runs: servers, a namespace of its own, a store.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, ensure};
use redis::aio::MultiplexedConnection;
use tenure::{Client, Namespace, RedisStore, store::Store};

use super::{
    cluster,
    measure::Meter,
    reference::{Lane, Reference},
    server::{Persistence, Server},
    stats::connect,
};

/// What a load needs. Its servers end when it is dropped; a Redis that was given keeps nothing after [`Place::leave`].
pub(crate) struct Place {
    /// Where worker processes connect.
    pub(crate) url: String,
    pub(crate) namespace: Namespace,
    pub(crate) store: RedisStore,
    pub(crate) meter: Meter,
    /// One connection for each node.
    pub(crate) nodes: Vec<MultiplexedConnection>,
    lanes: Vec<Lane>,
    servers: Vec<Server>,
}

/// How long a call may take: the machine is busy on purpose.
const RESPONSE: Duration = Duration::from_secs(60);

fn namespace() -> anyhow::Result<Namespace> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(Namespace::new(format!(
        "tenure-bench-{}-{number}",
        std::process::id()
    ))?)
}

impl Place {
    /// A server of its own.
    pub(crate) async fn own(persistence: Persistence) -> anyhow::Result<Self> {
        let server = Server::start(persistence, &[]).await?;
        let url = server.url();
        Self::at(url, 1, vec![server]).await
    }

    /// A Redis that runs already.
    pub(crate) async fn given(url: &str) -> anyhow::Result<Self> {
        ensure!(
            !url.contains("+cluster:"),
            "a benchmark needs the address of a single Redis; clusters it starts itself (--only nodes)"
        );
        Self::at(url.to_owned(), 1, Vec::new()).await
    }

    /// A cluster of its own.
    pub(crate) async fn cluster(nodes: u16, partitions: u16) -> anyhow::Result<Self> {
        let servers = cluster::start(nodes).await?;
        Self::at(cluster::url(&servers), partitions, servers).await
    }

    async fn at(url: String, partitions: u16, servers: Vec<Server>) -> anyhow::Result<Self> {
        let namespace = namespace()?;
        let store = RedisStore::builder(&url)
            .namespace(namespace.clone())
            .partitions(partitions)
            .response_timeout(RESPONSE)
            .connect()
            .await?;
        let urls = if servers.is_empty() {
            vec![url.clone()]
        } else {
            servers.iter().map(Server::url).collect()
        };
        let (mut nodes, mut lanes) = (Vec::new(), Vec::new());
        for (at, node) in urls.iter().enumerate() {
            nodes.push(connect(node).await.context("a connection to look around")?);
            let tag = match servers.get(at) {
                Some(server) if servers.len() > 1 => cluster::tag_on(server).await?,
                _ => namespace.to_string(),
            };
            lanes.push(Lane::new(connect(node).await?, &tag));
        }
        Ok(Self {
            url,
            namespace,
            store,
            meter: Meter::new(nodes.clone()),
            nodes,
            lanes,
            servers,
        })
    }

    /// A client of the store, with nothing in common with the worker's calls but the store's connections.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.store.clone())
    }

    /// How many partitions there are.
    pub(crate) fn partitions(&self) -> u16 {
        self.store.partitions().get()
    }

    /// Whether the servers are this benchmark's own, to be configured at will.
    pub(crate) fn is_own(&self) -> bool {
        !self.servers.is_empty()
    }

    /// The raw reference, now: `calls` in all.
    pub(crate) async fn reference(&self, calls: u64) -> anyhow::Result<Reference> {
        Reference::measure(&self.meter, &self.lanes, calls).await
    }

    /// Leaves nothing behind on a Redis that was given.
    pub(crate) async fn leave(self) -> anyhow::Result<()> {
        if self.is_own() {
            return Ok(());
        }
        for lane in &self.lanes {
            lane.remove().await?;
        }
        self.store
            .remove_namespace()
            .await
            .context("the benchmark's data could not be removed")
    }
}
