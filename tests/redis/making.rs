//! What the tests of this target make requests from.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tenure::{
    engine::{FollowUp, Limits, Next},
    ids::{
        DefinitionHash, InputRef, InstanceId, ListName, Nonce, Partition, QueueName, RunId,
        TaskName, ValueField, WorkerId, WorkflowName,
    },
    store::{
        Begin, ClaimReply, ClaimRequest, Claimed, Holding, IdPolicy, Parking, Retention,
        SettleReply, SettleRequest, Settlement, StartItem, Store, StoreError, TickReply,
        TickRequest, Verdict, redis::RedisStore,
    },
};
use tenure_test_support::RedisServer;

pub(crate) const TTL: Duration = Duration::from_secs(30);
pub(crate) const P0: usize = 0;

pub(crate) fn partition(store: &dyn Store, at: usize) -> Partition {
    Partition::all(store.partitions())
        .nth(at)
        .expect("a partition")
}

pub(crate) async fn store(server: &RedisServer) -> RedisStore {
    RedisStore::connect(server.url()).await.expect("a store")
}

pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId::new(text).expect("an id")
}

pub(crate) fn task(text: &str) -> TaskName {
    TaskName::new(text).expect("a task name")
}

pub(crate) fn worker(text: &str) -> WorkerId {
    WorkerId::new(text).expect("a worker id")
}

pub(crate) fn list() -> ListName {
    ListName {
        queue: QueueName::default(),
        definition: DefinitionHash::from_digest([7; 8]),
    }
}

pub(crate) fn next(name: &str, input: InputRef) -> Next {
    Next {
        task: task(name),
        list: list(),
        input,
        limits: Limits::NONE,
    }
}

pub(crate) fn of_input(input: &Bytes) -> InputRef {
    InputRef::Field {
        field: ValueField::Input,
        len: input.len(),
    }
}

pub(crate) fn of_output(name: &str, len: usize) -> InputRef {
    InputRef::Field {
        field: ValueField::Output(task(name)),
        len,
    }
}

/// An instance whose first task is `a`.
pub(crate) fn item(name: &str) -> StartItem {
    let input = Bytes::from_static(b"\x93\x01\x02\x03");
    StartItem {
        id: id(name),
        run: RunId::unique(),
        policy: IdPolicy::Fail,
        workflow: WorkflowName::new("w").expect("a name"),
        definition: list().definition,
        queue: QueueName::default(),
        begin: Begin::Now,
        signals: Vec::new(),
        first: vec![FollowUp::Ready(next("a", of_input(&input)))],
        input,
        meta: None,
        max_crashes: 3,
        on_exhausted: tenure::OnExhausted::Fail,
        waiter: None,
    }
}

pub(crate) async fn start(store: &dyn Store, item: StartItem) -> StartItem {
    let partition = item.id.partition(store.partitions());
    let answers = store.start(partition, vec![item.clone()]).await;
    assert_eq!(
        answers.expect("a start"),
        [tenure::store::StartReply::Started]
    );
    item
}

pub(crate) async fn start_many(store: &dyn Store, prefix: &str, count: usize) {
    for from in (0..count).step_by(StartItem::MAX_ITEMS) {
        let till = count.min(from + StartItem::MAX_ITEMS);
        let items: Vec<_> = (from..till)
            .map(|i| item(&format!("{prefix}{i}")))
            .collect();
        let mut by_partition = std::collections::BTreeMap::<_, Vec<_>>::new();
        for item in items {
            by_partition
                .entry(item.id.partition(store.partitions()))
                .or_default()
                .push(item);
        }
        for (partition, items) in by_partition {
            store.start(partition, items).await.expect("a start");
        }
    }
}

pub(crate) fn claiming(store: &dyn Store, who: &str, want: u16) -> ClaimRequest {
    ClaimRequest {
        partition: partition(store, P0),
        worker: worker(who),
        nonce: Nonce::random(),
        want,
        lists: vec![list()],
        ttl: TTL,
        limits: Arc::default(),
        parking: Parking::Never,
    }
}

pub(crate) async fn claim(store: &dyn Store, who: &str, want: u16) -> ClaimReply {
    let request = claiming(store, who, want);
    store.claim(request).await.expect("a claim")
}

pub(crate) fn holding(claimed: &Claimed) -> Holding {
    Holding {
        ticket: claimed.ticket.clone(),
        run: claimed.run,
        record: claimed.record.clone(),
    }
}

/// The task is done, and the instance with it.
pub(crate) fn done(claimed: &Claimed) -> Settlement {
    let result = ValueField::Output(claimed.ticket.task.clone());
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Completed {
            output: Some(Bytes::from_static(b"\xc0")),
            follow_ups: vec![FollowUp::End { result }],
        },
        claim_next: None,
    }
}

/// The task is done, `name` follows.
pub(crate) fn then(claimed: &Claimed, name: &str) -> Settlement {
    let output = Bytes::from_static(b"\xc3");
    let input = InputRef::Field {
        field: ValueField::Output(claimed.ticket.task.clone()),
        len: output.len(),
    };
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Completed {
            output: Some(output),
            follow_ups: vec![FollowUp::Ready(next(name, input))],
        },
        claim_next: None,
    }
}

pub(crate) fn settling(store: &dyn Store, who: &str, items: Vec<Settlement>) -> SettleRequest {
    let home = items.first().map_or(partition(store, P0), |item| {
        item.holding.ticket.id.partition(store.partitions())
    });
    SettleRequest {
        partition: home,
        worker: worker(who),
        ttl: TTL,
        items,
    }
}

pub(crate) async fn settle(
    store: &dyn Store,
    who: &str,
    items: Vec<Settlement>,
) -> Vec<SettleReply> {
    let request = settling(store, who, items);
    store.settle(request).await.expect("a settlement")
}

pub(crate) fn ticking(store: &dyn Store, at: usize) -> TickRequest {
    TickRequest {
        partition: partition(store, at),
        keeper: None,
        expected: None,
        promote: 500,
        reap: 100,
        prune: 100,
        crash_delay: Duration::from_millis(100),
        ttl: TTL,
        retention: Retention::default(),
    }
}

pub(crate) async fn tick(store: &dyn Store) -> TickReply {
    store.tick(ticking(store, P0)).await.expect("a tick")
}

/// Repeats what may be repeated, as a caller does, for at most 20 s.
pub(crate) async fn patiently<T, F>(mut call: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                assert!(tokio::time::Instant::now() < until, "{error:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
