//! Turns steps into calls, makes them on both stores, and compares.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use tenure::{
    OnExhausted,
    engine::{FollowUp, Limits, Next, RetryPlan, Wait},
    ids::{
        DefinitionHash, InputRef, InstanceId, ListName, MailboxId, Nonce, Partition, QueueName,
        RunId, SharedKey, SignalId, SignalName, TaskName, ValueField, WorkerId, WorkflowName,
    },
    store::{
        self, ClaimNext, ClaimRequest, Claimed, ControlRequest, ErrorKind, ErrorRecord, Event,
        ExtendRequest, Found, Hint, Hints, Holding, Inspect, ListRecord, NoteRequest, Place,
        ReleaseRequest, Retention, RetryRequest, SettleReply, SettleRequest, Settlement,
        SignalRequest, StartItem, Status, StatusEvents, Store, StoreError, TaskState, TickRequest,
        memory::Damage,
    },
    time::Timestamp,
};

use crate::{
    op::{
        Begin, By, Claim, Damaging, Fence, Follow, Forged, Lists, Op, Queued, Settle, Start, Tick,
        Verdict, Waiting, WhichRun,
    },
    stores::Stores,
};

const IDS: [&str; 3] = ["x", "y", "z"];
const WORKERS: [&str; 3] = ["w0", "w1", "w2"];
const CLIENT: &str = "client";
const SENTINEL: &str = "sentinel";
/// The longest name of a task: each follow-up is named after what it follows.
const LONGEST: usize = 40;

type Outcome = Result<(), String>;

pub(crate) struct World<'s> {
    stores: Stores<'s>,
    listeners: Vec<[Hints; 2]>,
    events: [StatusEvents; 2],
    /// All claims so far, oldest first.
    claims: Vec<Claimed>,
    /// All runs so far, oldest first.
    runs: Vec<(InstanceId, RunId)>,
    damaged: BTreeSet<RunId>,
    last_start: Option<Vec<StartItem>>,
    last_claim: Option<ClaimRequest>,
    last_settle: Option<SettleRequest>,
    last_control: Option<ControlRequest>,
    last_retry: Option<RetryRequest>,
}

fn id(text: &str) -> InstanceId {
    InstanceId::new(text).expect("an id")
}

fn name(text: &str) -> TaskName {
    TaskName::new(text).expect("a task name")
}

fn worker(number: u8) -> WorkerId {
    let number = usize::from(number) % WORKERS.len();
    WorkerId::new(WORKERS[number]).expect("a worker id")
}

fn list(second: bool) -> ListName {
    ListName {
        queue: QueueName::new(if second { "second" } else { "first" }).expect("a queue"),
        definition: DefinitionHash::from_digest([7; 8]),
    }
}

fn ms(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).expect("a duration"))
}

fn p0() -> Partition {
    Partition::default()
}

/// Two replies, of the memory store and of the Redis store.
fn same<T: PartialEq + Debug>(
    what: &str,
    memory: Result<T, StoreError>,
    redis: Result<T, StoreError>,
) -> Result<Option<T>, String> {
    match (memory, redis) {
        (Ok(memory), Ok(redis)) if memory == redis => Ok(Some(memory)),
        (Err(memory), Err(redis))
            if std::mem::discriminant(&memory) == std::mem::discriminant(&redis) =>
        {
            Ok(None)
        }
        (memory, redis) => Err(format!("{what}\nmemory: {memory:?}\nredis:  {redis:?}")),
    }
}

macro_rules! both {
    ($stores:expr, $what:expr, |$store:ident| $call:expr) => {{
        let memory = {
            let $store = &$stores.memory;
            $call.await
        };
        let redis = {
            let $store = &$stores.redis;
            $call.await
        };
        same($what, memory, redis)
    }};
}

impl<'s> World<'s> {
    pub(crate) async fn new(stores: Stores<'s>) -> Self {
        let mut listeners = Vec::new();
        for mailbox in WORKERS.iter().chain([&CLIENT]) {
            let mailbox = MailboxId::new(mailbox).expect("a mailbox");
            let memory = stores.memory.mailbox(mailbox.clone()).await;
            let redis = stores.redis.mailbox(mailbox).await;
            let mut pair = [memory.expect("a mailbox"), redis.expect("a mailbox")];
            for hints in &mut pair {
                assert_eq!(hints.next().await, Some(Hint::Subscribed));
            }
            listeners.push(pair);
        }
        let memory = stores.memory.events().await.expect("events");
        let redis = stores.redis.events().await.expect("events");
        Self {
            stores,
            listeners,
            events: [memory, redis],
            claims: Vec::new(),
            runs: Vec::new(),
            damaged: BTreeSet::new(),
            last_start: None,
            last_claim: None,
            last_settle: None,
            last_control: None,
            last_retry: None,
        }
    }

