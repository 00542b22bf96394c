use bytes::Bytes;
use tenure::{
    ids::{DefinitionHash, ValueField, WorkflowName},
    store::{Begin, IdPolicy, StartItem, Status},
};

use crate::{env::On, prelude::*};

pub(crate) async fn values_of_an_older_run_are_not_there(on: On) {
    let t = on.store().await;
    let first = t.started(item("x")).await;
    let claim = t.one("w1").await;
    t.settle("w1", &done(&claim)).await;
    let fields = [output_of("a"), ValueField::Input, output_of("b")];
    let values = t.store.values(&first.id, first.run, &fields).await;
    let expected = [Some(OUTPUT), Some(first.input.clone()), None];
    assert_eq!(values.expect("a read"), expected);
    let second = StartItem {
        policy: IdPolicy::ReplaceFinished,
        ..item("x")
    };
    t.started(second).await;
    let values = t.store.values(&first.id, first.run, &fields).await;
    assert_eq!(values.expect("a read"), [None, None, None]);
    let values = t.store.values(&id("y"), first.run, &fields).await;
    assert_eq!(values.expect("a read"), [None, None, None]);
}

pub(crate) async fn finished_instances_are_listed_from_an_offset(on: On) {
    let t = on.store().await;
    for name in ["a", "b", "c", "d"] {
        let item = t.started(item(name)).await;
        t.cancel(&item.id).await;
        t.pass(1);
    }
    let finished = t.store.finished(p0(), Status::Cancelled, 1, 2).await;
    let finished = finished.expect("a read");
    let names: Vec<_> = finished.iter().map(|f| f.id.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
    assert!(finished[0].at < finished[1].at);
    let header = t.store.header(&id("b")).await.expect("a read");
    assert_eq!(finished[0].tail, header.expect("a header").run.tail());
    let none = t.store.finished(p0(), Status::Failed, 0, 2).await;
    assert!(none.expect("a read").is_empty());
}

pub(crate) async fn counts_tell_where_everything_is(on: On) {
    let t = on.store().await;
    let empty = t.store.counts(p0()).await.expect("a read");
    assert_eq!((empty.ready.len(), empty.aside), (0, 0));
    assert_eq!((empty.running, empty.delayed), (0, 0));
    assert!(empty.finished.values().all(|count| *count == 0));
    t.started(item_with("x", &["a", "b", "c"])).await;
    t.started(item_in("y", "other")).await;
    t.started(StartItem {
        begin: Begin::After(ms(10)),
        ..item("z")
    })
    .await;
    t.claim("w1", 2).await;
    t.cancel(&t.started(item_in("v", "other")).await.id).await;
    let counts = t.store.counts(p0()).await.expect("a read");
    assert_eq!(counts.ready[&list()], 1);
    assert_eq!(counts.ready[&list_of("other")], 2);
    assert_eq!((counts.running, counts.delayed), (2, 1));
    assert_eq!(counts.finished[&Status::Cancelled], 1);
    assert_eq!(counts.finished.values().sum::<usize>(), 1);
    assert_eq!(counts.aside, 0);
}

pub(crate) async fn the_first_publication_of_a_definition_moves_its_name(on: On) {
    let t = on.store().await;
    let name = WorkflowName::new("w").expect("a name");
    let hash = |n| DefinitionHash::from_digest([n; 8]);
    let text = |n: u8| Bytes::from(vec![n, 0, 255]);
    let current = async || t.store.definition(&name).await.expect("a read");
    assert_eq!(current().await, None);
    for (published, now) in [(1, 1), (2, 2), (1, 2), (3, 3)] {
        let stored = t.store.publish(&name, hash(published), text(published));
        stored.await.expect("a publication");
        assert_eq!(current().await, Some((hash(now), text(now))));
    }
}
