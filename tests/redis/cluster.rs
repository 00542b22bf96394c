//! On a cluster of three nodes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use tenure::{
    engine::FollowUp,
    ids::{MailboxId, Partition, ValueField},
    store::{
        ClaimNext, Control, ControlRequest, Hint, Inspect, Parking, Status, Store, StoreError,
        Verdict, redis::RedisStore,
    },
};
use tenure_test_support::RedisCluster;

use crate::making::{
    claiming, done, holding, item, list, next, of_output, partition, patiently, settling, start,
    start_many, task, then, ticking, worker,
};

async fn store(cluster: &RedisCluster, partitions: u16) -> RedisStore {
    RedisStore::builder(cluster.url())
        .partitions(partitions)
        .connect()
        .await
        .expect("a store")
}

// case 30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transition_stays_in_one_slot() {
    let cluster = RedisCluster::start();
    let store = store(&cluster, 3).await;
    let owners: std::collections::BTreeSet<_> = (0..3)
        .map(|p| cluster.owner(cluster.slot(&format!("{{tenure:{p}}}:meta"))))
        .collect();
    assert!(owners.len() > 1, "the partitions live on several nodes");
    start_many(&store, "order-", 60).await;
    for at in 0..3 {
        live(&store, at).await;
    }
    let hash = list().definition;
    let name = tenure::ids::WorkflowName::new("w").expect("a name");
    store
        .publish(&name, hash, b"d".as_slice().into())
        .await
        .expect("a publication");
    let known = store.definition(&name).await.expect("a read");
    assert_eq!(known, Some((hash, b"d".as_slice().into())));
}

