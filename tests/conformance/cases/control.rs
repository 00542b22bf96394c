use tenure::{
    ids::RunId,
    store::{
        Begin, Control, ControlReply, ControlRequest, IdPolicy, StartItem, Status, StoreError,
        memory::Damage,
    },
};

use crate::{env::On, prelude::*};

// W14, case 44
pub(crate) async fn a_cancel_is_final_in_every_state(on: On) {
    let t = on.store().await;
    let delayed = StartItem {
        begin: Begin::After(ms(100)),
        ..item("delayed")
    };
    let running = t.started(item("running")).await;
    t.one("w1").await;
    for item in [
        running,
        t.started(delayed).await,
        t.started(item("queued")).await,
    ] {
        let run = item.run;
        assert_eq!(t.cancel(&item.id).await, ControlReply::Done { run });
        let snapshot = t.snapshot(&item.id).await;
        assert_eq!(snapshot.header.status, Status::Cancelled);
        assert_eq!(snapshot.finished_at, Some(t.now()));
        let control = snapshot.header.control.expect("a record of the control");
        assert_eq!(control.control, Control::Cancel);
        assert_eq!(control.reason.as_deref(), Some("no longer wanted"));
        assert_eq!(control.actor.as_deref(), Some("ops"));
        assert!(t.record(&item.id, "a").await.starts_with("closed"));
    }
    t.pass(TTL + 1);
    let tick = t.tick().await;
    assert_eq!((tick.promoted, tick.recovered.len()), (0, 0));
    assert!(t.claim("w1", 10).await.is_empty());
    assert!(t.store.delayed(p0(), 10).await.expect("a read").is_empty());
    assert_eq!(t.cancel(&id("nobody")).await, ControlReply::NotFound);
}

pub(crate) async fn a_control_names_the_run_it_means(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    let second = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..item("x")
    };
    t.started(second.clone()).await;
    let request = |run: RunId| ControlRequest {
        id: id("x"),
        run: Some(run),
        control: Control::Terminate,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    let run = second.run;
    let reply = t.store.control(request(first.run)).await;
    assert_eq!(reply.expect("a control"), ControlReply::Replaced { run });
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Running);
    let reply = t.store.control(request(run)).await;
    assert_eq!(reply.expect("a control"), ControlReply::Done { run });
    assert_eq!(t.snapshot(&id("x")).await.header.status, Status::Terminated);
}

// case 55
pub(crate) async fn a_repeated_control_answers_as_before(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    let run = item.run;
    let request = |control| ControlRequest {
        id: id("x"),
        run: Some(run),
        control,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    for _ in 0..2 {
        let reply = t.store.control(request(Control::Cancel)).await;
        assert_eq!(reply.expect("a control"), ControlReply::Done { run });
        t.pass(10);
    }
    let status = Status::Cancelled;
    let over = ControlReply::Over { run, status };
    let reply = t.store.control(request(Control::Terminate)).await;
    assert_eq!(reply.expect("a control"), over);
    // Who names no run cannot be repeating.
    assert_eq!(t.cancel(&item.id).await, over);
    let finished = t.store.finished(p0(), status, 0, 10).await;
    assert_eq!(finished.expect("a read").len(), 1);
}

// case 50
pub(crate) async fn a_record_of_a_newer_version_is_left_untouched(on: On) {
    let t = on.store().await;
    let item = t.started(item("x")).await;
    t.damage(&item.id, Damage::Format("2".into()));
    let request = ControlRequest {
        id: item.id.clone(),
        run: None,
        control: Control::Cancel,
        reason: None,
        actor: None,
        nonce: tenure::ids::Nonce::random(),
    };
    let replace = StartItem {
        policy: IdPolicy::TerminateAndReplace,
        ..crate::prelude::item("x")
    };
    let refused = [
        t.store.control(request).await.map(|_| ()),
        t.store.start(p0(), vec![replace]).await.map(|_| ()),
        t.store.header(&item.id).await.map(|_| ()),
        t.store.snapshot(&item.id).await.map(|_| ()),
        t.store
            .watch(&item.id, item.run, &mailbox("c"))
            .await
            .map(|_| ()),
    ];
    for refused in refused {
        let error = refused.expect_err("refused");
        assert!(
            matches!(&error, StoreError::Format { found, supported: 1, .. } if found == "2"),
            "{error}"
        );
    }
    t.damage(&item.id, Damage::Format("1".into()));
    let stopped = t.store.start(p0(), vec![item.clone()]).await;
    assert_eq!(
        stopped.expect("a start"),
        [tenure::store::StartReply::Started]
    );
    t.started(crate::prelude::item("foreign")).await;
    t.damage(&id("foreign"), Damage::Foreign);
    for error in [
        t.store.header(&id("foreign")).await.expect_err("refused"),
        t.store.snapshot(&id("foreign")).await.expect_err("refused"),
    ] {
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}