    pub(crate) async fn apply(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Start(items) => {
                let items: Vec<StartItem> = items.iter().map(start_item).collect();
                self.start(self.dated(items)).await
            }
            Op::StartAgain => match self.last_start.clone() {
                Some(items) => self.start(items).await,
                None => Ok(()),
            },
            Op::Claim(claim) => self.claim(claim_request(claim)).await,
            Op::ClaimAgain => match self.last_claim.clone() {
                Some(request) => self.claim(request).await,
                None => Ok(()),
            },
            Op::Settle { by, items } => self.settle(*by, items).await,
            Op::SettleAgain => match self.last_settle.clone() {
                Some(request) => self.settle_call(request).await,
                None => Ok(()),
            },
            Op::Extend { by, items, ttl } => self.extend(*by, items, *ttl).await,
            Op::Release { by, items, leave } => self.release(*by, items, *leave).await,
            Op::Note {
                fence,
                number,
                progress,
                shared,
            } => self.note(*fence, *number, *progress, shared).await,
            Op::Tick(tick) => self.tick(tick).await,
            Op::Signal {
                id,
                name,
                number,
                run,
            } => self.signal(*id, *name, *number, *run).await,
            Op::Control { id, control, run } => self.control(*id, *control, *run).await,
            Op::ControlAgain => match self.last_control.clone() {
                Some(request) => self.control_call(request).await,
                None => Ok(()),
            },
            Op::Retry {
                id,
                run,
                stale,
                pick,
                fates,
                wait,
            } => {
                let fates = (*pick, *fates, *wait);
                self.retry(*id, *run, *stale, fates).await
            }
            Op::RetryAgain => match self.last_retry.clone() {
                Some(request) => self.retry_call(request).await,
                None => Ok(()),
            },
            Op::Watch { id, run } => self.watch(*id, *run).await,
            Op::Pass(millis) => {
                if *millis < 0 {
                    self.tick(&Tick::IDLE).await?;
                    self.stores.sweep();
                }
                self.stores.pass(*millis);
                Ok(())
            }
            Op::Damage { id, how } => {
                self.damage(*id, *how).await;
                Ok(())
            }
        }
    }

    /// Turns times that are meant from now into times.
    fn dated(&self, mut items: Vec<StartItem>) -> Vec<StartItem> {
        for item in &mut items {
            if let store::Begin::At(from_now) = item.begin {
                let at = self.stores.now().as_millis() + from_now.as_millis();
                item.begin = store::Begin::At(Timestamp::from_millis(at));
            }
        }
        items
    }

    async fn start(&mut self, items: Vec<StartItem>) -> Outcome {
        both!(self.stores, "start", |s| s.start(p0(), items.clone()))?;
        self.runs
            .extend(items.iter().map(|i| (i.id.clone(), i.run)));
        self.last_start = Some(items);
        Ok(())
    }

    async fn claim(&mut self, request: ClaimRequest) -> Outcome {
        let reply = both!(self.stores, "claim", |s| s.claim(request.clone()))?;
        let claims = reply.map(|r| r.claims).unwrap_or_default();
        self.claims.extend(claims);
        self.last_claim = Some(request);
        Ok(())
    }

    async fn settle(&mut self, by: By, items: &[Settle]) -> Outcome {
        let settlements: Vec<Settlement> = items
            .iter()
            .filter_map(|item| Some(settlement(item, self.pick(item.fence)?)))
            .collect();
        let Some(first) = settlements.first() else {
            return Ok(());
        };
        let request = SettleRequest {
            partition: p0(),
            worker: self.caller(by, Some(&first.holding)),
            ttl: ms(1_000),
            items: settlements,
        };
        self.settle_call(request).await
    }

    async fn settle_call(&mut self, request: SettleRequest) -> Outcome {
        let replies = both!(self.stores, "settle", |s| s.settle(request.clone()))?;
        let nexts = replies.into_iter().flatten().filter_map(|r| match r {
            SettleReply::Stored { next } => next.map(|next| *next),
            _ => None,
        });
        self.claims.extend(nexts);
        self.last_settle = Some(request);
        Ok(())
    }

    async fn extend(&mut self, by: By, items: &[Fence], ttl: i64) -> Outcome {
        let items = self.holdings(items);
        let worker = self.caller(by, items.first());
        let request = ExtendRequest {
            partition: p0(),
            worker,
            ttl: ms(ttl),
            items,
        };
        both!(self.stores, "extend", |s| s.extend(request.clone())).map(|_| ())
    }

    async fn release(&mut self, by: By, items: &[Fence], leave: bool) -> Outcome {
        let items = self.holdings(items);
        let worker = self.caller(by, items.first());
        let request = ReleaseRequest {
            partition: p0(),
            worker,
            items,
            leave,
        };
        both!(self.stores, "release", |s| s.release(request.clone())).map(|_| ())
    }

    async fn note(&mut self, fence: Fence, number: u64, progress: bool, shared: &[u8]) -> Outcome {
        let Some(holding) = self.pick(fence) else {
            return Ok(());
        };
        let own = ValueField::Progress(holding.ticket.task.clone());
        let key = |n: &u8| ValueField::Shared(SharedKey::new(format!("k{n}")).expect("a key"));
        let fields: BTreeSet<_> = progress
            .then_some(own)
            .into_iter()
            .chain(shared.iter().map(key))
            .collect();
        let value = Bytes::from(vec![u8::try_from(number).expect("a small number")]);
        let request = NoteRequest {
            partition: p0(),
            holding,
            number,
            values: fields
                .into_iter()
                .map(|field| (field, value.clone()))
                .collect(),
        };
        both!(self.stores, "note", |s| s.note(request.clone())).map(|_| ())
    }

    async fn tick(&mut self, tick: &Tick) -> Outcome {
        let now = self.stores.now().as_millis();
        let expected = tick.expected.map(|off| Timestamp::from_millis(now - off));
        let kept = ms(tick.retention);
        let request = TickRequest {
            partition: p0(),
            keeper: tick.keeper.map(|w| (worker(w), ms(30_000))),
            expected,
            promote: tick.promote,
            reap: tick.reap,
            prune: tick.prune,
            crash_delay: ms(tick.crash_delay),
            ttl: ms(1_000),
            retention: Retention {
                completed: kept,
                failed: kept * 2,
                cancelled: kept,
            },
        };
        both!(self.stores, "tick", |s| s.tick(request.clone())).map(|_| ())
    }

    async fn signal(&mut self, of: u8, name: u8, number: u8, run: WhichRun) -> Outcome {
        let of = id(IDS[usize::from(of)]);
        let request = SignalRequest {
            run: self.run(&of, run),
            id: of,
            // One of five is awaited by nobody.
            name: signal_name(["s", "r", "s", "r", "q"][usize::from(name)]),
            signal: SignalId::new(format!("signal-{number}")).expect("an id"),
            payload: Bytes::from(vec![number; usize::from(number)]),
        };
        both!(self.stores, "signal", |s| s.signal(request.clone())).map(|_| ())
    }

    async fn control(&mut self, of: u8, control: store::Control, run: WhichRun) -> Outcome {
        let of = id(IDS[usize::from(of)]);
        let request = ControlRequest {
            run: self.run(&of, run),
            id: of,
            control,
            reason: Some("a reason".into()),
            actor: None,
            nonce: Nonce::random(),
        };
        self.control_call(request).await
    }

    async fn control_call(&mut self, request: ControlRequest) -> Outcome {
        let reply = both!(self.stores, "control", |s| s.control(request.clone()));
        self.last_control = Some(request);
        reply.map(|_| ())
    }

    /// A plan for the instance as it is: one task begins again, the others go on, are taken back or stay. What is damaged
    /// is not retried: what a retry writes over it would be the record again, in one of the stores.
    async fn retry(
        &mut self,
        of: u8,
        run: WhichRun,
        stale: bool,
        fates: (u8, u16, i64),
    ) -> Outcome {
        let of = id(IDS[usize::from(of)]);
        let Ok(Some(snapshot)) = self.stores.memory.snapshot(&of).await else {
            return Ok(());
        };
        let run = self.run(&of, run).unwrap_or(snapshot.header.run);
        if snapshot.tasks.is_empty() {
            return Ok(());
        }
        let died_at = snapshot.finished_at.unwrap_or_default();
        let request = RetryRequest {
            id: of,
            run,
            died_at: if stale { died_at.plus(ms(1)) } else { died_at },
            plan: plan(&snapshot, fates),
            reason: None,
            actor: Some("somebody".into()),
            nonce: Nonce::random(),
        };
        self.retry_call(request).await
    }

    async fn retry_call(&mut self, request: RetryRequest) -> Outcome {
        let reply = both!(self.stores, "retry", |s| s.retry(request.clone()));
        self.last_retry = Some(request);
        reply.map(|_| ())
    }

    async fn watch(&mut self, of: u8, run: WhichRun) -> Outcome {
        let of = id(IDS[usize::from(of)]);
        let Some(run) = self.run(&of, run) else {
            return Ok(());
        };
        let client = MailboxId::new(CLIENT).expect("a mailbox");
        both!(self.stores, "watch", |s| s.watch(&of, run, &client)).map(|_| ())
    }

    /// Each run is damaged at most once, and a task only while its record is there.
    async fn damage(&mut self, of: u8, how: Damaging) {
        let of = id(IDS[usize::from(of)]);
        let Ok(Some(snapshot)) = self.stores.memory.snapshot(&of).await else {
            return;
        };
        let damage = match how {
            Damaging::Format => Damage::Format("2".into()),
            Damaging::Task => Damage::Task(name("t0"), "ready or not".into()),
            Damaging::Foreign => Damage::Foreign,
        };
        if self.damaged.insert(snapshot.header.run) {
            self.stores.damage(&of, damage);
        }
    }

    /// A run of an id: the newest that was asked for, or the one before it.
    fn run(&self, of: &InstanceId, which: WhichRun) -> Option<RunId> {
        let mut runs = self.runs.iter().rev().filter(|(id, _)| id == of);
        match which {
            WhichRun::Any => None,
            WhichRun::Newest => runs.next(),
            WhichRun::Older => runs.nth(1),
        }
        .map(|(_, run)| *run)
    }

    /// Who calls: the owner of what is called for, or of the newest claim.
    fn caller(&self, by: By, first: Option<&Holding>) -> WorkerId {
        let newest = || self.claims.last().map(|claim| &claim.record);
        let record = first.map(|holding| &holding.record).or_else(newest);
        match by {
            By::Owner => record
                .and_then(|r| r.worker.clone())
                .unwrap_or_else(|| worker(0)),
            By::Worker(number) => worker(number),
        }
    }

    fn holdings(&self, fences: &[Fence]) -> Vec<Holding> {
        fences.iter().filter_map(|f| self.pick(*f)).collect()
    }

    fn pick(&self, fence: Fence) -> Option<Holding> {
        let newest_first = usize::from(fence.pick) % self.claims.len().max(1);
        let claim = self.claims.iter().rev().nth(newest_first)?;
        let mut holding = Holding {
            ticket: claim.ticket.clone(),
            run: claim.run,
            record: claim.record.clone(),
        };
        match fence.forged {
            Forged::No => {}
            Forged::Nonce => holding.record.nonce = Some(Nonce::random()),
            Forged::Run => holding.run = RunId::unique(),
            Forged::Attempt => holding.record.attempt += 1,
            Forged::Deadline => holding.record.deadline = Some(claim.now),
        }
        Some(holding)
    }

    /// Everything that can be read.
    pub(crate) async fn compare_state(&self) -> Outcome {
        let s = &self.stores;
        for of in IDS.map(id) {
            let snapshot = both!(s, "snapshot", |s| s.snapshot(&of))?.flatten();
            both!(s, "header", |s| s.header(&of))?;
            both!(s, "errors", |s| s.errors(&of))?;
            both!(s, "parked", |s| s.parked(&of))?;
            let Some(snapshot) = snapshot else { continue };
            let fields: Vec<ValueField> = snapshot.values.keys().cloned().collect();
            let run = snapshot.header.run;
            both!(s, "values", |s| s.values(&of, run, &fields))?;
        }
        for second in [false, true] {
            let list = list(second);
            both!(s, "ready", |s| s.ready(p0(), &list, 1_000))?;
        }
        both!(s, "running", |s| s.running(p0(), 1_000))?;
        both!(s, "delayed", |s| s.delayed(p0(), 1_000))?;
        both!(s, "counts", |s| s.counts(p0()))?;
        let ids = IDS.map(id);
        both!(s, "summaries", |s| s.summaries(p0(), &ids))?;
        let lists = both!(s, "lists", |s| lists(s))?;
        let lists = lists.into_iter().flatten().map(|l| Place::Ready(l.list));
        let done = Status::ALL.into_iter().filter(|s| s.is_terminal());
        let sets = [
            Place::Delayed,
            Place::Running,
            Place::Waiting,
            Place::Paused,
        ];
        for place in lists.chain(sets).chain(done.map(Place::Done)) {
            both!(s, "place", |s| whole(s, &place))?;
        }
        for status in Status::ALL.into_iter().filter(|s| s.is_terminal()) {
            both!(s, "finished", |s| s.finished(p0(), status, 0, 1_000))?;
        }
        let tasks: BTreeSet<_> = self
            .claims
            .iter()
            .map(|c| (&c.ticket.id, &c.ticket.task))
            .collect();
        for (of, task) in tasks {
            both!(s, "claim key", |s| s.claim_key(of, task))?;
        }
        Ok(())
    }

    /// Hints and events of the whole sequence. Of those that one call sends to one mailbox the order is not fixed.
    pub(crate) async fn compare_messages(mut self) -> Outcome {
        let client = MailboxId::new(CLIENT).expect("a mailbox");
        let sentinel = StartItem {
            waiter: Some(client),
            ..start_item(&Start {
                id: 0,
                policy: store::IdPolicy::Fail,
                begin: Begin::Now,
                first: vec![Queued {
                    list: false,
                    delay: 0,
                }],
                max_crashes: 0,
                pauses: false,
                waiter: false,
            })
        };
        for mailbox in WORKERS.iter().chain([&CLIENT]) {
            let number = self.runs.len();
            let of = id(&format!("{SENTINEL}-{number}"));
            let item = StartItem {
                id: of.clone(),
                run: RunId::unique(),
                waiter: Some(MailboxId::new(mailbox).expect("a mailbox")),
                ..sentinel.clone()
            };
            self.start(vec![item]).await?;
            let cancel = ControlRequest {
                id: of,
                run: None,
                control: store::Control::Cancel,
                reason: None,
                actor: None,
                nonce: Nonce::random(),
            };
            both!(self.stores, "sentinel", |s| s.control(cancel.clone()))?;
        }
        for (listener, [memory, redis]) in self.listeners.iter_mut().enumerate() {
            let (memory, redis) = (until_sentinel(memory).await, until_sentinel(redis).await);
            if memory != redis {
                return Err(format!(
                    "hints to {listener}\nmemory: {memory:?}\nredis:  {redis:?}"
                ));
            }
        }
        let [memory, redis] = &mut self.events;
        loop {
            let (memory, redis) = (memory.next().await, redis.next().await);
            if memory != redis {
                return Err(format!("event\nmemory: {memory:?}\nredis:  {redis:?}"));
            }
            let is_last = match memory {
                Some(Event::Changed(event)) => event.id.as_str().starts_with(SENTINEL),
                _ => true,
            };
            if is_last {
                return Ok(());
            }
        }
    }
}

