//! Records that this version cannot read are left as they are and stop nobody.

use std::collections::HashMap;

use bytes::Bytes;
use tenure::{
    ids::{RunId, ValueField},
    store::{
        Control, ControlRequest, ExtendRequest, Held, IdPolicy, Inspect, SettleReply, Store,
        StoreError,
    },
};
use tenure_test_support::RedisServer;

use crate::making::{
    P0, TTL, claim, done, holding, item, partition, settle, start, store, tick, worker,
};

fn everything(server: &RedisServer, key: &str) -> HashMap<String, Vec<u8>> {
    server.run(&["HGETALL", key])
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_read_is_set_aside_and_all_others_go_on() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let broken: [(&str, &[&str]); 5] = [
        ("no-run", &["HDEL", "{tenure:0}:instance:no-run", "run"]),
        ("no-format", &["HDEL", "{tenure:0}:instance:no-format", "v"]),
        (
            "no-record",
            &[
                "HSET",
                "{tenure:0}:instance:no-record",
                "task:a",
                "ready 0 -",
            ],
        ),
        ("no-hash", &["SET", "{tenure:0}:instance:no-hash", "text"]),
        ("newer", &["HSET", "{tenure:0}:instance:newer", "v", "2"]),
    ];
    for (name, words) in broken {
        start(&store, item(name)).await;
        server.run::<redis::Value>(words);
    }
    start(&store, item("whole")).await;
    let reply = claim(&store, "w", 10).await;
    assert_eq!(reply.claims.len(), 1);
    assert_eq!(reply.claims[0].ticket.id.as_str(), "whole");
    assert_eq!(reply.aside.len(), broken.len(), "{:?}", reply.aside);
    assert!(reply.aside.iter().all(|entry| !entry.reason.is_empty()));
    let counts = store.counts(partition(&store, P0)).await.expect("counts");
    assert_eq!(counts.aside, broken.len());
    assert!(
        claim(&store, "w", 10).await.aside.is_empty(),
        "they are met once"
    );
    assert_eq!(
        settle(&store, "w", vec![done(&reply.claims[0])]).await,
        [SettleReply::Stored { next: None }]
    );
    tick(&store).await;
}

#[tokio::test]
async fn an_entry_that_nobody_can_read_is_set_aside() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let ready = format!("{{tenure:0}}:ready:{}", crate::making::list());
    server.run::<()>(&["RPUSH", &ready, "no entry at all"]);
    start(&store, item("whole")).await;
    let reply = claim(&store, "w", 10).await;
    assert_eq!((reply.claims.len(), reply.aside.len()), (1, 1));
}

// case 50
#[tokio::test]
async fn a_record_of_a_newer_format_is_a_typed_error_and_stays_untouched() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let key = "{tenure:0}:instance:order-1";
    let first = start(&store, item("order-1")).await;
    let claims = claim(&store, "w", 1).await.claims;
    server.run::<()>(&["HSET", key, "v", "2", "shape", "of things to come"]);
    let before = everything(&server, key);
    let format =
        |error: &StoreError| matches!(error, StoreError::Format { found, .. } if found == "2");
    let read = store.header(&first.id).await.expect_err("a header");
    assert!(format(&read), "{read:?}");
    let read = store.snapshot(&first.id).await.expect_err("a snapshot");
    assert!(format(&read), "{read:?}");
    let cancel = ControlRequest {
        id: first.id.clone(),
        run: None,
        control: Control::Cancel,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    let steered = store.control(cancel).await.expect_err("a control");
    assert!(format(&steered), "{steered:?}");
    let mut again = item("order-1");
    again.policy = IdPolicy::TerminateAndReplace;
    let started = store.start(partition(&store, P0), vec![again]).await;
    assert!(
        format(started.as_ref().expect_err("a start")),
        "{started:?}"
    );
    server.run::<()>(&["DEL", "{tenure:0}:claim:order-1:a"]);
    server.run::<()>(&[
        "ZADD",
        "{tenure:0}:running",
        "XX",
        "1",
        &claims[0].ticket.to_string(),
    ]);
    assert!(tick(&store).await.recovered.is_empty());
    assert_eq!(everything(&server, key), before);
}

#[tokio::test]
async fn a_key_of_another_type_loses_the_claim_and_nothing_else() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start(&store, item("broken")).await;
    start(&store, item("whole")).await;
    let claims = claim(&store, "w", 2).await.claims;
    server.run::<()>(&["SET", "{tenure:0}:instance:broken", "text"]);
    let request = ExtendRequest {
        partition: partition(&store, P0),
        worker: worker("w"),
        ttl: TTL,
        items: claims.iter().map(holding).collect(),
    };
    let held = store.extend(request).await.expect("an extend");
    assert_eq!(held, [Held::Lost, Held::Ok]);
    let settled = settle(&store, "w", claims.iter().map(done).collect()).await;
    assert_eq!(
        settled,
        [SettleReply::Lost, SettleReply::Stored { next: None }]
    );
    let id = &claims[0].ticket.id;
    let error = store.header(id).await.expect_err("a header");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    let error = store
        .start(partition(&store, P0), vec![item("broken")])
        .await;
    assert!(
        matches!(error, Err(StoreError::Corrupt { .. })),
        "{error:?}"
    );
}

// case 33, case 34
#[tokio::test]
async fn payloads_come_back_byte_for_byte() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let all: Bytes = (0..=255).collect();
    let mut with_all = item("order-1");
    with_all.input = all.clone();
    with_all.meta = Some(all.clone());
    with_all.first = vec![tenure::engine::FollowUp::Ready(crate::making::next(
        "a",
        crate::making::of_input(&all),
    ))];
    start(&store, with_all.clone()).await;
    let claims = claim(&store, "w", 1).await.claims;
    assert_eq!(claims[0].input.as_ref(), Some(&all));
    let snapshot = store
        .snapshot(&with_all.id)
        .await
        .expect("a read")
        .expect("a snapshot");
    assert_eq!(snapshot.meta.as_ref(), Some(&all));
    assert_eq!(snapshot.values[&ValueField::Input], 256);
    let fields = [
        ValueField::Input,
        ValueField::Output(crate::making::task("a")),
    ];
    let values = store
        .values(&with_all.id, with_all.run, &fields)
        .await
        .expect("values");
    assert_eq!(values, [Some(all), None]);
    let other = store
        .values(&with_all.id, RunId::unique(), &fields)
        .await
        .expect("values");
    assert_eq!(
        other,
        [None, None],
        "another run's values are nobody's business"
    );
}
