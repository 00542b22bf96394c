//! A server that may remove keys when memory runs out.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use tenure::store::{SettleReply, redis::RedisStore};
use tenure_test_support::RedisServer;

use crate::{
    making::{claim, done, settle, start_many, store, tick},
    trouble::until,
};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lines").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn said_at_connect(server: &RedisServer) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    RedisStore::connect(server.url()).await.expect("a store");
    drop(guard);
    let bytes = lines.0.lock().expect("lines").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

// case 27
#[tokio::test]
async fn an_eviction_policy_is_warned_of_by_name_at_connect() {
    let server = RedisServer::with(["--save", "", "--maxmemory-policy", "volatile-lru"]);
    let said = said_at_connect(&server).await;
    assert!(
        said.contains("WARN") && said.contains("`volatile-lru`"),
        "{said}"
    );
    assert!(
        said.contains("set maxmemory-policy to noeviction"),
        "{said}"
    );
    server.run::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let said = said_at_connect(&server).await;
    assert!(!said.contains("eviction"), "{said}");
}

// case 27
#[tokio::test]
async fn evicted_claims_cost_time_and_no_task_is_committed_twice() {
    let server = RedisServer::with(["--save", "", "--maxmemory-policy", "volatile-lru"]);
    let store = store(&server).await;
    start_many(&store, "order-", 8).await;
    let first = claim(&store, "w1", 8).await.claims;
    let claims_left = || {
        server
            .run::<Vec<String>>(&["KEYS", "{tenure:0}:claim:*"])
            .len()
    };
    assert_eq!(claims_left(), 8);
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "100kb"]);
    until(async || claims_left() == 0).await;
    assert!(server.info("stats", "evicted_keys") >= 8.0);
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "0"]);

    // They are free once their time is over; nobody waits 30 s for that here.
    for claimed in &first {
        let ticket = claimed.ticket.to_string();
        server.run::<()>(&["ZADD", "{tenure:0}:running", "XX", "1", &ticket]);
    }
    tick(&store).await;
    let again = claim(&store, "w2", 8).await.claims;
    assert_eq!(again.len(), 8);
    let late = settle(&store, "w1", first.iter().map(done).collect()).await;
    assert!(
        late.iter().all(|reply| *reply == SettleReply::Lost),
        "{late:?}"
    );
    let answers = settle(&store, "w2", again.iter().map(done).collect()).await;
    let stored = |reply: &&SettleReply| matches!(reply, SettleReply::Stored { .. });
    assert_eq!(answers.iter().filter(stored).count(), 8, "{answers:?}");
}