/// Ready lists with something in them: an empty one may be known to one store alone.
async fn lists(store: &dyn Store) -> Result<Vec<ListRecord>, StoreError> {
    let mut lists = store.lists(p0()).await?;
    lists.retain(|list| list.ready > 0);
    Ok(lists)
}

/// All that stands in a place, read in small pieces.
async fn whole(store: &dyn Store, place: &Place) -> Result<Vec<String>, StoreError> {
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let scan = store.scan(p0(), place, from.as_ref(), 2).await?;
        let name = |found: &Found| format!("{} {:?} {:?}", found.id, found.task, found.tail);
        all.extend(scan.found.iter().map(name));
        match scan.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    // Sets have no order.
    if matches!(place, Place::Waiting | Place::Paused) {
        all.sort();
    }
    Ok(all)
}

async fn until_sentinel(hints: &mut Hints) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let hint = tokio::time::timeout(Duration::from_secs(10), hints.next()).await;
        match hint {
            Ok(Some(Hint::Done { id, .. })) if id.as_str().starts_with(SENTINEL) => break,
            Ok(Some(hint)) => seen.push(format!("{hint:?}")),
            Ok(None) | Err(_) => {
                seen.push("nothing more".to_owned());
                break;
            }
        }
    }
    seen.sort();
    seen
}

