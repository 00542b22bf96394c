//! Replies that were lost: the same call again gets the same answer, and nothing happens twice.

use tenure::{
    engine::FollowUp,
    ids::{MailboxId, Nonce, RunId},
    store::{
        ClaimNext, Control, ControlReply, ControlRequest, IdPolicy, Inspect, SettleReply,
        StartReply, Store, Verdict,
    },
};
use tenure_test_support::RedisServer;

use crate::making::{
    P0, claim, claiming, done, holding, item, partition, settle, settling, start, store, then,
    ticking,
};

// case 55
#[tokio::test]
async fn a_start_is_repeated_without_a_second_instance() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let item = start(&store, item("order-1")).await;
    for _ in 0..3 {
        start(&store, item.clone()).await;
    }
    assert_eq!(claim(&store, "w", 10).await.claims.len(), 1);
}

// case 55
#[tokio::test]
async fn a_claim_is_repeated_and_gets_the_same_tasks_whatever_came_meanwhile() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start(&store, item("order-1")).await;
    start(&store, item("order-2")).await;
    let request = claiming(&store, "w", 2);
    let first = store.claim(request.clone()).await.expect("a claim");
    start(&store, item("order-3")).await;
    let mut again = store.claim(request.clone()).await.expect("a claim");
    assert_eq!(first.claims.len(), 2);
    for claimed in &mut again.claims {
        claimed.now = first.claims[0].now;
    }
    assert_eq!(again.claims, first.claims);
    settle(&store, "w", vec![done(&first.claims[0])]).await;
    let rest = store.claim(request).await.expect("a claim");
    assert_eq!(
        rest.claims.len(),
        1,
        "what is settled is not handed out again"
    );
    assert_eq!(rest.claims[0].record, first.claims[1].record);
    assert_eq!(first.claims[0].record.crashes, 0);
    let next = claim(&store, "w", 10).await;
    assert_eq!(next.claims.len(), 1);
    assert_eq!(next.claims[0].ticket.id.as_str(), "order-3");
}

// case 55
#[tokio::test]
async fn a_settlement_is_repeated_and_gets_the_same_follow_up() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let item = start(&store, item("order-1")).await;
    let claims = claim(&store, "w", 1).await.claims;
    let mut settlement = then(&claims[0], "b");
    settlement.claim_next = Some(ClaimNext {
        follow_up: 0,
        nonce: Nonce::random(),
        only_if_empty: false,
    });
    let request = settling(&store, "w", vec![settlement]);
    let first = store.settle(request.clone()).await.expect("a settlement");
    let again = store.settle(request.clone()).await.expect("a settlement");
    let next = |replies: &[SettleReply]| match &replies[0] {
        SettleReply::Stored { next: Some(next) } => (next.ticket.clone(), next.record.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(next(&first), next(&again));
    assert!(claim(&store, "w2", 10).await.claims.is_empty());
    let SettleReply::Stored { next: Some(next) } = &first[0] else {
        panic!("{first:?}")
    };
    settle(&store, "w", vec![done(next)]).await;
    let late = store.settle(request).await.expect("a settlement");
    assert_eq!(late, [SettleReply::Stored { next: None }]);
    let snapshot = store
        .snapshot(&item.id)
        .await
        .expect("a read")
        .expect("a snapshot");
    assert_eq!(snapshot.open, 0);
    let count = store.counts(partition(&store, P0)).await.expect("counts");
    assert_eq!(count.finished.values().sum::<usize>(), 1, "it ended once");
}

// case 55, case 73
#[tokio::test]
async fn a_control_is_repeated_and_a_refused_settlement_is_refused_again() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let item = start(&store, item("order-1")).await;
    let claims = claim(&store, "w", 1).await.claims;
    let request = ControlRequest {
        id: item.id.clone(),
        run: Some(item.run),
        control: Control::Cancel,
        reason: Some("no money".to_owned()),
        actor: None,
        nonce: Nonce::random(),
    };
    for _ in 0..2 {
        let answer = store.control(request.clone()).await.expect("a control");
        assert_eq!(answer, ControlReply::Done { run: item.run });
    }
    for _ in 0..2 {
        let answer = settle(&store, "w", vec![done(&claims[0])]).await;
        assert_eq!(answer, [SettleReply::Cancelled]);
    }
    let header = store
        .header(&item.id)
        .await
        .expect("a read")
        .expect("a header");
    let control = header.control.expect("a control");
    assert_eq!(control.reason.as_deref(), Some("no money"));
}

// case 75
#[tokio::test]
async fn the_first_of_two_starts_of_one_id_in_a_call_is_superseded() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut items = vec![item("order-1"), item("order-1"), item("order-2")];
    for item in &mut items {
        item.policy = IdPolicy::TerminateAndReplace;
    }
    let home = partition(&store, P0);
    for _ in 0..2 {
        let answers = store.start(home, items.clone()).await.expect("a start");
        assert_eq!(
            answers,
            [
                StartReply::Superseded,
                StartReply::Started,
                StartReply::Started
            ]
        );
    }
    let claims = claim(&store, "w", 10).await.claims;
    assert_eq!(claims.len(), 2);
    assert!(claims.iter().all(|claimed| claimed.run != items[0].run));
}

