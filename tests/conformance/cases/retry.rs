use tenure::{
    engine::{FollowUp, RetryPlan},
    ids::{InputRef, Nonce, TaskName},
    store::{
        Control, ControlReply, Held, RetryRequest, SettleReply, StartItem, StartReply, Status,
    },
};

use crate::{
    env::{Env, On},
    prelude::*,
};

async fn request(t: &Env, item: &StartItem, plan: RetryPlan) -> RetryRequest {
    let snapshot = t.snapshot(&item.id).await;
    RetryRequest {
        id: item.id.clone(),
        run: item.run,
        died_at: snapshot.finished_at.unwrap_or_default(),
        plan,
        reason: Some("it is mended".into()),
        actor: Some("ops".into()),
        nonce: Nonce::random(),
    }
}

async fn retry(t: &Env, item: &StartItem, plan: RetryPlan) -> ControlReply {
    let request = request(t, item, plan).await;
    t.store.retry(request).await.expect("a retry")
}

fn again(names: &[&str], input: &InputRef) -> Vec<FollowUp> {
    let ready = |name: &&str| FollowUp::Ready(next(name, input.clone()));
    names.iter().map(ready).collect()
}

fn tasks<C: FromIterator<TaskName>>(names: &[&str]) -> C {
    names.iter().map(|name| task(name)).collect()
}

