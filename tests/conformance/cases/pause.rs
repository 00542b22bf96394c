use tenure::{
    OnExhausted,
    store::{
        Begin, Control, ControlReply, ControlRequest, Held, IdPolicy, Recovery, ReleaseReply,
        SettleReply, StartItem, Status, Verdict,
    },
};

use crate::{
    env::{Env, On},
    prelude::*,
};

const STORED: SettleReply = SettleReply::Stored { next: None };

/// `<task>` of each parked ticket of an instance, in order.
async fn parked(t: &Env, name: &str) -> Vec<String> {
    let tickets = t.store.parked(&id(name)).await.expect("a read");
    tickets.iter().map(|t| t.task.to_string()).collect()
}

async fn pause(t: &Env, item: &StartItem) {
    let done = ControlReply::Done { run: item.run };
    assert_eq!(t.control(&item.id, Control::Pause).await, done);
}

async fn resume(t: &Env, item: &StartItem) {
    let done = ControlReply::Done { run: item.run };
    assert_eq!(t.control(&item.id, Control::Resume).await, done);
}

// W15, W22
pub(crate) async fn entries_of_a_paused_instance_are_parked_when_met_and_come_back(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    t.started(crate::prelude::item("y")).await;
    pause(&t, &item).await;
    assert_eq!(
        t.ready().await,
        ["x/a", "x/b", "y/a"],
        "it changes nothing else"
    );
    assert_eq!(t.one("w1").await.ticket.id, id("y"));
    assert_eq!(parked(&t, "x").await, ["a", "b"]);
    assert_eq!(t.record(&item.id, "a").await, "ready 0 - 0 0");
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!((snapshot.header.status, snapshot.open), (Status::Paused, 2));
    let control = snapshot.header.control.expect("a record of the control");
    assert_eq!(control.control, Control::Pause);
    assert_eq!(control.reason.as_deref(), Some("no longer wanted"));
    assert_eq!(control.actor.as_deref(), Some("ops"));
    assert_eq!(t.store.counts(p0()).await.expect("a read").paused, 1);
    resume(&t, &item).await;
    assert_eq!(t.ready().await, ["x/a", "x/b"]);
    assert!(parked(&t, "x").await.is_empty());
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Running);
    assert_eq!(t.store.counts(p0()).await.expect("a read").paused, 0);
    assert_eq!(t.claim("w1", 10).await.len(), 2);
}

