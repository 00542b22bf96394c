use bytes::Bytes;
use tenure::{
    ids::{Nonce, SharedKey, ValueField},
    store::{Claimed, IdPolicy, NoteReply, NoteRequest, SettleReply, StartItem, StoreError},
};

use crate::{
    env::{Env, On},
    prelude::*,
};

fn shared(key: &str) -> ValueField {
    ValueField::Shared(SharedKey::new(key).expect("a key"))
}

fn progress(of: &str) -> ValueField {
    ValueField::Progress(task(of))
}

fn noting(claim: &Claimed, number: u64, values: &[(ValueField, &'static [u8])]) -> NoteRequest {
    let value =
        |(field, bytes): &(ValueField, &'static [u8])| (field.clone(), Bytes::from_static(bytes));
    NoteRequest {
        partition: p0(),
        holding: holding(claim),
        number,
        values: values.iter().map(value).collect(),
    }
}

impl Env {
    async fn note(&self, request: &NoteRequest) -> NoteReply {
        self.store.note(request.clone()).await.expect("a note")
    }

    async fn noted(&self, item: &StartItem, field: ValueField) -> Option<Bytes> {
        let values = self.store.values(&item.id, item.run, &[field]).await;
        values.expect("a read").remove(0)
    }
}

pub(crate) async fn what_a_running_task_notes_can_be_read(on: On) {
    let t = on.store().await;
    let x = t.started(item("x")).await;
    let claim = t.one("w1").await;
    let bytes: &[u8] = b"\xc4\x02\x00\xff";
    let both = noting(&claim, 1, &[(progress("a"), b"\x07"), (shared("k"), bytes)]);
    assert_eq!(t.note(&both).await, NoteReply::Noted);
    assert_eq!(
        t.noted(&x, progress("a")).await.as_deref(),
        Some(&b"\x07"[..])
    );
    assert_eq!(t.noted(&x, shared("k")).await.as_deref(), Some(bytes));
    assert_eq!(t.noted(&x, shared("other")).await, None);
    let values = t.snapshot(&x.id).await.values;
    assert_eq!((values[&progress("a")], values[&shared("k")]), (1, 4));
    // The task goes on as if nothing had been.
    assert_eq!(t.record(&x.id, "a").await, "running 1 n 0 0");
    let stored = SettleReply::Stored { next: None };
    assert_eq!(t.settle("w1", &retry(&claim, 0)).await, stored);
    assert_eq!(
        t.noted(&x, progress("a")).await.as_deref(),
        Some(&b"\x07"[..])
    );
    let next = t.one("w2").await;
    let again = noting(&next, 1, &[(shared("k"), b"\x01")]);
    assert_eq!(
        t.note(&again).await,
        NoteReply::Noted,
        "attempts count for themselves"
    );
    assert_eq!(t.settle("w2", &done(&next)).await, stored);
    assert_eq!(
        t.noted(&x, shared("k")).await.as_deref(),
        Some(&b"\x01"[..])
    );
}

pub(crate) async fn a_note_without_the_claim_changes_nothing(on: On) {
    let t = on.store().await;
    let x = t.started(item("x")).await;
    let claim = t.one("w1").await;
    let mine = noting(&claim, 1, &[(shared("k"), b"\x01")]);
    let mut forged = mine.clone();
    forged.holding.record.nonce = Some(Nonce::random());
    assert_eq!(t.note(&forged).await, NoteReply::Lost);
    t.release("w1", &claim).await;
    assert_eq!(t.note(&mine).await, NoteReply::Lost, "released");
    let claim = t.one("w2").await;
    let mine = noting(&claim, 1, &[(shared("k"), b"\x02")]);
    t.pass(TTL + 1);
    t.tick().await;
    assert_eq!(t.note(&mine).await, NoteReply::Lost, "reaped");
    let claim = t.one("w1").await;
    let mine = noting(&claim, 1, &[(shared("k"), b"\x03")]);
    t.cancel(&x.id).await;
    assert_eq!(t.note(&mine).await, NoteReply::Cancelled);
    assert_eq!(t.noted(&x, shared("k")).await, None);
    let second = t
        .started(StartItem {
            policy: IdPolicy::ReplaceFinished,
            ..item("x")
        })
        .await;
    assert_eq!(t.note(&mine).await, NoteReply::Lost, "of another run");
    assert_eq!(t.noted(&second, shared("k")).await, None);
    let mut gone = mine;
    gone.holding.ticket.id = id("nobody");
    assert_eq!(t.note(&gone).await, NoteReply::Gone);
}

pub(crate) async fn a_note_that_comes_twice_undoes_none_that_came_between(on: On) {
    let t = on.store().await;
    let x = t.started(item("x")).await;
    let claim = t.one("w1").await;
    let first = noting(&claim, 1, &[(shared("k"), b"\x01")]);
    let second = noting(&claim, 2, &[(shared("k"), b"\x02")]);
    for note in [&first, &second, &first, &second] {
        assert_eq!(t.note(note).await, NoteReply::Noted);
    }
    assert_eq!(
        t.noted(&x, shared("k")).await.as_deref(),
        Some(&b"\x02"[..])
    );
}

pub(crate) async fn shared_values_are_bounded(on: On) {
    let t = on.store().await;
    let x = t.started(item("x")).await;
    let claim = t.one("w1").await;
    let keys: Vec<ValueField> = (0..=NoteRequest::MAX_SHARED)
        .map(|i| shared(&format!("k{i}")))
        .collect();
    let mut number = 0;
    for keys in keys[..NoteRequest::MAX_SHARED].chunks(NoteRequest::MAX_VALUES) {
        number += 1;
        let values: Vec<_> = keys.iter().map(|key| (key.clone(), &b"\x01"[..])).collect();
        assert_eq!(
            t.note(&noting(&claim, number, &values)).await,
            NoteReply::Noted
        );
    }
    let last = keys.last().expect("a key").clone();
    let over = noting(
        &claim,
        number + 1,
        &[(last.clone(), b"\x01"), (keys[0].clone(), b"\x09")],
    );
    assert_eq!(t.note(&over).await, NoteReply::Full);
    assert_eq!(
        t.noted(&x, keys[0].clone()).await.as_deref(),
        Some(&b"\x01"[..])
    );
    let again = noting(
        &claim,
        number + 2,
        &[(keys[0].clone(), b"\x02"), (progress("a"), b"\x03")],
    );
    assert_eq!(
        t.note(&again).await,
        NoteReply::Noted,
        "known keys may change"
    );
    assert_eq!(t.noted(&x, last).await, None);
    let long = NoteRequest {
        values: vec![(shared("k0"), vec![0; NoteRequest::MAX_BYTES + 1].into())],
        ..again.clone()
    };
    let error = t.store.note(long).await.expect_err("too long");
    assert!(matches!(error, StoreError::TooLarge { .. }), "{error:?}");
    for field in [progress("b"), output_of("a"), ValueField::Input] {
        let foreign = noting(&claim, 9, &[(field, b"\x01")]);
        let error = t.store.note(foreign).await.expect_err("not its own");
        assert!(matches!(error, StoreError::Request { .. }), "{error:?}");
    }
}
