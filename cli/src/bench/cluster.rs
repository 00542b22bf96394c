//! A cluster of a benchmark's own: masters without replicas, on the loopback interface.

use std::time::Duration;

use anyhow::{Context, bail};

use super::{
    server::{Persistence, Server},
    stats::connect,
};

/// All hash slots.
const SLOTS: u16 = 16384;
const LOOKS: u32 = 1000;
const LOOK: Duration = Duration::from_millis(20);

/// Starts `count` nodes and gives each its share of the slots.
pub(crate) async fn start(count: u16) -> anyhow::Result<Vec<Server>> {
    let mut nodes = Vec::new();
    for at in 0..count {
        let node = Server::start(
            Persistence::None,
            &[
                "--cluster-enabled",
                "yes",
                "--cluster-config-file",
                "nodes.conf",
            ],
        )
        .await?;
        let from = SLOTS / count * at;
        let till = if at + 1 == count {
            SLOTS - 1
        } else {
            SLOTS / count * (at + 1) - 1
        };
        // ADDSLOTSRANGE would need Redis 7.
        let slots: Vec<String> = (from..=till).map(|slot| slot.to_string()).collect();
        let mut words = vec!["ADDSLOTS"];
        words.extend(slots.iter().map(String::as_str));
        run(&node, &words).await?;
        run(&node, &["SET-CONFIG-EPOCH", &(at + 1).to_string()]).await?;
        nodes.push(node);
    }
    for node in &nodes[1..] {
        let port = node.port().to_string();
        run(&nodes[0], &["MEET", "127.0.0.1", &port]).await?;
    }
    wait_until_ok(&nodes).await?;
    Ok(nodes)
}

/// The address of the whole.
pub(crate) fn url(nodes: &[Server]) -> String {
    let nodes: Vec<String> = nodes
        .iter()
        .map(|node| format!("127.0.0.1:{}", node.port()))
        .collect();
    format!("redis+cluster://{}", nodes.join(","))
}

/// A hash tag whose slot this node has.
pub(crate) async fn tag_on(node: &Server) -> anyhow::Result<String> {
    let mut connection = connect(&node.url()).await?;
    for number in 0..1000 {
        let tag = format!("raw-{number}");
        let there: Result<bool, _> = redis::cmd("EXISTS")
            .arg(format!("{{{tag}}}"))
            .query_async(&mut connection)
            .await;
        // Another node's slot answers MOVED.
        if there.is_ok() {
            return Ok(tag);
        }
    }
    bail!("the node on port {} has no slots", node.port());
}

async fn run(node: &Server, words: &[&str]) -> anyhow::Result<()> {
    let mut connection = connect(&node.url()).await?;
    redis::cmd("CLUSTER")
        .arg(words)
        .exec_async(&mut connection)
        .await
        .with_context(|| format!("CLUSTER {} was refused", words[0]))
}

async fn wait_until_ok(nodes: &[Server]) -> anyhow::Result<()> {
    let known = format!("cluster_known_nodes:{}", nodes.len());
    for _ in 0..LOOKS {
        let mut ready = 0;
        for node in nodes {
            let mut connection = connect(&node.url()).await?;
            let info: String = redis::cmd("CLUSTER")
                .arg("INFO")
                .query_async(&mut connection)
                .await?;
            ready += usize::from(info.contains("cluster_state:ok") && info.contains(&known));
        }
        if ready == nodes.len() {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!("the cluster's nodes did not find each other");
}