// W15
pub(crate) async fn a_pause_is_refused_where_it_makes_no_sense(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let run = item.run;
    let not_found = t.control(&id("nobody"), Control::Pause).await;
    assert_eq!(not_found, ControlReply::NotFound);
    let request = |control| ControlRequest {
        id: item.id.clone(),
        run: Some(run),
        control,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    let once = request(Control::Pause);
    for _ in 0..2 {
        let reply = t.store.control(once.clone()).await.expect("a control");
        assert_eq!(
            reply,
            ControlReply::Done { run },
            "a repeat answers as before"
        );
    }
    let reply = t.control(&item.id, Control::Pause).await;
    assert_eq!(reply, ControlReply::AlreadyPaused { run });
    for _ in 0..2 {
        resume(&t, &item).await;
    }
    let late = t.store.control(once).await.expect("a control");
    assert_eq!(late, ControlReply::Done { run });
    let status = t.snapshot(&item.id).await.header.status;
    assert_eq!(
        status,
        Status::Running,
        "a late repeat pauses nothing again"
    );
    t.cancel(&item.id).await;
    let status = Status::Cancelled;
    for control in [Control::Pause, Control::Resume] {
        let reply = t.control(&item.id, control).await;
        assert_eq!(reply, ControlReply::Over { run, status });
    }
    let retry = t.store.control(request(Control::Retry)).await;
    retry.expect_err("a retry needs a plan");
}

// W15
pub(crate) async fn running_tasks_of_a_paused_instance_go_on_and_settle(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b", "c"])).await;
    let claims = t.claim("w1", 3).await;
    pause(&t, &item).await;
    assert_eq!(t.extend("w1", &claims[0]).await, Held::Ok);
    // The follow-up is queued, not claimed for the caller.
    let then = and_claim(then(&claims[0], &["d"]));
    assert_eq!(t.settle("w1", &then).await, STORED);
    assert_eq!(
        t.settle("w1", &then).await,
        STORED,
        "a repeat answers as before"
    );
    assert_eq!(t.ready().await, ["x/d"]);
    assert_eq!(t.release("w1", &claims[1]).await, ReleaseReply::Released);
    assert_eq!(t.settle("w1", &retry(&claims[2], 0)).await, STORED);
    assert!(t.claim("w1", 10).await.is_empty());
    assert_eq!(parked(&t, "x").await, ["b", "d", "c"]);
    resume(&t, &item).await;
    for claimed in t.claim("w1", 10).await {
        t.settle("w1", &done(&claimed)).await;
    }
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

pub(crate) async fn joins_fire_while_an_instance_is_paused(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    pause(&t, &item).await;
    for claimed in &claims {
        let arrives = and_claim(arrive(claimed, "j", 2, 2));
        assert_eq!(t.settle("w1", &arrives).await, STORED);
    }
    assert!(t.claim("w1", 10).await.is_empty());
    assert_eq!(parked(&t, "x").await, ["j"]);
    resume(&t, &item).await;
    t.settle("w1", &done(&t.one("w1").await)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

pub(crate) async fn timers_and_lost_claims_of_a_paused_instance_are_parked(on: On) {
    let t = on.store().await;
    let delayed = StartItem {
        begin: Begin::After(ms(100)),
        ..item("delayed")
    };
    let item = t.started(item("running")).await;
    let claimed = t.one("w1").await;
    let delayed = t.started(delayed).await;
    pause(&t, &item).await;
    pause(&t, &delayed).await;
    t.pass(TTL + 1);
    let tick = t.tick().await;
    assert_eq!((tick.promoted, tick.recovered.len()), (1, 1));
    assert!(t.claim("w1", 10).await.is_empty());
    assert_eq!(parked(&t, "delayed").await, ["a"]);
    assert_eq!(parked(&t, "running").await, ["a"]);
    assert_eq!(t.settle("w1", &done(&claimed)).await, SettleReply::Lost);
    resume(&t, &item).await;
    resume(&t, &delayed).await;
    assert_eq!(t.record(&item.id, "a").await, "ready 1 - 0 1");
    assert_eq!(t.claim("w1", 10).await.len(), 2);
}

pub(crate) async fn a_repeated_claim_gets_its_tasks_also_when_they_were_paused_meanwhile(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    let request = claiming("w1", 1);
    let first = t.claim_with(&request).await;
    pause(&t, &item).await;
    let again = t.claim_with(&request).await;
    assert_eq!(again.claims.len(), 1);
    assert_eq!(again.claims[0].record, first.claims[0].record);
    assert!(
        parked(&t, "x").await.is_empty(),
        "a repeat meets nothing new"
    );
}

pub(crate) async fn a_paused_instance_can_end_in_every_way(on: On) {
    let t = on.store().await;
    let names = ["completed", "failed", "cancelled", "replaced"];
    let mut items = Vec::new();
    for name in names {
        items.push(t.started(item_with(name, &["a"])).await);
    }
    let claims = t.claim("w1", 2).await;
    for item in &items {
        pause(&t, item).await;
    }
    assert!(t.claim("w1", 10).await.is_empty());
    t.settle("w1", &done(&claims[0])).await;
    t.settle("w1", &fail(&claims[1])).await;
    t.cancel(&id("cancelled")).await;
    let replacing = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("replaced")
    };
    let refused = StartItem {
        policy: IdPolicy::ReplaceFinished,
        ..item("replaced")
    };
    let status = Status::Paused;
    let run = items[3].run;
    assert_eq!(
        t.start(&refused).await,
        tenure::store::StartReply::Exists { run, status }
    );
    t.started(replacing).await;
    let mut statuses = Vec::new();
    for name in names {
        statuses.push(t.snapshot(&id(name)).await.header.status);
    }
    let (completed, failed) = (Status::Completed, Status::Failed);
    let ended = [completed, failed, Status::Cancelled, Status::Running];
    assert_eq!(statuses, ended);
    assert_eq!(t.store.counts(p0()).await.expect("a read").paused, 0);
    assert!(parked(&t, "replaced").await.is_empty());
    assert_eq!(t.one("w1").await.ticket.id, id("replaced"));
}

pub(crate) async fn many_parked_tickets_come_back_in_bounded_batches(on: On) {
    let t = on.store().await;
    let count = ControlRequest::MAX_RESUMED + 3;
    let names: Vec<String> = (0..count).map(|i| format!("t{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let item = t.started(item_with("x", &names)).await;
    pause(&t, &item).await;
    for _ in 0..count.div_ceil(256 + 64) {
        assert!(t.claim("w1", 256).await.is_empty());
    }
    assert_eq!(parked(&t, "x").await.len(), count);
    let run = item.run;
    let reply = t.control(&item.id, Control::Resume).await;
    assert_eq!(reply, ControlReply::Again { run });
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Running);
    assert_eq!(t.ready().await.len(), ControlRequest::MAX_RESUMED);
    assert_eq!(parked(&t, "x").await, ["t1000", "t1001", "t1002"]);
    resume(&t, &item).await;
    assert!(parked(&t, "x").await.is_empty());
}

// W38, W41
pub(crate) async fn a_task_that_failed_for_good_may_pause_its_instance_for_a_person(on: On) {
    let t = on.store().await;
    let item = t.started(item_with("x", &["a", "b"])).await;
    let claims = t.claim("w1", 2).await;
    t.settle("w1", &retry(&claims[0], 0)).await;
    let second = t.one("w1").await;
    let mut settlement = fail(&second);
    settlement.verdict = Verdict::Paused {
        error: error(&second, "no\nhope"),
    };
    for _ in 0..2 {
        assert_eq!(t.settle("w1", &settlement).await, STORED);
    }
    let snapshot = t.snapshot(&item.id).await;
    assert_eq!((snapshot.header.status, snapshot.open), (Status::Paused, 2));
    let record = snapshot.header.control.expect("a record of the control");
    assert_eq!(record.reason.as_deref(), Some("`a` failed: no\nhope"));
    assert_eq!(snapshot.header.error.expect("an error").message, "no\nhope");
    assert_eq!(t.store.errors(&item.id).await.expect("a read").len(), 2);
    // What runs beside it goes on.
    assert_eq!(t.extend("w1", &claims[1]).await, Held::Ok);
    t.settle("w1", &done(&claims[1])).await;
    assert!(t.claim("w1", 10).await.is_empty());
    resume(&t, &item).await;
    assert_eq!(t.snapshot(&item.id).await.header.error, None);
    assert_eq!(t.record(&item.id, "a").await, "ready 2 n 0 0");
    t.settle("w1", &done(&t.one("w1").await)).await;
    assert_eq!(t.snapshot(&item.id).await.header.status, Status::Completed);
}

pub(crate) async fn crashes_over_the_budget_may_pause_the_instance_for_a_person(on: On) {
    let t = on.store().await;
    let item = StartItem {
        max_crashes: 0,
        on_exhausted: OnExhausted::Pause,
        ..item_with("x", &["a", "b"])
    };
    let item = t.started(item).await;
    t.claim("w1", 2).await;
    t.pass(TTL + 1);
    let tick = t.tick().await;
    let recoveries: Vec<_> = tick.recovered.iter().map(|r| r.recovery).collect();
    assert_eq!(recoveries, [Recovery::Paused; 2]);
    let header = t.snapshot(&item.id).await.header;
    assert_eq!(header.status, Status::Paused);
    assert_eq!(
        header.error.expect("an error").message,
        "worker lease expired"
    );
    let reason = header.control.and_then(|control| control.reason);
    assert_eq!(reason.as_deref(), Some("`a` failed: worker lease expired"));
    assert!(t.claim("w1", 10).await.is_empty());
    resume(&t, &item).await;
    assert_eq!(t.record(&item.id, "a").await, "ready 1 - 0 0");
    assert_eq!(t.claim("w1", 10).await.len(), 2);
}