fn next(task: &str, queued: Queued, input: InputRef) -> FollowUp {
    let next = Next {
        task: name(task),
        list: list(queued.list),
        input,
        limits: limits(task),
    };
    match queued.delay {
        0 => FollowUp::Ready(next),
        delay => FollowUp::After {
            next,
            delay: ms(delay),
        },
    }
}

fn signal_name(text: &str) -> SignalName {
    SignalName::new(text).expect("a name")
}

fn wait_for(waiting: Waiting) -> Wait {
    Wait {
        signal: signal_name(if waiting.signal { "s" } else { "r" }),
        timeout: waiting.timeout.map(ms),
    }
}

/// Some tasks are bounded, and always in the same way.
fn limits(task: &str) -> Limits {
    match task.len() % 3 {
        0 => Limits {
            timeout: Some(ms(900)),
            deadline: Some(ms(1_800)),
        },
        _ => Limits::NONE,
    }
}

fn start_item(start: &Start) -> StartItem {
    let input = Bytes::from_static(b"\xa5input");
    let field = InputRef::Field {
        field: ValueField::Input,
        len: input.len(),
    };
    let first = start.first.iter().enumerate();
    StartItem {
        id: id(IDS[usize::from(start.id)]),
        run: RunId::unique(),
        policy: start.policy,
        workflow: WorkflowName::new("w").expect("a name"),
        definition: list(false).definition,
        queue: QueueName::default(),
        begin: match start.begin {
            Begin::Now => store::Begin::Now,
            Begin::After(delay) => store::Begin::After(ms(delay)),
            Begin::At(from_now) => store::Begin::At(Timestamp::from_millis(from_now)),
        },
        signals: ["s", "r"].map(signal_name).into(),
        first: first
            .map(|(i, queued)| next(&format!("t{i}"), *queued, field.clone()))
            .collect(),
        input,
        meta: (start.max_crashes == 1).then(|| Bytes::from_static(b"\x80")),
        max_crashes: start.max_crashes,
        on_exhausted: if start.pauses {
            OnExhausted::Pause
        } else {
            OnExhausted::Fail
        },
        waiter: start
            .waiter
            .then(|| MailboxId::new(CLIENT).expect("a mailbox")),
    }
}

