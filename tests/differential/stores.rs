//! The two stores of one sequence, on one clock.

use std::sync::atomic::{AtomicU32, Ordering};

use tenure::{
    ids::{InstanceId, Namespace},
    store::{
        memory::{Damage, MemoryStore},
        redis::RedisStore,
    },
    time::{Clock, Timestamp},
};
use tenure_test_support::{RedisServer, ServerClock};

/// A server for all sequences; each has its own namespace.
pub(crate) struct Servers {
    server: RedisServer,
    clock: ServerClock,
    sequences: AtomicU32,
}

impl Servers {
    pub(crate) fn start() -> Self {
        let (server, clock) = RedisServer::with_faketime(1_790_000_000_000);
        Self {
            server,
            clock,
            sequences: AtomicU32::new(0),
        }
    }

    pub(crate) async fn stores(&self) -> Stores<'_> {
        self.server.run::<()>(&["FLUSHALL"]);
        let number = self.sequences.fetch_add(1, Ordering::SeqCst);
        let namespace = format!("sequence-{number}");
        let redis = RedisStore::builder(self.server.url())
            .namespace(Namespace::new(&namespace).expect("a namespace"))
            .connect()
            .await
            .expect("a store");
        let clock = Clock::manual(Timestamp::from_millis(self.clock.now()));
        Stores {
            memory: MemoryStore::with_clock(clock.clone()),
            redis,
            clock,
            servers: self,
            namespace,
        }
    }
}

pub(crate) struct Stores<'s> {
    pub(crate) memory: MemoryStore,
    pub(crate) redis: RedisStore,
    clock: Clock,
    servers: &'s Servers,
    namespace: String,
}

impl Stores<'_> {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, millis: i64) {
        self.clock.step(millis);
        self.servers.clock.step(millis);
    }

    /// Lets Redis delete what has expired: before the clock goes back, after which it would be there again, or not, as
    /// chance has it.
    pub(crate) fn sweep(&self) {
        let mut cursor = "0".to_owned();
        loop {
            let scan = ["SCAN", &cursor, "COUNT", "1000"];
            let (next, _): (String, Vec<String>) = self.servers.server.run(&scan);
            cursor = next;
            if cursor == "0" {
                return;
            }
        }
    }

    /// Makes a record unreadable in both. Does nothing when there is no such record.
    pub(crate) fn damage(&self, id: &InstanceId, damage: Damage) {
        let key = format!("{{{}:0}}:instance:{id}", self.namespace);
        let server = &self.servers.server;
        if server.run::<bool>(&["EXISTS", &key]) {
            match &damage {
                Damage::Format(format) => server.run::<()>(&["HSET", &key, "v", format]),
                Damage::Task(task, text) => {
                    server.run::<()>(&["HSET", &key, &format!("task:{task}"), text]);
                }
                _ => server.run::<()>(&["SET", &key, "not a snapshot"]),
            }
        }
        self.memory.damage(id, damage);
    }
}
