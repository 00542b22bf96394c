//! A store that counts its calls and fails them on demand, and a few waits on conditions.

use std::{
    collections::HashMap,
    num::NonZeroU16,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tenure::{
    ids::{
        DefinitionHash, InstanceId, ListName, MailboxId, Partition, RunId, TaskName, Ticket,
        ValueField, WorkerId, WorkflowName,
    },
    store::{
        Announcement, ClaimReply, ClaimRequest, ControlReply, ControlRequest, Counts,
        DefinitionRecord, ErrorRecord, ExtendRequest, Finished, Header, Held, Hints, Inspect,
        ListRecord, NoteReply, NoteRequest, Place, Position, Presence, ReleaseReply,
        ReleaseRequest, RetryRequest, Scan, SettleReply, SettleRequest, Settlement, SignalReply,
        SignalRequest, Snapshot, StartItem, StartReply, Status, StatusEvents, Store, StoreError,
        Summaries, TickReply, TickRequest, Verdict, WorkerRecord, memory::MemoryStore,
    },
    time::Timestamp,
};

/// What a call of this store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is carried out, and the caller gets an error.
    Refuse,
    /// The same, with an error that no repeat will mend.
    RefuseForGood,
    /// The same, with an error that somebody else has to mend.
    Login,
    /// It is carried out, and the caller gets an error.
    LoseReply,
    /// Nothing is carried out, and the caller panics.
    Panic,
}

#[derive(Debug, Default)]
struct State {
    faults: Mutex<HashMap<&'static str, (Fault, usize)>>,
    away: AtomicBool,
    calls: Mutex<HashMap<&'static str, usize>>,
    most_claimed: AtomicUsize,
    wants: Mutex<Vec<u16>>,
    too_narrow: AtomicBool,
}

/// A [`MemoryStore`] behind a bad line.
#[derive(Debug, Clone)]
pub(crate) struct Flaky {
    pub(crate) inner: MemoryStore,
    state: Arc<State>,
}

impl Flaky {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            state: Arc::default(),
        }
    }

    /// The next `times` calls of this name fail.
    pub(crate) fn fail(&self, call: &'static str, fault: Fault, times: usize) {
        self.state
            .faults
            .lock()
            .unwrap()
            .insert(call, (fault, times));
    }

    /// Whether every call is refused.
    pub(crate) fn set_away(&self, away: bool) {
        self.state.away.store(away, Ordering::SeqCst);
    }

    /// Whether results of over 256 KiB never get through.
    pub(crate) fn set_too_narrow(&self, narrow: bool) {
        self.state.too_narrow.store(narrow, Ordering::SeqCst);
    }

    /// How many calls of this name were made.
    pub(crate) fn calls(&self, call: &'static str) -> usize {
        self.state
            .calls
            .lock()
            .unwrap()
            .get(call)
            .copied()
            .unwrap_or(0)
    }

    /// How many calls of all names were made.
    pub(crate) fn all_calls(&self) -> usize {
        self.state.calls.lock().unwrap().values().sum()
    }

    /// The most claims that one heartbeat extended.
    pub(crate) fn most_claimed(&self) -> usize {
        self.state.most_claimed.load(Ordering::SeqCst)
    }

    /// What each claim asked for.
    pub(crate) fn wants(&self) -> Vec<u16> {
        self.state.wants.lock().unwrap().clone()
    }

    fn fault(&self, call: &'static str) -> Option<Fault> {
        *self.state.calls.lock().unwrap().entry(call).or_default() += 1;
        if self.state.away.load(Ordering::SeqCst) {
            return Some(Fault::Refuse);
        }
        let mut faults = self.state.faults.lock().unwrap();
        let (fault, times) = faults.get_mut(call)?;
        *times = times.checked_sub(1)?;
        Some(*fault)
    }

    async fn through<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let unavailable = || StoreError::Unavailable {
            server: "test".into(),
            source: "the line is cut".into(),
        };
        match self.fault(name) {
            None => call.await,
            Some(Fault::Refuse) => Err(unavailable()),
            Some(Fault::RefuseForGood) => Err(StoreError::Protocol {
                call: name,
                reason: "nobody knows why".into(),
            }),
            Some(Fault::Login) => Err(StoreError::Login),
            Some(Fault::Panic) => panic!("a fault of the store in {name}"),
            Some(Fault::LoseReply) => {
                call.await?;
                Err(unavailable())
            }
        }
    }
}

#[async_trait]
impl Store for Flaky {
    fn partitions(&self) -> NonZeroU16 {
        self.inner.partitions()
    }

    fn max_payload(&self) -> usize {
        self.inner.max_payload()
    }