fn claim_request(claim: &Claim) -> ClaimRequest {
    let lists = match claim.lists {
        Lists::First => vec![list(false)],
        Lists::Second => vec![list(true)],
        Lists::Both => vec![list(false), list(true)],
        Lists::Reversed => vec![list(true), list(false)],
    };
    let mut bounded = store::TaskLimits::new();
    if let Some((timeout, deadline)) = claim.bounds {
        let limits = Limits {
            timeout: timeout.map(ms),
            deadline: deadline.map(ms),
        };
        for list in [list(false), list(true)] {
            let tasks = ["t0", "t1", "j0", "t00"].map(|task| (name(task), limits));
            bounded.insert(list, tasks.into());
        }
    }
    ClaimRequest {
        partition: p0(),
        worker: worker(claim.worker),
        nonce: Nonce::random(),
        want: claim.want,
        lists,
        ttl: ms(claim.ttl),
        limits: Arc::new(bounded),
        parking: claim.parking,
    }
}

/// What begins again, goes on and is taken back: two bits of a number say it for each task.
fn plan(snapshot: &store::Snapshot, (pick, fates, wait): (u8, u16, i64)) -> RetryPlan {
    let next = |task: &TaskName| Next {
        task: task.clone(),
        list: list(task.as_str().starts_with('j')),
        input: InputRef::Field {
            field: if fates & 0x200 == 0 {
                ValueField::Input
            } else {
                ValueField::Output(task.clone())
            },
            len: 6,
        },
        limits: Limits::NONE,
    };
    let first = usize::from(pick) % snapshot.tasks.len();
    let mut plan = RetryPlan::default();
    for (i, (task, record)) in snapshot.tasks.iter().enumerate() {
        let fate = fates >> (2 * (i % 8)) & 3;
        match fate {
            _ if i == first && wait > 0 => plan.again.push(FollowUp::After {
                next: next(task),
                delay: ms(wait),
            }),
            _ if i == first => plan.again.push(FollowUp::Ready(next(task))),
            0 if record.state == TaskState::Closed => plan.go_on.push(next(task)),
            1 => {
                plan.clear.insert(task.clone());
            }
            _ => {}
        }
    }
    for (join, record) in &snapshot.joins {
        if fates & 0x100 != 0 {
            let stay = usize::from(pick) % (record.who.len() + 1);
            plan.joins.insert(join.clone(), record.who[..stay].to_vec());
        }
    }
    plan
}

