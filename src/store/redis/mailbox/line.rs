//! The connection that hints come over.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt, future::try_join_all};
use redis::{
    FromRedisValue, ProtocolVersion, PushInfo, PushKind, RedisError, Value,
    aio::{PubSubSink, PubSubStream},
    cluster_async::ClusterConnection,
};
use tokio::sync::mpsc;

use crate::store::redis::{
    Inner,
    connection::{CONNECT, Server, cluster_client},
    error::Failure,
};

/// A connection in subscribed mode. Everything on it is answered within `patience`, or the connection is given up.
pub(super) struct Line {
    patience: Duration,
    kind: Kind,
}

enum Kind {
    /// A single server, or an older cluster, where what is published on one node is heard on all.
    Plain {
        sink: PubSubSink,
        stream: PubSubStream,
    },
    /// A cluster since Redis 7.0: each channel is subscribed on the node that owns its slot, and stays there.
    Sharded {
        cluster: ClusterConnection,
        pushes: mpsc::UnboundedReceiver<PushInfo>,
        /// What is being unsubscribed: any other end of a subscription means that its slot has moved.
        leaving: HashSet<String>,
    },
}

impl Line {
    pub(super) async fn open(inner: &Inner) -> Result<Self, Failure> {
        let patience = inner.patience();
        let opening = async {
            match &*inner.server {
                Server::Cluster {
                    nodes,
                    timeout,
                    certificates,
                } if inner.sharded => {
                    let (sender, pushes) = mpsc::unbounded_channel();
                    let client = cluster_client(nodes, *timeout, certificates)
                        .use_protocol(ProtocolVersion::RESP3)
                        .push_sender(sender)
                        .build()?;
                    Ok(Kind::Sharded {
                        cluster: client.get_async_connection().await?,
                        pushes,
                        leaving: HashSet::new(),
                    })
                }
                server => {
                    let client = server.node().await?;
                    let (sink, stream) = client.get_async_pubsub().await?.split();
                    Ok(Kind::Plain { sink, stream })
                }
            }
        };
        let kind = within(CONNECT * 2, opening).await?;
        Ok(Self { patience, kind })
    }

    pub(super) async fn subscribe(&mut self, channels: Vec<String>) -> Result<(), Failure> {
        let patience = self.patience;
        match &mut self.kind {
            Kind::Plain { sink, .. } => within(patience, sink.subscribe(&channels)).await,
            Kind::Sharded {
                cluster, leaving, ..
            } => {
                for channel in &channels {
                    leaving.remove(channel);
                }
                let each = channels.into_iter().map(|channel| {
                    let mut cluster = cluster.clone();
                    async move { cluster.ssubscribe(channel).await }
                });
                within(patience, try_join_all(each)).await.map(drop)
            }
        }
    }

    pub(super) async fn unsubscribe(&mut self, channels: Vec<String>) -> Result<(), Failure> {
        let patience = self.patience;
        match &mut self.kind {
            Kind::Plain { sink, .. } => within(patience, sink.unsubscribe(&channels)).await,
            Kind::Sharded {
                cluster, leaving, ..
            } => {
                leaving.extend(channels.iter().cloned());
                let each = channels.into_iter().map(|channel| {
                    let mut cluster = cluster.clone();
                    async move { cluster.sunsubscribe(channel).await }
                });
                within(patience, try_join_all(each)).await.map(drop)
            }
        }
    }

    pub(super) async fn ping(&mut self) -> Result<(), Failure> {
        let patience = self.patience;
        match &mut self.kind {
            Kind::Plain { sink, .. } => within(patience, sink.ping::<Value>()).await.map(drop),
            Kind::Sharded { cluster, .. } => {
                let ping = redis::cmd("PING");
                within(patience, ping.query_async::<Value>(cluster))
                    .await
                    .map(drop)
            }
        }
    }

    /// The next message with its channel; `None` when the connection broke or a subscription ended.
    pub(super) async fn next(&mut self) -> Option<(String, Vec<u8>)> {
        match &mut self.kind {
            Kind::Plain { stream, .. } => {
                let message = stream.next().await?;
                let channel = message.get_channel_name().to_owned();
                Some((channel, message.get_payload_bytes().to_vec()))
            }
            Kind::Sharded {
                pushes, leaving, ..
            } => loop {
                let push = pushes.recv().await?;
                match push.kind {
                    PushKind::SMessage => return message(push),
                    PushKind::Disconnection => return None,
                    PushKind::SUnsubscribe => {
                        let channel = push.data.into_iter().next();
                        let channel = channel.and_then(|name| String::from_redis_value(name).ok());
                        if !channel.is_some_and(|name| leaving.remove(&name)) {
                            return None;
                        }
                    }
                    _ => {}
                }
            },
        }
    }
}

fn message(push: PushInfo) -> Option<(String, Vec<u8>)> {
    let mut data = push.data.into_iter();
    let channel = String::from_redis_value(data.next()?).ok()?;
    let payload = Vec::<u8>::from_redis_value(data.next()?).ok()?;
    Some((channel, payload))
}

async fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(patience, work).await {
        Ok(result) => result.map_err(Failure::of),
        Err(_) => Err(Failure::Silent),
    }
}