/// Each transition at least once, in one partition.
async fn live(store: &RedisStore, at: usize) {
    let home = partition(store, at);
    let mut request = claiming(store, "w", 8);
    request.partition = home;
    request.parking = Parking::WhenShort;
    let claims = store.claim(request.clone()).await.expect("a claim").claims;
    assert_eq!(claims.len(), 8);
    let mut settlements = vec![done(&claims[0]), then(&claims[1], "b"), done(&claims[2])];
    settlements[1].claim_next = Some(ClaimNext {
        follow_up: 0,
        nonce: tenure::ids::Nonce::random(),
        only_if_empty: false,
    });
    let later = FollowUp::After {
        next: next("c", of_output("a", 1)),
        delay: Duration::from_millis(1),
    };
    let join = FollowUp::Arrive {
        next: next("j", tenure::ids::InputRef::Join),
        need: 1,
        total: 2,
    };
    settlements[2].verdict = Verdict::Completed {
        output: None,
        follow_ups: vec![later, join],
    };
    for (claimed, after) in [
        (&claims[3], Duration::ZERO),
        (&claims[4], Duration::from_millis(1)),
    ] {
        let mut retried = done(claimed);
        retried.verdict = Verdict::Retry {
            after,
            error: crate::volume::error(),
        };
        settlements.push(retried);
    }
    let mut failed = done(&claims[5]);
    failed.verdict = Verdict::Failed {
        error: crate::volume::error(),
    };
    settlements.push(failed);
    let replies = store
        .settle(settling(store, "w", settlements))
        .await
        .expect("a settlement");
    assert!(
        replies
            .iter()
            .all(|r| matches!(r, tenure::store::SettleReply::Stored { .. })),
        "{replies:?}"
    );
    let release = tenure::store::ReleaseRequest {
        partition: home,
        worker: worker("w"),
        items: vec![holding(&claims[6])],
        leave: true,
    };
    store.release(release).await.expect("a release");
    let extend = tenure::store::ExtendRequest {
        partition: home,
        worker: worker("w"),
        ttl: crate::making::TTL,
        items: vec![holding(&claims[7])],
    };
    store.extend(extend).await.expect("an extend");
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut tick = ticking(store, at);
    tick.keeper = Some((worker("w"), Duration::from_secs(5)));
    let ticked = store.tick(tick).await.expect("a tick");
    assert_eq!(ticked.promoted, 2);
    let control = ControlRequest {
        id: claims[7].ticket.id.clone(),
        run: None,
        control: Control::Terminate,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    store.control(control).await.expect("a control");
    let mailbox = MailboxId::unique();
    let id = &claims[6].ticket.id;
    store
        .watch(id, claims[6].run, &mailbox)
        .await
        .expect("a watch");
    store
        .snapshot(id)
        .await
        .expect("a read")
        .expect("a snapshot");
    store.errors(&claims[3].ticket.id).await.expect("a read");
    store
        .claim_key(&claims[7].ticket.id, &task("a"))
        .await
        .expect("a read");
    store
        .values(id, claims[6].run, &[ValueField::Input])
        .await
        .expect("a read");
    let counts = store.counts(home).await.expect("counts");
    assert_eq!(counts.finished[&Status::Failed], 1);
}

async fn next_hint(hints: &mut tenure::store::Hints) -> Hint {
    let hint = tokio::time::timeout(Duration::from_secs(15), hints.next()).await;
    hint.expect("a hint in time").expect("a hint")
}

async fn park(store: &RedisStore, at: usize) {
    let mut request = claiming(store, "w", 1);
    request.partition = partition(store, at);
    request.parking = Parking::WhenShort;
    let reply = patiently(|| store.claim(request.clone())).await;
    assert!(reply.parked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_come_from_the_node_of_each_partition() {
    let cluster = RedisCluster::start();
    let store = store(&cluster, 3).await;
    let who = MailboxId::from(worker("w"));
    let mut hints = store.mailbox(who).await.expect("a mailbox");
    for at in 0..3 {
        let channel = format!("{{tenure:{at}}}:mail:w");
        let heard: (String, i64) = cluster.run_for(&channel, &["PUBSUB", "SHARDNUMSUB", &channel]);
        assert_eq!(heard.1, 1, "it is subscribed where its slot is");
        park(&store, at).await;
    }
    start_many(&store, "order-", 30).await;
    let mut woken = std::collections::BTreeSet::new();
    while woken.len() < 3 {
        if let Hint::Ready { partition } = next_hint(&mut hints).await {
            woken.insert(partition);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_follows_a_slot_that_moves() {
    let cluster = RedisCluster::start();
    let store = store(&cluster, 1).await;
    let who = MailboxId::from(worker("w"));
    let mut hints = store.mailbox(who).await.expect("a mailbox");
    assert_eq!(next_hint(&mut hints).await, Hint::Subscribed);
    let slot = cluster.slot("{tenure:0}:meta");
    cluster.move_slot(slot, (cluster.owner(slot) + 1) % 3, || {});
    assert_eq!(
        next_hint(&mut hints).await,
        Hint::Subscribed,
        "look: hints may have been missed"
    );
    park(&store, 0).await;
    start(&store, item("order-1")).await;
    let ready = Hint::Ready {
        partition: partition(&store, 0),
    };
    while next_hint(&mut hints).await != ready {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_address_of_a_cluster_node_is_refused_with_the_right_one() {
    let cluster = RedisCluster::start();
    let error = RedisStore::connect(cluster.nodes()[0].url()).await;
    let error = error.expect_err("it is a cluster");
    assert!(matches!(error, StoreError::Unsuitable { .. }), "{error:?}");
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
}

/// Works off all instances of two tasks until told to stop, and on until nothing is left.
async fn work(store: RedisStore, who: String, stop: Arc<AtomicBool>) -> usize {
    let mut settled = 0;
    loop {
        let last = stop.load(Ordering::SeqCst);
        let request = claiming(&store, &who, 5);
        let claims = patiently(|| store.claim(request.clone())).await.claims;
        if claims.is_empty() {
            if last {
                return settled;
            }
            let mut tick = ticking(&store, 0);
            tick.reap = 0;
            patiently(|| store.tick(tick.clone())).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        }
        let settlements: Vec<_> = claims
            .iter()
            .map(|claimed| match claimed.ticket.task.as_str() {
                "a" => then(claimed, "b"),
                _ => done(claimed),
            })
            .collect();
        settled += settlements.len();
        let request = settling(&store, &who, settlements);
        let replies = patiently(|| store.settle(request.clone())).await;
        assert!(
            replies
                .iter()
                .all(|r| matches!(r, tenure::store::SettleReply::Stored { .. })),
            "{replies:?}"
        );
    }
}

// case 61
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moving_a_slot_under_load_tears_no_instance() {
    const INSTANCES: usize = 300;
    let cluster = Arc::new(RedisCluster::start());
    let store = store(&cluster, 1).await;
    let slot = cluster.slot("{tenure:0}:meta");
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..3)
        .map(|i| tokio::spawn(work(store.clone(), format!("w{i}"), stop.clone())))
        .collect();
    let starter = store.clone();
    let starting = tokio::spawn(async move {
        for i in 0..INSTANCES {
            let item = item(&format!("order-{i}"));
            let home = partition(&starter, 0);
            patiently(|| starter.start(home, vec![item.clone()])).await;
        }
    });
    let mover = cluster.clone();
    let moving = tokio::task::spawn_blocking(move || {
        for _ in 0..3 {
            let to = (mover.owner(slot) + 1) % 3;
            mover.move_slot(slot, to, || std::thread::sleep(Duration::from_millis(2)));
        }
    });
    moving.await.expect("the slot moves");
    starting.await.expect("all start");
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.expect("a worker");
    }
    let home = Partition::default();
    let counts = store.counts(home).await.expect("counts");
    assert_eq!(counts.finished[&Status::Completed], INSTANCES, "{counts:?}");
    assert_eq!(
        (counts.running, counts.aside, counts.ready.len()),
        (0, 0, 0)
    );
    for i in 0..INSTANCES {
        let id = crate::making::id(&format!("order-{i}"));
        let snapshot = store
            .snapshot(&id)
            .await
            .expect("a read")
            .expect("a snapshot");
        assert_eq!(
            (snapshot.open, snapshot.tasks.len()),
            (0, 2),
            "{snapshot:?}"
        );
    }
    let start_over = start(&store, item("after")).await;
    assert!(
        store
            .header(&start_over.id)
            .await
            .expect("a read")
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_payload_has_ten_times_as_long() {
    let cluster = RedisCluster::start();
    let store = RedisStore::builder(cluster.url())
        .response_timeout(Duration::from_millis(200))
        .connect()
        .await
        .expect("a store");
    let home = partition(&store, 0);
    let mut large = item("order-1");
    large.input = vec![0; 300 * 1024].into();
    start(&store, item("order-0")).await;
    cluster.run_for::<()>("{tenure:0}:meta", &["CLIENT", "PAUSE", "800"]);
    let (small, large) = tokio::join!(
        store.start(home, vec![item("order-2")]),
        store.start(home, vec![large]),
    );
    assert!(
        matches!(small, Err(StoreError::Timeout { .. })),
        "{small:?}"
    );
    large.expect("a start that takes its time");
}