// case 54
#[tokio::test]
async fn what_a_replaced_run_left_behind_holds_nobody_up() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut old = item("order-1");
    let FollowUp::Ready(timer) = old.first[0].clone() else {
        panic!("the first task is ready")
    };
    let mut timer = timer;
    timer.task = crate::making::task("later");
    old.first.push(FollowUp::After {
        next: timer,
        delay: std::time::Duration::from_millis(1),
    });
    start(&store, old.clone()).await;
    let held = claim(&store, "w1", 1).await.claims;
    let mut new = item("order-1");
    new.policy = IdPolicy::TerminateAndReplace;
    new.run = RunId::unique();
    let mut box_of_w1 = store
        .mailbox(MailboxId::from(crate::making::worker("w1")))
        .await
        .expect("a mailbox");
    let new = start(&store, new).await;
    let fresh = claim(&store, "w2", 10).await.claims;
    assert_eq!(
        fresh.len(),
        1,
        "the claim key of the old run does not stand in the way"
    );
    assert_eq!((fresh[0].run, fresh[0].record.attempt), (new.run, 1));
    crate::trouble::until(async || {
        let mut request = ticking(&store, P0);
        request.reap = 0;
        let reply = store.tick(request).await.expect("a tick");
        assert_eq!(reply.promoted, 0, "the timer of the old run is dropped");
        reply.next_due.is_none()
    })
    .await;
    assert_eq!(
        settle(&store, "w1", vec![done(&held[0])]).await,
        [SettleReply::Lost]
    );
    let release = tenure::store::ReleaseRequest {
        partition: partition(&store, P0),
        worker: crate::making::worker("w1"),
        items: vec![holding(&held[0])],
        leave: false,
    };
    let released = store.release(release).await.expect("a release");
    assert_eq!(released, [tenure::store::ReleaseReply::Lost]);
    assert_eq!(
        settle(&store, "w2", vec![done(&fresh[0])]).await,
        [SettleReply::Stored { next: None }]
    );
    use futures_util::StreamExt;
    let mut hints = Vec::new();
    while !hints
        .iter()
        .any(|h| matches!(h, tenure::store::Hint::Cancelled { .. }))
    {
        let hint = tokio::time::timeout(std::time::Duration::from_secs(5), box_of_w1.next());
        hints.push(hint.await.expect("a hint in time").expect("a hint"));
    }
}

// W20
#[tokio::test]
async fn an_entry_of_a_task_that_is_done_is_dropped_and_runs_nothing() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let item = start(&store, item("order-1")).await;
    let ready = format!("{{tenure:0}}:ready:{}", crate::making::list());
    let entries: Vec<String> = server.run(&["LRANGE", &ready, "0", "-1"]);
    let claims = claim(&store, "w1", 1).await.claims;
    // An entry of a task that runs is as void as one of a task that is done.
    for step in ["it runs", "it is done"] {
        server.run::<()>(&["RPUSH", &ready, &entries[0]]);
        let again = claim(&store, "w2", 10).await;
        assert!(again.claims.is_empty() && again.aside.is_empty(), "{step}");
        assert_eq!(server.run::<usize>(&["LLEN", &ready]), 0, "{step}");
        if step == "it runs" {
            settle(&store, "w1", vec![then(&claims[0], "b")]).await;
            let b = claim(&store, "w1", 1).await.claims;
            assert_eq!(b[0].ticket.task.as_str(), "b");
        }
    }
    let snapshot = store
        .snapshot(&item.id)
        .await
        .expect("a read")
        .expect("a snapshot");
    let record = &snapshot.tasks[&crate::making::task("a")];
    assert_eq!((record.attempt, record.crashes), (1, 0));
    assert_eq!(snapshot.open, 1, "b still runs");
}

// case 52
#[tokio::test]
async fn a_worker_that_gave_its_claim_back_cannot_settle_it() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start(&store, item("order-1")).await;
    let first = claim(&store, "w1", 1).await.claims;
    let release = tenure::store::ReleaseRequest {
        partition: partition(&store, P0),
        worker: crate::making::worker("w1"),
        items: vec![holding(&first[0])],
        leave: false,
    };
    store.release(release).await.expect("a release");
    let second = claim(&store, "w2", 1).await.claims;
    assert_eq!(second[0].record.attempt, 2);
    assert_eq!(
        settle(&store, "w1", vec![done(&first[0])]).await,
        [SettleReply::Lost]
    );
    let Verdict::Completed { .. } = done(&second[0]).verdict else {
        panic!("it completes")
    };
    assert_eq!(
        settle(&store, "w2", vec![done(&second[0])]).await,
        [SettleReply::Stored { next: None }]
    );
}