fn settlement(settle: &Settle, holding: Holding) -> Settlement {
    let task = holding.ticket.task.clone();
    let error = |message: &str| ErrorRecord {
        kind: ErrorKind::Error,
        task: task.clone(),
        attempt: holding.record.attempt,
        message: message.to_owned(),
        worker: holding.record.worker.clone(),
        at: 1,
    };
    let verdict = match &settle.verdict {
        Verdict::Completed { output, follow_ups } => store::Verdict::Completed {
            output: output.then(|| Bytes::from(task.as_str().to_owned())),
            follow_ups: follow_ups_of(&task, follow_ups),
        },
        Verdict::Wait(waiting) => store::Verdict::Wait(wait_for(*waiting)),
        Verdict::Retry(after) => store::Verdict::Retry {
            after: ms(*after),
            error: error("again"),
        },
        Verdict::Failed => store::Verdict::Failed {
            error: error("no\tmore"),
        },
        Verdict::Paused => store::Verdict::Paused {
            error: error("a person\nhas to look"),
        },
    };
    let claim_next = settle.claim_next.and_then(|(follow_up, only_if_empty)| {
        let store::Verdict::Completed { follow_ups, .. } = &verdict else {
            return None;
        };
        let follow_up = usize::from(follow_up);
        let can = follow_ups
            .get(follow_up)
            .is_some_and(|f| matches!(f, FollowUp::Ready(_) | FollowUp::Arrive { .. }));
        can.then(|| ClaimNext {
            follow_up,
            nonce: Nonce::random(),
            only_if_empty,
        })
    });
    Settlement {
        holding,
        verdict,
        claim_next,
    }
}

