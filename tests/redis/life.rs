//! An instance from start to end.

use tenure::store::{Inspect, SettleReply, Status};

use crate::making::{claim, done, item, settle, start, store, then, tick};
use tenure_test_support::RedisServer;

#[tokio::test]
async fn a_chain_of_two_runs_from_start_to_completed() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let item = start(&store, item("order-1")).await;
    let claims = claim(&store, "w1", 10).await.claims;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].input.as_ref(), Some(&item.input));
    let answer = settle(&store, "w1", vec![then(&claims[0], "b")]).await;
    assert_eq!(answer, [SettleReply::Stored { next: None }]);
    let claims = claim(&store, "w1", 10).await.claims;
    assert_eq!(claims[0].ticket.task.as_str(), "b");
    settle(&store, "w1", vec![done(&claims[0])]).await;
    let snapshot = store
        .snapshot(&item.id)
        .await
        .expect("a read")
        .expect("a snapshot");
    assert_eq!(snapshot.header.status, Status::Completed);
    assert_eq!(snapshot.open, 0);
    assert_eq!(snapshot.tasks.len(), 2);
    let reply = tick(&store).await;
    assert_eq!((reply.promoted, reply.pruned, reply.again), (0, 0, false));
    let counts = store
        .counts(item.id.partition(1.try_into().expect("1")))
        .await
        .expect("counts");
    assert_eq!(counts.finished[&Status::Completed], 1);
    assert_eq!(
        (counts.running, counts.delayed, counts.ready.len()),
        (0, 0, 0)
    );
}
