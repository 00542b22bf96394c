//! A store, and the clock that it goes by.

use std::{
    num::NonZeroU16,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use tenure::{
    ids::{InstanceId, MailboxId, TaskName, Ticket},
    store::{
        self, ClaimReply, ClaimRequest, Claimed, Control, ControlReply, ControlRequest, Held, Hint,
        Hints, ReleaseReply, SettleReply, Settlement, SignalReply, SignalRequest, Snapshot,
        StartItem, StartReply, Store, TickReply,
        memory::{Damage, MemoryStore},
        redis::RedisStore,
    },
    time::{Clock, Timestamp},
};
use tenure_test_support::{RedisServer, ServerClock};

use crate::prelude::{
    claiming, extending, id, item_in, list, p0, releasing, settling, task, ticking,
};

/// When the tests take place.
const START: i64 = 1_790_000_000_000;

/// Which store a case runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum On {
    Memory,
    Redis,
}

impl On {
    pub(crate) async fn store(self) -> Env {
        self.store_with(1, 1 << 20).await
    }

    pub(crate) async fn store_with(self, partitions: u16, max_payload: usize) -> Env {
        match self {
            Self::Memory => {
                let clock = Clock::manual(Timestamp::from_millis(START));
                let store = MemoryStore::builder()
                    .clock(clock.clone())
                    .partitions(NonZeroU16::new(partitions).expect("partitions"))
                    .max_payload(max_payload)
                    .build();
                Env::new(Arc::new(store.clone()), Place::Memory { store, clock })
            }
            Self::Redis => {
                let (server, clock) = RedisServer::with_faketime(START);
                let store = RedisStore::builder(server.url())
                    .partitions(partitions)
                    .max_payload(max_payload)
                    .connect()
                    .await
                    .expect("a store");
                Env::new(Arc::new(store), Place::Redis { server, clock })
            }
        }
    }
}

enum Place {
    Memory {
        store: MemoryStore,
        clock: Clock,
    },
    Redis {
        server: RedisServer,
        clock: ServerClock,
    },
}

/// A store under test. Calls that must succeed are methods; the others go to `store`.
pub(crate) struct Env {
    pub(crate) store: Arc<dyn Store>,
    place: Place,
    sentinels: AtomicU32,
}

impl Env {
    fn new(store: Arc<dyn Store>, place: Place) -> Self {
        Self {
            store,
            place,
            sentinels: AtomicU32::new(0),
        }
    }