    async fn start(
        &self,
        p: Partition,
        items: Vec<StartItem>,
    ) -> Result<Vec<StartReply>, StoreError> {
        self.through("start", self.inner.start(p, items)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimReply, StoreError> {
        self.state.wants.lock().unwrap().push(request.want);
        self.through("claim", self.inner.claim(request)).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Held>, StoreError> {
        self.state
            .most_claimed
            .fetch_max(request.items.len(), Ordering::SeqCst);
        self.through("extend", self.inner.extend(request)).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<Vec<SettleReply>, StoreError> {
        let large = |item: &Settlement| match &item.verdict {
            Verdict::Completed { output, .. } => {
                output.as_ref().is_some_and(|o| o.len() > 256 * 1024)
            }
            Verdict::Wait(_)
            | Verdict::Retry { .. }
            | Verdict::Failed { .. }
            | Verdict::Paused { .. } => false,
        };
        if self.state.too_narrow.load(Ordering::SeqCst) && request.items.iter().any(large) {
            *self.state.calls.lock().unwrap().entry("large").or_default() += 1;
            return Err(StoreError::Timeout {
                timeout: Duration::from_secs(30),
            });
        }
        self.through("settle", self.inner.settle(request)).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, StoreError> {
        self.through("release", self.inner.release(request)).await
    }

    async fn note(&self, request: NoteRequest) -> Result<NoteReply, StoreError> {
        self.through("note", self.inner.note(request)).await
    }

    async fn tick(&self, request: TickRequest) -> Result<TickReply, StoreError> {
        self.through("tick", self.inner.tick(request)).await
    }

    async fn signal(&self, request: SignalRequest) -> Result<SignalReply, StoreError> {
        self.through("signal", self.inner.signal(request)).await
    }

    async fn control(&self, request: ControlRequest) -> Result<ControlReply, StoreError> {
        self.through("control", self.inner.control(request)).await
    }

    async fn retry(&self, request: RetryRequest) -> Result<ControlReply, StoreError> {
        self.through("retry", self.inner.retry(request)).await
    }

    async fn watch(
        &self,
        id: &InstanceId,
        run: RunId,
        mailbox: &MailboxId,
    ) -> Result<Option<Header>, StoreError> {
        self.through("watch", self.inner.watch(id, run, mailbox))
            .await
    }

    async fn publish(
        &self,
        workflow: &WorkflowName,
        hash: DefinitionHash,
        definition: Bytes,
    ) -> Result<(), StoreError> {
        self.through("publish", self.inner.publish(workflow, hash, definition))
            .await
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        self.through("announce", self.inner.announce(announcement))
            .await
    }

    async fn definition(
        &self,
        workflow: &WorkflowName,
    ) -> Result<Option<(DefinitionHash, Bytes)>, StoreError> {
        self.through("definition", self.inner.definition(workflow))
            .await
    }

    async fn published(&self, hash: DefinitionHash) -> Result<Option<Bytes>, StoreError> {
        self.through("published", self.inner.published(hash)).await
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn mailbox(&self, mailbox: MailboxId) -> Result<Hints, StoreError> {
        self.through("mailbox", self.inner.mailbox(mailbox)).await
    }

    async fn events(&self) -> Result<StatusEvents, StoreError> {
        self.inner.events().await
    }
}

#[async_trait]
impl Inspect for Flaky {
    async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError> {
        self.through("header", self.inner.header(id)).await
    }

    async fn snapshot(&self, id: &InstanceId) -> Result<Option<Snapshot>, StoreError> {
        self.through("snapshot", self.inner.snapshot(id)).await
    }

    async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError> {
        self.inner.errors(id).await
    }

    async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.through("values", self.inner.values(id, run, fields))
            .await
    }

    async fn counts(&self, p: Partition) -> Result<Counts, StoreError> {
        self.through("counts", self.inner.counts(p)).await
    }

    async fn finished(
        &self,
        p: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError> {
        self.inner.finished(p, status, offset, limit).await
    }

    async fn running(&self, p: Partition, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.inner.running(p, limit).await
    }

    async fn delayed(
        &self,
        p: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError> {
        self.inner.delayed(p, limit).await
    }

    async fn ready(
        &self,
        p: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        self.inner.ready(p, list, limit).await
    }

    async fn scan(
        &self,
        p: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        self.inner.scan(p, place, from, limit).await
    }

    async fn summaries(&self, p: Partition, ids: &[InstanceId]) -> Result<Summaries, StoreError> {
        self.inner.summaries(p, ids).await
    }

    async fn lists(&self, p: Partition) -> Result<Vec<ListRecord>, StoreError> {
        self.inner.lists(p).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.inner.workers().await
    }

    async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        self.inner.definitions().await
    }

    async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError> {
        self.inner.parked(id).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError> {
        self.inner.presence(partition, worker).await
    }

    async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError> {
        self.inner.claim_key(id, task).await
    }
}

/// Waits until something is so; fails after 10 s.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(10), wait)
        .await
        .is_err()
    {
        panic!("not within 10 s: {what}");
    }
}

/// A worker with the times of a test: a claim holds 300 ms, everything is looked at every few milliseconds.
pub(crate) fn quick(store: impl tenure::store::IntoStore) -> tenure::worker::WorkerBuilder {
    tenure::worker::Worker::builder(store)
        .claim_ttl(Duration::from_millis(300))
        .poll_interval(Duration::from_millis(50))
        .reap_interval(Duration::from_millis(20))
        .crash_delay(Duration::from_millis(10))
}

/// The only partition of a store that has one.
pub(crate) fn partition() -> Partition {
    Partition::default()
}

/// The name of a task.
pub(crate) fn task(name: &str) -> TaskName {
    TaskName::new(name).unwrap()
}

/// An instance id.
pub(crate) fn instance(id: &str) -> InstanceId {
    InstanceId::new(id).unwrap()
}

/// Says what it counts, also while it counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<(AtomicUsize, AtomicUsize, AtomicUsize)>);

impl Gauge {
    /// One more at the same time, until the guard is dropped.
    pub(crate) fn enter(&self) -> GaugeGuard {
        let (now, most, all) = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        all.fetch_add(1, Ordering::SeqCst);
        GaugeGuard(self.clone())
    }

    /// How many there are now.
    pub(crate) fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    /// How many there were at once, at most.
    pub(crate) fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    /// How many there were in all.
    pub(crate) fn all(&self) -> usize {
        self.0.2.load(Ordering::SeqCst)
    }
}

/// See [`Gauge::enter`].
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