/// Follow-ups are named after what they follow, so that none is met twice; joins have two names for all.
fn follow_ups_of(task: &TaskName, follow_ups: &[Follow]) -> Vec<FollowUp> {
    let output = ValueField::Output(task.clone());
    let input = InputRef::Field {
        field: output.clone(),
        len: task.as_str().len(),
    };
    let mut joins = BTreeSet::new();
    let mut made = Vec::new();
    for (i, follow_up) in follow_ups.iter().enumerate() {
        match follow_up {
            Follow::Ready(_) if task.as_str().len() >= LONGEST => {}
            Follow::Ready(queued) => made.push(next(&format!("{task}{i}"), *queued, input.clone())),
            Follow::Arrive { join, need } => {
                let join = if *join { "j" } else { "k" };
                // A branch arrives once, and a join does not arrive at itself.
                if task.as_str().starts_with(['j', 'k']) || !joins.insert(join) {
                    continue;
                }
                let queued = Queued {
                    list: join == "j",
                    delay: 0,
                };
                if let FollowUp::Ready(next) = next(join, queued, InputRef::Join) {
                    let (need, total) = (*need, 3);
                    made.push(FollowUp::Arrive { next, need, total });
                }
            }
            Follow::Wait { .. } if task.as_str().len() >= LONGEST => {}
            Follow::Wait { list, wait } => {
                let queued = Queued {
                    list: *list,
                    delay: 0,
                };
                let node = name(&format!("{task}{i}"));
                let own = InputRef::Field {
                    field: ValueField::Output(node.clone()),
                    len: 0,
                };
                if let FollowUp::Ready(next) = next(node.as_str(), queued, own) {
                    let wait = wait_for(*wait);
                    made.push(FollowUp::Wait { next, wait });
                }
            }
            Follow::End => made.push(FollowUp::End {
                result: output.clone(),
            }),
        }
    }
    made
}