    /// Moves the store's clock.
    pub(crate) fn pass(&self, millis: i64) {
        match &self.place {
            Place::Memory { clock, .. } => clock.step(millis),
            Place::Redis { clock, .. } => clock.step(millis),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match &self.place {
            Place::Memory { clock, .. } => clock.now(),
            Place::Redis { clock, .. } => Timestamp::from_millis(clock.now()),
        }
    }

    /// Makes a stored record unreadable.
    pub(crate) fn damage(&self, id: &InstanceId, damage: Damage) {
        let (server, key) = match &self.place {
            Place::Memory { store, .. } => return store.damage(id, damage),
            Place::Redis { server, .. } => (server, format!("{{tenure:0}}:instance:{id}")),
        };
        match damage {
            Damage::Format(format) => server.run::<()>(&["HSET", &key, "v", &format]),
            Damage::Task(task, text) => {
                server.run::<()>(&["HSET", &key, &format!("task:{task}"), &text]);
            }
            _ => server.run::<()>(&["SET", &key, "not a snapshot"]),
        }
    }

    /// Deletes the claim key of a task, as a person may.
    pub(crate) async fn delete_claim_key(&self, claimed: &Claimed) {
        let (id, task) = (&claimed.ticket.id, &claimed.ticket.task);
        match &self.place {
            Place::Memory { store, .. } => store.delete_claim_key(id, task),
            Place::Redis { server, .. } => {
                server.run::<()>(&["DEL", &format!("{{tenure:0}}:claim:{id}:{task}")]);
            }
        }
        let key = self.store.claim_key(id, task).await.expect("a read");
        assert_eq!(key, None);
    }

    /// Puts an entry into its ready list once more.
    pub(crate) fn repeat_entry(&self, ticket: &Ticket) {
        match &self.place {
            Place::Memory { store, .. } => store.repeat_entry(ticket),
            Place::Redis { server, .. } => {
                let key = format!("{{tenure:0}}:ready:{}", ticket.list);
                server.run::<()>(&["RPUSH", &key, &ticket.entry()]);
            }
        }
    }

    pub(crate) async fn start(&self, item: &StartItem) -> StartReply {
        let partition = item.id.partition(self.store.partitions());
        let replies = self.store.start(partition, vec![item.clone()]).await;
        replies.expect("a start")[0]
    }

    pub(crate) async fn started(&self, item: StartItem) -> StartItem {
        assert_eq!(self.start(&item).await, StartReply::Started);
        item
    }

    pub(crate) async fn claim_with(&self, request: &ClaimRequest) -> ClaimReply {
        self.store.claim(request.clone()).await.expect("a claim")
    }

    pub(crate) async fn claim(&self, who: &str, want: u16) -> Vec<Claimed> {
        self.claim_with(&claiming(who, want)).await.claims
    }

    /// Claims exactly one task.
    pub(crate) async fn one(&self, who: &str) -> Claimed {
        let mut claims = self.claim(who, 1).await;
        claims.pop().expect("something is ready")
    }

    pub(crate) async fn settle(&self, who: &str, settlement: &Settlement) -> SettleReply {
        let mut replies = self.settle_all(who, vec![settlement.clone()]).await;
        replies.pop().expect("a reply")
    }

    pub(crate) async fn settle_all(&self, who: &str, items: Vec<Settlement>) -> Vec<SettleReply> {
        let replies = self.store.settle(settling(who, items)).await;
        replies.expect("a settlement")
    }

    /// Settles, and returns the follow-up claim.
    pub(crate) async fn settle_on(&self, who: &str, settlement: &Settlement) -> Claimed {
        match self.settle(who, settlement).await {
            SettleReply::Stored { next: Some(next) } => *next,
            other => panic!("no follow-up claim but {other:?}"),
        }
    }

    pub(crate) async fn extend(&self, who: &str, claimed: &Claimed) -> Held {
        let replies = self.store.extend(extending(who, &[claimed])).await;
        replies.expect("a heartbeat")[0]
    }

    /// The worker shows that it lives, and extends nothing.
    pub(crate) async fn show(&self, who: &str) {
        let replies = self.store.extend(extending(who, &[])).await;
        assert_eq!(replies.expect("a heartbeat"), []);
    }

    pub(crate) async fn release(&self, who: &str, claimed: &Claimed) -> ReleaseReply {
        let replies = self.store.release(releasing(who, &[claimed])).await;
        replies.expect("a release")[0]
    }

    pub(crate) async fn tick(&self) -> TickReply {
        self.store.tick(ticking()).await.expect("a tick")
    }

    pub(crate) async fn control(&self, id: &InstanceId, control: Control) -> ControlReply {
        let request = ControlRequest {
            id: id.clone(),
            run: None,
            control,
            reason: Some("no longer wanted".into()),
            actor: Some("ops".into()),
            nonce: tenure::ids::Nonce::random(),
        };
        self.store.control(request).await.expect("a control")
    }

    pub(crate) async fn signal(&self, request: &SignalRequest) -> SignalReply {
        self.store.signal(request.clone()).await.expect("a signal")
    }

    /// Sends a signal that is accepted.
    pub(crate) async fn signalled(&self, request: &SignalRequest) {
        let reply = self.signal(request).await;
        assert!(matches!(reply, SignalReply::Accepted { .. }), "{reply:?}");
    }

    /// The instances that wait for a signal.
    pub(crate) async fn waiting(&self) -> Vec<String> {
        let scan = self
            .store
            .scan(p0(), &store::Place::Waiting, None, 100)
            .await;
        let waiting: Vec<_> = scan.expect("a read").found;
        let counts = self.store.counts(p0()).await.expect("a read");
        assert_eq!(counts.waiting, waiting.len());
        let mut names: Vec<_> = waiting.iter().map(|found| found.id.to_string()).collect();
        names.sort();
        names
    }

    pub(crate) async fn cancel(&self, id: &InstanceId) -> ControlReply {
        self.control(id, Control::Cancel).await
    }

    pub(crate) async fn snapshot(&self, id: &InstanceId) -> Snapshot {
        let snapshot = self.store.snapshot(id).await.expect("a read");
        snapshot.expect("a snapshot")
    }

    /// The record of a task as it is stored, with the nonce and the worker shortened to their presence.
    pub(crate) async fn record(&self, id: &InstanceId, name: &str) -> String {
        let snapshot = self.snapshot(id).await;
        let record = &snapshot.tasks[&task(name)];
        let known = |there: bool| if there { "n" } else { "-" };
        format!(
            "{} {} {} {} {}",
            record.state,
            record.attempt,
            known(record.nonce.is_some()),
            record.failures,
            record.crashes
        )
    }

    /// `<id>/<task>` of each entry of the default list, from its head.
    pub(crate) async fn ready(&self) -> Vec<String> {
        let tickets = self.store.ready(p0(), &list(), 1_000).await;
        let name = |id: &InstanceId, task: &TaskName| format!("{id}/{task}");
        let tickets = tickets.expect("a read");
        tickets.iter().map(|t| name(&t.id, &t.task)).collect()
    }

    /// How long the claim key of a task still lives, in milliseconds.
    pub(crate) async fn claim_left(&self, claimed: &Claimed) -> Option<u64> {
        let ticket = &claimed.ticket;
        let key = self.store.claim_key(&ticket.id, &ticket.task).await;
        key.expect("a read").map(|(_, left)| left)
    }

    pub(crate) async fn inbox(&self, name: &str) -> Inbox {
        let mailbox = MailboxId::new(name).expect("a mailbox id");
        let hints = self
            .store
            .mailbox(mailbox.clone())
            .await
            .expect("a mailbox");
        let mut inbox = Inbox { mailbox, hints };
        assert_eq!(inbox.next().await, Hint::Subscribed);
        inbox
    }

    /// Everything that was sent to a mailbox until now.
    pub(crate) async fn hints(&self, inbox: &mut Inbox) -> Vec<Hint> {
        let number = self.sentinels.fetch_add(1, Ordering::SeqCst);
        let sentinel = id(&format!("sentinel-{number}"));
        let item = StartItem {
            waiter: Some(inbox.mailbox.clone()),
            ..item_in(sentinel.as_str(), "sentinels")
        };
        self.started(item).await;
        self.cancel(&sentinel).await;
        let mut hints = Vec::new();
        loop {
            match inbox.next().await {
                Hint::Done { id, .. } if id == sentinel => return hints,
                hint => hints.push(hint),
            }
        }
    }
}

/// A mailbox under test.
pub(crate) struct Inbox {
    mailbox: MailboxId,
    hints: Hints,
}

impl Inbox {
    pub(crate) async fn next(&mut self) -> Hint {
        let hint = tokio::time::timeout(Duration::from_secs(10), self.hints.next()).await;
        hint.expect("a hint").expect("an open mailbox")
    }
}