// W39
pub(crate) async fn a_dead_instance_goes_on_from_the_task_that_failed(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let first = and_claim(then(&t.one("w1").await, &["b"]));
    let first = t.settle_on("w1", &first).await;
    t.settle("w1", &crate::prelude::retry(&first, 0)).await;
    let dead = t.one("w1").await;
    t.settle("w1", &fail(&dead)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Failed);
    t.pass(50);
    let plan = RetryPlan {
        again: again(&["b"], &of_output(&task("a"))),
        ..RetryPlan::default()
    };
    let run = item.run;
    let request = request(&t, &item, plan).await;
    for _ in 0..2 {
        let reply = t.store.retry(request.clone()).await.expect("a retry");
        assert_eq!(
            reply,
            ControlReply::Done { run },
            "a repeat answers as before"
        );
    }
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!(
        (snapshot.header.status, snapshot.open, snapshot.retries),
        (Status::Running, 1, 1)
    );
    assert_eq!((snapshot.finished_at, snapshot.header.error), (None, None));
    let control = snapshot.header.control.expect("a record of the control");
    assert_eq!(control.control, Control::Retry);
    assert_eq!(control.reason.as_deref(), Some("it is mended"));
    assert_eq!(t.record(&item.id, "a").await, "completed 1 n 0 0");
    assert_eq!(t.record(&item.id, "b").await, "ready 2 - 0 0");
    assert_eq!(t.ready().await, ["x/b"]);
    let failed = t.store.finished(p0(), Status::Failed, 0, 10).await;
    assert!(failed.expect("a read").is_empty(), "it is dead no more");
    assert_eq!(t.settle("w1", &fail(&dead)).await, SettleReply::Lost);
    let claimed = t.one("w1").await;
    assert_eq!(claimed.record.attempt, 3);
    assert_eq!(claimed.input, Some(OUTPUT));
    t.settle("w1", &done(&claimed)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
    let late = t.store.retry(request).await.expect("a retry");
    assert_eq!(
        late,
        ControlReply::Done { run },
        "a late repeat changes nothing"
    );
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

// case 48
pub(crate) async fn branches_that_were_open_when_an_instance_died_go_on_where_they_were(on: On) {
    let t = on.store().await;
    let item = t
        .started(item_with("x", &["fails", "runs", "waits", "done", "later"]))
        .await;
    let claims = t.claim("w1", 2).await;
    let rest = t.claim("w1", 3).await;
    t.settle("w1", &arrive(&rest[1], "j", 5, 5)).await;
    t.settle("w1", &crate::prelude::retry(&rest[2], 500)).await;
    assert_eq!(
        t.release("w1", &rest[0]).await,
        tenure::store::ReleaseReply::Released
    );
    t.settle("w1", &fail(&claims[0])).await;
    assert_eq!(t.record(&item.id, "later").await, "closed 1 n 1 0");
    let input = of_input(&item.input);
    let go_on = ["runs", "waits", "later"];
    let plan = RetryPlan {
        again: again(&["fails"], &input),
        go_on: go_on.iter().map(|name| next(name, input.clone())).collect(),
        ..RetryPlan::default()
    };
    let run = item.run;
    assert_eq!(retry(&t, &item, plan).await, ControlReply::Done { run });
    assert_eq!(t.snapshot(&item.id).await.open, 4);
    assert_eq!(
        t.extend("w1", &claims[1]).await,
        Held::Lost,
        "its worker was told to stop"
    );
    assert_eq!(t.settle("w1", &done(&claims[1])).await, SettleReply::Lost);
    // A timer that runs is left to run, with the failures it has.
    assert_eq!(t.record(&item.id, "later").await, "delayed 1 - 1 0");
    for claimed in t.claim("w2", 10).await {
        t.settle("w2", &arrive(&claimed, "j", 5, 5)).await;
    }
    t.pass(500);
    assert_eq!(t.tick().await.promoted, 1);
    let later = t.one("w2").await;
    assert_eq!(later.ticket.task, task("later"));
    t.settle("w2", &arrive(&later, "j", 5, 5)).await;
    let joined = t.one("w2").await;
    assert_eq!(joined.ticket.task, task("j"));
    t.settle("w2", &done(&joined)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

// case 65: a retry from a finished branch, and the join still waits for all
pub(crate) async fn a_join_waits_again_for_what_a_retry_took_back(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    for claimed in t.claim("w1", 2).await {
        t.settle("w1", &arrive(&claimed, "j", 2, 2)).await;
    }
    t.settle("w1", &fail(&t.one("w1").await)).await;
    let plan = RetryPlan {
        again: again(&["a"], &of_input(&item.input)),
        clear: tasks(&["j"]),
        joins: [(task("j"), tasks(&["b"]))].into(),
        ..RetryPlan::default()
    };
    let run = item.run;
    assert_eq!(retry(&t, &item, plan).await, ControlReply::Done { run });
    let snapshot = t.snapshot(&item.id).await;
    let join = &snapshot.joins[&task("j")];
    assert_eq!((join.arrived, join.fired), (1, false));
    assert_eq!(join.who, [task("b")]);
    assert!(!snapshot.values.contains_key(&output_of("a")));
    assert!(snapshot.values.contains_key(&output_of("b")));
    assert_eq!(t.record(&item.id, "j").await, "cleared 1 - 0 0");
    assert_eq!(t.ready().await, ["x/a"]);
    let claimed = t.one("w1").await;
    t.settle("w1", &arrive(&claimed, "j", 2, 2)).await;
    assert_eq!(
        t.record(&item.id, "j").await,
        "ready 1 - 0 0",
        "attempts go on"
    );
    let joined = t.one("w1").await;
    assert_eq!(joined.record.attempt, 2);
    t.settle("w1", &done(&joined)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

pub(crate) async fn attempts_never_go_back_in_what_a_retry_took_back(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let first = t.one("w1").await;
    let b = t.settle_on("w1", &and_claim(then(&first, &["b"]))).await;
    let c = t.settle_on("w1", &and_claim(then(&b, &["c"]))).await;
    t.settle("w1", &fail(&c)).await;
    let plan = RetryPlan {
        again: again(&["a"], &of_input(&item.input)),
        clear: tasks(&["b", "c", "d"]),
        ..RetryPlan::default()
    };
    retry(&t, &item, plan).await;
    assert!(!t.snapshot(&item.id).await.tasks.contains_key(&task("d")));
    let first = t.one("w1").await;
    assert_eq!(first.record.attempt, 2);
    // Claimed at once, or made ready: both count on.
    let b = t.settle_on("w1", &and_claim(then(&first, &["b"]))).await;
    assert_eq!(b.record.attempt, 2);
    assert_eq!(t.record(&item.id, "b").await, "running 2 n 0 0");
    assert!(t.claim_left(&b).await.is_some());
    t.settle("w1", &then(&b, &["c"])).await;
    assert_eq!(t.one("w1").await.record.attempt, 2);
}

pub(crate) async fn a_retry_is_refused_where_it_makes_no_sense(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let run = item.run;
    let plan = || RetryPlan {
        again: again(&["a"], &of_input(&item.input)),
        ..RetryPlan::default()
    };
    let status = Status::Running;
    assert_eq!(
        retry(&t, &item, plan()).await,
        ControlReply::Live { run, status }
    );
    t.settle("w1", &fail(&t.one("w1").await)).await;
    let stale = RetryRequest {
        died_at: t.now().plus(ms(1)),
        ..request(&t, &item, plan()).await
    };
    let reply = t.store.retry(stale).await.expect("a retry");
    assert_eq!(reply, ControlReply::Changed { run });
    let nothing = request(&t, &item, RetryPlan::default()).await;
    t.store.retry(nothing).await.expect_err("nothing begins");
    let other = RetryRequest {
        run: crate::prelude::item("x").run,
        ..request(&t, &item, plan()).await
    };
    let reply = t.store.retry(other).await.expect("a retry");
    assert_eq!(reply, ControlReply::Replaced { run });
    let cancelled = t.started(crate::prelude::item("y")).await;
    t.cancel(&cancelled.id).await;
    let (run, status) = (cancelled.run, Status::Cancelled);
    let reply = retry(&t, &cancelled, plan()).await;
    assert_eq!(reply, ControlReply::Over { run, status });
}

pub(crate) async fn a_retried_instance_that_dies_again_is_kept_from_its_last_death(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    t.settle("w1", &fail(&t.one("w1").await)).await;
    let plan = || RetryPlan {
        again: again(&["a"], &of_input(&item.input)),
        ..RetryPlan::default()
    };
    t.pass(1_000);
    retry(&t, &item, plan()).await;
    t.settle("w1", &fail(&t.one("w1").await)).await;
    let failed = t.store.finished(p0(), Status::Failed, 0, 10).await;
    let failed = failed.expect("a read");
    assert_eq!(failed.len(), 1, "one index, one entry");
    assert_eq!(failed[0].at, t.now());
    let run = item.run;
    assert_eq!(retry(&t, &item, plan()).await, ControlReply::Done { run });
    assert_eq!(t.record(&item.id, "a").await, "ready 2 - 0 0");
}

pub(crate) async fn a_node_that_begins_again_with_its_own_value_keeps_it(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    t.settle("w1", &arrive(&t.one("w1").await, "j", 1, 1)).await;
    t.settle("w1", &fail(&t.one("w1").await)).await;
    let plan = RetryPlan {
        again: again(&["a"], &of_output(&task("a"))),
        ..RetryPlan::default()
    };
    retry(&t, &item, plan).await;
    let values = t.snapshot(&item.id).await.values;
    assert!(values.contains_key(&output_of("a")), "{values:?}");
    assert_eq!(t.one("w1").await.input, Some(OUTPUT));
}

// W14
pub(crate) async fn a_finished_instance_is_deleted_at_once_and_a_live_one_is_not(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let run = item.run;
    for status in [Status::Running, Status::Paused] {
        let reply = t.control(&item.id, Control::Delete).await;
        assert_eq!(reply, ControlReply::Live { run, status });
        if status == Status::Running {
            let claimed = t.one("w1").await;
            t.settle("w1", &crate::prelude::retry(&claimed, 0)).await;
            t.control(&item.id, Control::Pause).await;
            assert!(t.claim("w1", 1).await.is_empty());
        }
    }
    t.control(&item.id, Control::Terminate).await;
    assert_eq!(
        t.control(&item.id, Control::Delete).await,
        ControlReply::Done { run }
    );
    assert_eq!(t.store.snapshot(&item.id).await.expect("a read"), None);
    assert!(t.store.errors(&item.id).await.expect("a read").is_empty());
    assert!(t.store.parked(&item.id).await.expect("a read").is_empty());
    let ended = t.store.finished(p0(), Status::Terminated, 0, 10).await;
    assert!(ended.expect("a read").is_empty());
    let reply = t.control(&item.id, Control::Delete).await;
    assert_eq!(reply, ControlReply::NotFound);
    assert_eq!(
        t.start(&crate::prelude::item("x")).await,
        StartReply::Started
    );
}
