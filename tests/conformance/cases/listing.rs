use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use tenure::{
    Client,
    client::{Filter, Page},
    ids::{DefinitionHash, InstanceId, Partition, QueueName, WorkflowName},
    store::{
        Announcement, Begin, ControlReply, IdPolicy, Parking, Place, StartItem, Status,
        memory::Damage,
    },
};

use crate::{
    env::{Env, On},
    prelude::*,
};

/// All pages of a listing.
async fn pages(t: &Env, filter: Filter) -> Vec<Page> {
    let client = Client::new(t.store.clone());
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let filter = match cursor.take() {
            Some(cursor) => filter.clone().after(cursor),
            None => filter.clone(),
        };
        let page = client.list(&filter).await.expect("a page");
        let next = page.next.clone();
        pages.push(page);
        assert!(pages.len() < 1_000, "a listing ends");
        // As a command line would: as text.
        match next {
            Some(next) => cursor = Some(next.to_string().parse().expect("a cursor")),
            None => return pages,
        }
    }
}

/// The ids of a listing, in its order.
async fn ids(t: &Env, filter: Filter) -> Vec<String> {
    let pages = pages(t, filter).await;
    let instances = pages.iter().flat_map(|page| &page.instances);
    instances.map(|s| s.id.to_string()).collect()
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

/// One instance in each state that can be reached.
async fn one_of_each(t: &Env) {
    for name in ["completed", "failed", "running", "retried"] {
        t.started(item(name)).await;
        let claim = t.one("w1").await;
        match name {
            "completed" => drop(t.settle("w1", &done(&claim)).await),
            "failed" => drop(t.settle("w1", &fail(&claim)).await),
            "retried" => drop(t.settle("w1", &retry(&claim, 5_000)).await),
            _ => {}
        }
        t.pass(1);
    }
    t.cancel(&t.started(item("cancelled")).await.id).await;
    t.started(item_in("elsewhere", "other")).await;
    t.started(StartItem {
        begin: Begin::After(ms(9_000)),
        ..item("delayed")
    })
    .await;
    t.started(item_with("several", &["a", "b", "c"])).await;
}

pub(crate) async fn every_instance_is_listed_once_whatever_the_size_of_a_page(on: On) {
    let t = on.store().await;
    one_of_each(&t).await;
    let all = [
        "cancelled",
        "completed",
        "delayed",
        "elsewhere",
        "failed",
        "retried",
        "running",
        "several",
    ];
    for limit in [1, 2, 3, 100] {
        let listed = ids(&t, Filter::new().limit(limit)).await;
        assert_eq!(sorted(listed), all, "pages of {limit}");
    }
    let pages = pages(&t, Filter::new().limit(3)).await;
    assert_eq!(pages[0].instances.len(), 3, "a page is filled");
}

pub(crate) async fn a_listing_shows_what_a_table_needs(on: On) {
    let t = on.store().await;
    let labels = BTreeMap::from([("tenant", "acme")]);
    let meta = tenure::codec::encode(&BTreeMap::from([("labels", labels)])).expect("labels");
    t.started(StartItem {
        meta: Some(meta),
        ..item_with("x", &["a", "b"])
    })
    .await;
    let created = t.now();
    t.pass(5);
    t.one("w1").await;
    let page = pages(&t, Filter::new()).await.remove(0);
    let [x] = &page.instances[..] else {
        panic!("one instance, not {page:?}");
    };
    assert_eq!((x.status, x.workflow.as_str()), (Status::Running, "w"));
    assert_eq!((x.created_at, x.started_at), (created, Some(t.now())));
    assert_eq!(x.finished_at, None);
    assert_eq!(x.meta.labels["tenant"], "acme");
    let states: Vec<String> = x
        .tasks
        .iter()
        .map(|(task, r)| format!("{task} {}", r.state))
        .collect();
    assert_eq!(states, ["a running", "b ready"]);
    t.cancel(&x.id).await;
    let page = pages(&t, Filter::new()).await.remove(0);
    assert_eq!(page.instances[0].status, Status::Cancelled);
    assert_eq!(page.instances[0].finished_at, Some(t.now()));
    assert!(page.instances[0].tasks.is_empty(), "nothing is open");
}

pub(crate) async fn filters_choose_by_all_that_they_name(on: On) {
    let t = on.store().await;
    one_of_each(&t).await;
    let later = t.now();
    let label = |tenant: &str| {
        let labels = BTreeMap::from([("tenant", tenant), ("tier", "gold")]);
        tenure::codec::encode(&BTreeMap::from([("labels", labels)])).ok()
    };
    let special = |id: &str, tenant: &str| StartItem {
        meta: label(tenant),
        workflow: WorkflowName::new("special").expect("a name"),
        ..item(id)
    };
    t.pass(1_000);
    t.started(special("order-1", "acme")).await;
    t.started(special("order-2", "umbrella")).await;
    let of = |filter: Filter| async { sorted(ids(&t, filter.limit(2)).await) };
    let special = || Filter::new().workflow(WorkflowName::new("special").expect("a name"));
    assert_eq!(of(special()).await, ["order-1", "order-2"]);
    assert_eq!(
        of(special().label("tenant", "acme").label("tier", "gold")).await,
        ["order-1"]
    );
    assert_eq!(
        of(special().label("tenant", "acme").label("tier", "iron")).await,
        [""; 0]
    );
    assert_eq!(
        of(Filter::new().id_prefix("order-")).await,
        ["order-1", "order-2"]
    );
    assert_eq!(
        of(Filter::new().id_prefix("c")).await,
        ["cancelled", "completed"]
    );
    assert_eq!(of(Filter::new().status(Status::Failed)).await, ["failed"]);
    let two = Filter::new()
        .status(Status::Failed)
        .status(Status::Completed);
    assert_eq!(of(two).await, ["completed", "failed"]);
    let live = of(Filter::new().status(Status::Running).created_before(later)).await;
    assert_eq!(live, ["retried", "running"]);
    let after = t.now();
    assert_eq!(
        of(Filter::new().created_after(after)).await,
        ["order-1", "order-2"]
    );
}

pub(crate) async fn what_stays_is_listed_while_others_come_and_go(on: On) {
    let t = on.store().await;
    let fresh = |i: usize| item(&format!("fresh-{i:03}"));
    for i in 0..40 {
        t.started(fresh(i)).await;
    }
    for i in 0..40 {
        t.cancel(
            &t.started(item_in(&format!("over-{i:03}"), "other"))
                .await
                .id,
        )
        .await;
        t.pass(1);
    }
    let client = Client::new(t.store.clone());
    let (mut seen, mut cursor) = (Vec::new(), None);
    for round in 0.. {
        let filter = Filter::new().limit(7);
        let filter = match cursor.take() {
            Some(cursor) => filter.after(cursor),
            None => filter,
        };
        let page = client.list(&filter).await.expect("a page");
        let names: BTreeSet<String> = page.instances.iter().map(|s| s.id.to_string()).collect();
        assert_eq!(
            names.len(),
            page.instances.len(),
            "no instance twice on a page"
        );
        seen.extend(names);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        // The oldest are claimed, new ones come, others end.
        if round < 3 {
            t.claim("w1", 3).await;
            t.started(item(&format!("new-{round}"))).await;
            let id = t
                .started(item_in(&format!("ended-{round}"), "other"))
                .await
                .id;
            t.cancel(&id).await;
            t.pass(1);
        }
    }
    let stays = (9..40).map(|i| format!("fresh-{i:03}"));
    for name in stays.chain((0..40).map(|i| format!("over-{i:03}"))) {
        let times = seen.iter().filter(|id| **id == name).count();
        assert_eq!(times, 1, "{name} of {seen:?}");
    }
}

pub(crate) async fn finished_instances_are_listed_from_the_newest_while_more_end(on: On) {
    let t = on.store().await;
    let over = async |name: &str| {
        let id = t.started(item(name)).await.id;
        assert!(matches!(t.cancel(&id).await, ControlReply::Done { .. }));
    };
    // Some end in the same millisecond.
    for i in 0..30 {
        over(&format!("old-{i:02}")).await;
        t.pass(i % 3);
    }
    let place = Place::Done(Status::Cancelled);
    let (mut seen, mut from) = (Vec::new(), None);
    for round in 0.. {
        let scan = t
            .store
            .scan(p0(), &place, from.as_ref(), 4)
            .await
            .expect("a piece");
        seen.extend(scan.found.iter().map(|f| f.id.to_string()));
        for i in 0..9 {
            over(&format!("new-{round}-{i}")).await;
        }
        t.pass(1);
        match scan.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    let old: Vec<String> = (0..30).rev().map(|i| format!("old-{i:02}")).collect();
    assert_eq!(seen, old);
}

pub(crate) async fn a_large_set_is_listed_whole_however_much_of_a_page_is_left(on: On) {
    let t = on.store().await;
    for i in 0..15 {
        let delayed = |j| StartItem {
            begin: Begin::After(ms(60_000)),
            ..item(&format!("i{i:02}-{j:02}"))
        };
        let items = (0..100).map(delayed).collect();
        t.store.start(p0(), items).await.expect("a start");
    }
    // The last look for a page is for less than the first one for the next page.
    for limit in [130, 400] {
        let listed: BTreeSet<String> = ids(&t, Filter::new().limit(limit))
            .await
            .into_iter()
            .collect();
        assert_eq!(listed.len(), 1_500, "with {limit} a page");
    }
}

pub(crate) async fn traces_of_what_is_over_or_replaced_are_not_shown(on: On) {
    let t = on.store().await;
    // Its entry stays in the ready list until it is met.
    t.cancel(&t.started(item("x")).await.id).await;
    assert_eq!(t.ready().await, ["x/a"]);
    assert_eq!(ids(&t, Filter::new()).await, ["x"]);
    assert_eq!(
        ids(&t, Filter::new().status(Status::Running)).await,
        [""; 0]
    );
    t.started(StartItem {
        policy: IdPolicy::ReplaceFinished,
        ..item("x")
    })
    .await;
    assert_eq!(ids(&t, Filter::new()).await, ["x"]);
    assert_eq!(
        ids(&t, Filter::new().status(Status::Cancelled)).await,
        [""; 0]
    );
}

pub(crate) async fn unreadable_records_are_named_and_hide_nothing(on: On) {
    let t = on.store().await;
    for name in ["foreign", "newer", "torn", "whole"] {
        t.started(item(name)).await;
    }
    t.damage(&id("foreign"), Damage::Foreign);
    t.damage(&id("newer"), Damage::Format("9".into()));
    t.damage(&id("torn"), Damage::Task(task("a"), "ready or not".into()));
    let pages = pages(&t, Filter::new()).await;
    let mut unreadable: Vec<&str> = pages[0].unreadable.iter().map(InstanceId::as_str).collect();
    unreadable.sort_unstable();
    assert_eq!(unreadable, ["foreign", "newer", "torn"]);
    assert_eq!(pages[0].instances.len(), 1);
}

pub(crate) async fn summaries_come_in_the_order_asked_for(on: On) {
    let t = on.store().await;
    for name in ["a", "b", "c", "d"] {
        t.started(item(name)).await;
    }
    t.damage(&id("d"), Damage::Format("9".into()));
    t.damage(&id("b"), Damage::Foreign);
    let asked = ["d", "c", "none", "b", "a"].map(id);
    let summaries = t.store.summaries(p0(), &asked).await.expect("summaries");
    assert_eq!(summaries.unreadable, ["d", "b"].map(id));
    let found: Vec<InstanceId> = summaries.found.into_iter().map(|s| s.id).collect();
    assert_eq!(found, ["c", "a"].map(id));
}

pub(crate) async fn a_listing_does_bounded_work_for_a_page(on: On) {
    let t = on.store().await;
    for i in 0..15 {
        let items = (0..100).map(|j| item(&format!("i{i:02}-{j:02}"))).collect();
        t.store.start(p0(), items).await.expect("a start");
    }
    t.started(item("needle")).await;
    let pages = pages(&t, Filter::new().id_prefix("needle").limit(10)).await;
    assert_eq!(pages.len(), 2, "1000 entries are looked at for a page");
    let found: Vec<usize> = pages.iter().map(|page| page.instances.len()).collect();
    assert_eq!(found.iter().sum::<usize>(), 1);
}

pub(crate) async fn listings_cross_partitions(on: On) {
    let t = on.store_with(4, 1 << 20).await;
    let names: Vec<String> = (0..24).map(|i| format!("i{i:02}")).collect();
    for name in &names {
        t.started(item(name)).await;
    }
    let filled: BTreeSet<Partition> = names
        .iter()
        .map(|name| id(name).partition(t.store.partitions()))
        .collect();
    assert_eq!(filled.len(), 4, "each partition has some");
    assert_eq!(sorted(ids(&t, Filter::new().limit(5)).await), names);
    let counts = Client::new(t.store.clone()).counts().await.expect("counts");
    assert_eq!(counts.ready[&list()], 24);
}

pub(crate) async fn foreign_cursors_are_refused(on: On) {
    let t = on.store().await;
    t.started(item("x")).await;
    for text in ["", "zz", "00", "6e6f"] {
        assert!(text.parse::<tenure::client::Cursor>().is_err(), "{text}");
    }
    // Of a ready list, but with a position that is none.
    let text = format!("0\nready:{}\nnowhere", list());
    let text: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let filter = Filter::new().after(text.parse().expect("a cursor"));
    let client = Client::new(t.store.clone());
    let error = client.list(&filter).await.expect_err("a foreign position");
    assert!(error.to_string().contains("position"), "{error}");
    let none = client.list(&Filter::new().limit(0)).await;
    assert!(
        none.expect_err("no page of nothing")
            .to_string()
            .contains("1 to 1000")
    );
}

pub(crate) async fn lists_tell_what_waits_and_who_waits_for_it(on: On) {
    let t = on.store().await;
    t.started(item_with("x", &["a", "b"])).await;
    let created = t.now();
    t.pass(20);
    t.started(item("y")).await;
    t.claim_with(&tenure::store::ClaimRequest {
        lists: vec![list_of("other")],
        parking: Parking::WhenShort,
        ..claiming("w1", 1)
    })
    .await;
    t.started(item_in("z", "third")).await;
    let lists = t.store.lists(p0()).await.expect("a read");
    let of = |queue: &str| lists.iter().find(|l| l.list == list_of(queue));
    let ours = of("default").expect("a list");
    assert_eq!((ours.ready, ours.parked), (3, 0));
    assert_eq!(ours.head, Some((id("x"), task("a"))));
    assert_eq!(ours.head_created_at, Some(created));
    assert_eq!(of("third").expect("a list").ready, 1);
    t.started(item_in("v", "other")).await;
    t.claim_with(&tenure::store::ClaimRequest {
        lists: vec![list_of("other")],
        parking: Parking::WhenShort,
        ..claiming("w1", 9)
    })
    .await;
    let other = || async {
        let lists = t.store.lists(p0()).await.expect("a read");
        lists
            .into_iter()
            .find(|l| l.list == list_of("other"))
            .expect("a list")
    };
    let found = other().await;
    assert_eq!((found.ready, found.head, found.parked), (0, None, 1));
    t.pass(15_001);
    assert_eq!(other().await.parked, 0, "three polls ago");
}

fn announcement(who: &str) -> Announcement {
    Announcement {
        id: worker(who),
        host: "a host".into(),
        pid: 7,
        definitions: vec![(WorkflowName::new("w").expect("a name"), list().definition)],
        queues: vec![QueueName::default()],
        slots: 8,
        busy: 3,
        draining: false,
        uptime: Duration::from_secs(2),
        ttl: ms(TTL),
    }
}

pub(crate) async fn workers_are_listed_until_they_are_silent(on: On) {
    let t = on.store().await;
    for who in ["w2", "w1"] {
        t.store
            .announce(announcement(who))
            .await
            .expect("an announcement");
    }
    let names = async || {
        let workers = t.store.workers().await.expect("a read");
        workers
            .into_iter()
            .map(|w| w.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["w1", "w2"]);
    t.pass(TTL / 2);
    let again = Announcement {
        busy: 4,
        draining: true,
        uptime: Duration::from_secs(2) + ms(TTL / 2),
        ..announcement("w2")
    };
    t.store.announce(again).await.expect("an announcement");
    t.pass(TTL / 2 + 1);
    let workers = t.store.workers().await.expect("a read");
    let [w2] = &workers[..] else {
        panic!("w1 is silent: {workers:?}");
    };
    assert_eq!(
        (w2.host.as_str(), w2.pid, w2.slots, w2.busy),
        ("a host", 7, 8, 4)
    );
    assert_eq!(
        (w2.draining, &w2.queues),
        (true, &vec![QueueName::default()])
    );
    assert_eq!(w2.definitions, announcement("w2").definitions);
    assert_eq!(t.now().since(w2.seen_at), ms(TTL / 2 + 1));
    assert_eq!(
        w2.seen_at.since(w2.started_at),
        Duration::from_secs(2) + ms(TTL / 2)
    );
    let leaves = Announcement {
        ttl: Duration::ZERO,
        ..announcement("w2")
    };
    t.store.announce(leaves).await.expect("an announcement");
    assert_eq!(names().await, [""; 0]);
}

pub(crate) async fn definitions_are_listed_with_the_current_one_marked(on: On) {
    let t = on.store().await;
    let hash = |n| DefinitionHash::from_digest([n; 8]);
    for (name, n) in [("b", 1), ("a", 2), ("b", 3), ("b", 1)] {
        let name = WorkflowName::new(name).expect("a name");
        let published = t
            .store
            .publish(&name, hash(n), Bytes::from_static(b"graph"));
        published.await.expect("a publication");
    }
    let known = t.store.definitions().await.expect("a read");
    let known: Vec<_> = known
        .iter()
        .map(|d| (d.workflow.as_str(), d.hash, d.current))
        .collect();
    assert_eq!(
        known,
        [
            ("a", hash(2), true),
            ("b", hash(1), false),
            ("b", hash(3), true)
        ]
    );
}
