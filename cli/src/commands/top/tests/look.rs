use std::num::NonZeroU16;

use tenure::{
    Client, MemoryStore, Start, Status, Workflow,
    client::Filter,
    ids::Partition,
    store::Store,
    time::{Clock, Timestamp},
};

use crate::commands::top::look::{Looker, ended_since};

fn flow() -> Workflow<u32, u32> {
    Workflow::builder("flow")
        .task("t", async |n: u32| anyhow::Ok(n))
        .build()
        .expect("a workflow")
}

/// Starts so many and ends them now.
async fn end(client: &Client, prefix: &str, count: u32) {
    let starts = (0..count).map(|n| Start::new(n).id(format!("{prefix}-{n}")));
    let started = client.start_many(&flow(), starts).await;
    assert!(started.iter().all(Result::is_ok));
    let all = Filter::new().id_prefix(prefix);
    let progress = client.terminate_all(all).run().await.expect("an end");
    assert_eq!(progress.done, count as usize);
}

#[tokio::test]
async fn what_ended_since_a_time_is_counted_in_small_and_in_large() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let store = MemoryStore::with_clock(clock.clone());
    let client = Client::new(store.clone());
    for (prefix, count) in [("a", 250), ("b", 130), ("c", 20)] {
        end(&client, prefix, count).await;
        clock.step(10_000);
    }
    let partition = Partition::all(store.partitions()).next();
    let partition = partition.expect("a partition");
    let counts = client.counts().await.expect("counts");
    let since = async |millis: i64| {
        let since = Timestamp::from_millis(1_000_000 + millis);
        let ended = ended_since(&store, partition, Status::Terminated, &counts, since);
        ended.await.expect("a count")
    };
    assert_eq!(since(20_001).await, 0);
    assert_eq!(since(20_000).await, 20);
    assert_eq!(since(10_001).await, 20);
    assert_eq!(since(10_000).await, 150);
    assert_eq!(since(5_000).await, 150);
    assert_eq!(since(0).await, 400);
    assert_eq!(since(-5_000).await, 400);
}

#[tokio::test]
async fn a_definition_that_no_worker_has_published_is_known_by_what_waits() {
    let client = Client::new(MemoryStore::new());
    let mut looker = Looker::new(client.clone());
    client.start(&flow(), 1).id("a").await.expect("a start");
    let look = looker.look().await.expect("a look");
    assert_eq!(look.queues.len(), 1);
    assert_eq!((look.queues[0].workers, look.states.ready), (0, 1));
    assert_eq!(look.queues[0].workflow, "flow");
    assert!(look.failures.is_empty());
}

#[tokio::test]
async fn all_partitions_are_looked_at_and_lists_of_one_name_are_one() {
    let partitions = NonZeroU16::new(4).expect("a number");
    let client = Client::new(MemoryStore::builder().partitions(partitions).build());
    end(&client, "over", 30).await;
    let starts = (0..20).map(|n| Start::new(n).id(format!("live-{n}")));
    let started = client.start_many(&flow(), starts).await;
    assert!(started.iter().all(Result::is_ok));
    let look = Looker::new(client).look().await.expect("a look");
    assert_eq!(look.states.terminated, 30);
    assert_eq!(look.queues.len(), 1);
    // Entries of what is over stay until they are met.
    assert_eq!(look.queues[0].ready, 50);
}
