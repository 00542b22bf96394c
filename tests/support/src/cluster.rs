use std::time::Duration;

use redis::FromRedisValue;

use crate::{
    RedisServer,
    server::{command, connect},
};

/// A cluster of three masters without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

/// All hash slots.
const SLOTS: u16 = 16384;

impl RedisCluster {
    /// Starts three nodes and gives each a third of the slots.
    ///
    /// # Panics
    /// When a node does not come up, or they do not find each other.
    #[must_use]
    pub fn start() -> Self {
        let args = [
            "--save",
            "",
            "--appendonly",
            "no",
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "5000",
            "--cluster-config-file",
            "nodes.conf",
        ];
        let nodes: Vec<RedisServer> = (0..3).map(|_| RedisServer::with(args)).collect();
        let count = u16::try_from(nodes.len()).expect("a few nodes");
        for (at, node) in (0..count).zip(&nodes) {
            let from = SLOTS / count * at;
            let till = if at + 1 == count {
                SLOTS - 1
            } else {
                SLOTS / count * (at + 1) - 1
            };
            let (from, till) = (from.to_string(), till.to_string());
            node.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", &from, &till]);
            node.run::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        for node in &nodes[1..] {
            let port = node.port().to_string();
            nodes[0].run::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
        let cluster = Self { nodes };
        cluster.wait_until_ok();
        cluster
    }

    fn wait_until_ok(&self) {
        let ok = |node: &RedisServer| {
            let info: String = node.run(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        for _ in 0..1000 {
            if self.nodes.iter().all(ok) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the cluster did not come together");
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The address, with all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let nodes: Vec<String> = self
            .nodes
            .iter()
            .map(|node| format!("127.0.0.1:{}", node.port()))
            .collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// The slot of a key.
    #[must_use]
    pub fn slot(&self, key: &str) -> u16 {
        self.nodes[0].run(&["CLUSTER", "KEYSLOT", key])
    }

    /// Which node has a slot.
    ///
    /// # Panics
    /// When none has.
    #[must_use]
    pub fn owner(&self, slot: u16) -> usize {
        let mine = |node: &RedisServer| {
            let nodes: String = node.run(&["CLUSTER", "NODES"]);
            let line = nodes.lines().find(|line| line.contains("myself"));
            line.is_some_and(|line| {
                line.split(' ').skip(8).any(|range| {
                    let (from, till) = range.split_once('-').unwrap_or((range, range));
                    match (from.parse::<u16>(), till.parse::<u16>()) {
                        (Ok(from), Ok(till)) => (from..=till).contains(&slot),
                        _ => false,
                    }
                })
            })
        };
        self.nodes
            .iter()
            .position(mine)
            .expect("a node that has the slot")
    }

    /// Moves a slot to another node, key by key, while it is in use; `between` runs after every few keys.
    ///
    /// # Panics
    /// When a node refuses.
    pub fn move_slot(&self, slot: u16, to: usize, mut between: impl FnMut()) {
        let from = self.owner(slot);
        let id = |at: usize| self.nodes[at].run::<String>(&["CLUSTER", "MYID"]);
        let (source, target) = (id(from), id(to));
        let number = slot.to_string();
        self.nodes[to].run::<()>(&["CLUSTER", "SETSLOT", &number, "IMPORTING", &source]);
        self.nodes[from].run::<()>(&["CLUSTER", "SETSLOT", &number, "MIGRATING", &target]);
        let port = self.nodes[to].port().to_string();
        loop {
            let keys: Vec<String> =
                self.nodes[from].run(&["CLUSTER", "GETKEYSINSLOT", &number, "10"]);
            if keys.is_empty() {
                break;
            }
            let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
            words.extend(keys.iter().map(String::as_str));
            self.nodes[from].run::<String>(&words);
            between();
        }
        for at in [to, from].into_iter().chain(0..self.nodes.len()) {
            self.nodes[at].run::<()>(&["CLUSTER", "SETSLOT", &number, "NODE", &target]);
        }
    }

    /// Runs a command on the node that has a key.
    ///
    /// # Panics
    /// When it fails.
    pub fn run_for<T: FromRedisValue>(&self, key: &str, words: &[&str]) -> T {
        let owner = self.owner(self.slot(key));
        let mut connection = connect(self.nodes[owner].port()).expect("a connection");
        command(words).query(&mut connection).expect("the command")
    }
}
