use std::{future::pending, num::NonZeroU16, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture};

use super::{Fault, HintFault, Link, Passage, Transition};
use crate::{
    ids::{
        DefinitionHash, InstanceId, ListName, MailboxId, Partition, RunId, TaskName, Ticket,
        ValueField, WorkerId, WorkflowName,
    },
    store::{
        Announcement, ClaimReply, ClaimRequest, ControlReply, ControlRequest, Counts,
        DefinitionRecord, ErrorRecord, ExtendRequest, Finished, Header, Held, Hint, Hints, Inspect,
        IntoStore, ListRecord, NoteReply, NoteRequest, Place, Position, Presence, ReleaseReply,
        ReleaseRequest, RetryRequest, Scan, SettleReply, SettleRequest, SignalReply, SignalRequest,
        Snapshot, StartItem, StartReply, Status, StatusEvents, Store, StoreError, Summaries,
        TickReply, TickRequest, WorkerRecord,
    },
    time::Timestamp,
};

/// How long a caller is told it has waited for a reply that did not come.
const PATIENCE: Duration = Duration::from_secs(2);

/// A store as one process sees it: every call goes over a [`Link`] on which its script lets things go wrong.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    link: Arc<Link>,
}

impl FaultyStore {
    /// A store behind a line.
    pub fn new(store: impl IntoStore, link: Arc<Link>) -> Self {
        Self {
            inner: store.into_store(),
            link,
        }
    }

    /// The line.
    #[must_use]
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// One call, with all that can go wrong.
    async fn call<T, F>(&self, transition: Transition, go: F) -> Result<T, StoreError>
    where
        F: Fn(Arc<dyn Store>) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
        T: std::fmt::Debug + Send + 'static,
    {
        let link = &self.link;
        link.pass_as(transition).await;
        let Passage { there, back, fault } = link.script.passage(transition);
        if let Fault::PauseBefore(pause) = fault {
            link.pause(pause);
        }
        wait(there).await;
        if fault == Fault::DieBefore {
            link.kill();
        }
        link.pass_as(transition).await;
        if fault == Fault::Refuse {
            wait(back).await;
            link.script.note(&|| format!("{transition} refused"));
            return Err(refused());
        }
        let reply = go(Arc::clone(&self.inner)).await;
        link.script
            .note(&|| format!("{transition} {fault:?} {reply:?}"));
        match fault {
            Fault::DieAfter => link.kill(),
            Fault::PauseAfter(pause) => link.pause(pause),
            Fault::Repeat(later) => self.repeat(transition, later, go),
            _ => {}
        }
        wait(back).await;
        link.pass_as(transition).await;
        match fault {
            Fault::LoseReply => Err(StoreError::Timeout { timeout: PATIENCE }),
            _ => reply,
        }
    }

    /// A duplicate on its way arrives whatever becomes of its process.
    fn repeat<T, F>(&self, transition: Transition, later: Duration, go: F)
    where
        F: Fn(Arc<dyn Store>) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
        T: std::fmt::Debug + Send + 'static,
    {
        let (store, script) = (Arc::clone(&self.inner), Arc::clone(&self.link.script));
        tokio::spawn(async move {
            wait(later).await;
            let reply = go(store).await;
            script.note(&|| format!("{transition} repeated {reply:?}"));
        });
    }

    async fn read<T, F>(&self, go: F) -> Result<T, StoreError>
    where
        F: Fn(Arc<dyn Store>) -> BoxFuture<'static, Result<T, StoreError>> + Send + Sync + 'static,
        T: std::fmt::Debug + Send + 'static,
    {
        self.call(Transition::Read, go).await
    }
}

async fn wait(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

fn refused() -> StoreError {
    StoreError::Unavailable {
        server: "behind a faulty line".into(),
        source: "the line is down".into(),
    }
}

/// Clones what a call needs into a future that outlives its caller.
macro_rules! sending {
    (|$store:ident $(, $kept:ident)*| $call:expr) => {{
        $(let $kept = $kept.clone();)*
        move |$store: Arc<dyn Store>| -> BoxFuture<'static, _> {
            $(let $kept = $kept.clone();)*
            Box::pin(async move { $call.await })
        }
    }};
}

#[async_trait]
impl Store for FaultyStore {
    fn partitions(&self) -> NonZeroU16 {
        self.inner.partitions()
    }

    fn max_payload(&self) -> usize {
        self.inner.max_payload()
    }

    async fn start(
        &self,
        partition: Partition,
        items: Vec<StartItem>,
    ) -> Result<Vec<StartReply>, StoreError> {
        let go = sending!(|store, items| store.start(partition, items));
        self.call(Transition::Start, go).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<ClaimReply, StoreError> {
        let script = Arc::clone(&self.link.script);
        let go = sending!(|store, request, script| async move {
            let reply = store.claim(request).await?;
            script.claimed(&reply);
            Ok(reply)
        });
        self.call(Transition::Claim, go).await
    }

    async fn extend(&self, request: ExtendRequest) -> Result<Vec<Held>, StoreError> {
        let go = sending!(|store, request| store.extend(request));
        self.call(Transition::Extend, go).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<Vec<SettleReply>, StoreError> {
        let script = Arc::clone(&self.link.script);
        let go = sending!(|store, request, script| async move {
            let replies = store.settle(request.clone()).await?;
            for (item, reply) in request.items.iter().zip(&replies) {
                script.settled(item, reply);
            }
            Ok(replies)
        });
        self.call(Transition::Settle, go).await
    }

    async fn release(&self, request: ReleaseRequest) -> Result<Vec<ReleaseReply>, StoreError> {
        let go = sending!(|store, request| store.release(request));
        self.call(Transition::Release, go).await
    }

    async fn note(&self, request: NoteRequest) -> Result<NoteReply, StoreError> {
        let go = sending!(|store, request| store.note(request));
        self.call(Transition::Note, go).await
    }

    async fn tick(&self, request: TickRequest) -> Result<TickReply, StoreError> {
        let script = Arc::clone(&self.link.script);
        let go = sending!(|store, request, script| async move {
            let reply = store.tick(request).await?;
            script.ticked(&reply);
            Ok(reply)
        });
        self.call(Transition::Tick, go).await
    }

    async fn signal(&self, request: SignalRequest) -> Result<SignalReply, StoreError> {
        let go = sending!(|store, request| store.signal(request));
        self.call(Transition::Signal, go).await
    }

    async fn control(&self, request: ControlRequest) -> Result<ControlReply, StoreError> {
        let go = sending!(|store, request| store.control(request));
        self.call(Transition::Control, go).await
    }

    async fn retry(&self, request: RetryRequest) -> Result<ControlReply, StoreError> {
        let go = sending!(|store, request| store.retry(request));
        self.call(Transition::Control, go).await
    }

    async fn watch(
        &self,
        id: &InstanceId,
        run: RunId,
        mailbox: &MailboxId,
    ) -> Result<Option<Header>, StoreError> {
        let go =
            sending!(|store, id, mailbox| async move { store.watch(&id, run, &mailbox).await });
        self.read(go).await
    }

    async fn publish(
        &self,
        workflow: &WorkflowName,
        hash: DefinitionHash,
        definition: Bytes,
    ) -> Result<(), StoreError> {
        let go = sending!(|store, workflow, definition| async move {
            store.publish(&workflow, hash, definition).await
        });
        self.read(go).await
    }

    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError> {
        let go = sending!(|store, announcement| store.announce(announcement));
        self.read(go).await
    }

    async fn definition(
        &self,
        workflow: &WorkflowName,
    ) -> Result<Option<(DefinitionHash, Bytes)>, StoreError> {
        let go = sending!(|store, workflow| async move { store.definition(&workflow).await });
        self.read(go).await
    }

    async fn published(&self, hash: DefinitionHash) -> Result<Option<Bytes>, StoreError> {
        self.read(sending!(|store| async move { store.published(hash).await }))
            .await
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.link.pass_as(Transition::Extend).await;
        let inner = self.inner.separate().await?;
        let link = Arc::clone(&self.link);
        Ok(Arc::new(Self { inner, link }))
    }

    async fn mailbox(&self, mailbox: MailboxId) -> Result<Hints, StoreError> {
        self.link.pass().await;
        let hints = self.inner.mailbox(mailbox).await?;
        let link = Arc::clone(&self.link);
        let heard = hints.filter_map(move |hint| {
            let link = Arc::clone(&link);
            async move { hear(&link, hint).await }
        });
        Ok(heard.boxed())
    }

    async fn events(&self) -> Result<StatusEvents, StoreError> {
        self.link.pass().await;
        self.inner.events().await
    }
}

/// A hint, unless it gets lost. That a subscription is new is no message that can be lost.
async fn hear(link: &Link, hint: Hint) -> Option<Hint> {
    link.pass().await;
    if hint != Hint::Subscribed {
        match link.script.hint() {
            HintFault::None => {}
            HintFault::Drop => {
                link.script.note(&|| format!("lost {hint:?}"));
                return None;
            }
            HintFault::Delay(delay) => wait(delay).await,
        }
        if link.is_dead() {
            return pending().await;
        }
        link.script.note(&|| format!("{hint:?}"));
    }
    Some(hint)
}

#[async_trait]
impl Inspect for FaultyStore {
    async fn header(&self, id: &InstanceId) -> Result<Option<Header>, StoreError> {
        self.read(sending!(|store, id| async move { store.header(&id).await }))
            .await
    }

    async fn snapshot(&self, id: &InstanceId) -> Result<Option<Snapshot>, StoreError> {
        self.read(sending!(
            |store, id| async move { store.snapshot(&id).await }
        ))
        .await
    }

    async fn errors(&self, id: &InstanceId) -> Result<Vec<ErrorRecord>, StoreError> {
        self.read(sending!(|store, id| async move { store.errors(&id).await }))
            .await
    }

    async fn values(
        &self,
        id: &InstanceId,
        run: RunId,
        fields: &[ValueField],
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let fields = fields.to_vec();
        let go = sending!(|store, id, fields| async move { store.values(&id, run, &fields).await });
        self.read(go).await
    }

    async fn counts(&self, partition: Partition) -> Result<Counts, StoreError> {
        self.read(sending!(
            |store| async move { store.counts(partition).await }
        ))
        .await
    }

    async fn finished(
        &self,
        partition: Partition,
        status: Status,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Finished>, StoreError> {
        let go =
            sending!(|store| async move { store.finished(partition, status, offset, limit).await });
        self.read(go).await
    }

    async fn running(&self, partition: Partition, limit: usize) -> Result<Vec<Ticket>, StoreError> {
        self.read(sending!(|store| async move {
            store.running(partition, limit).await
        }))
        .await
    }

    async fn delayed(
        &self,
        partition: Partition,
        limit: usize,
    ) -> Result<Vec<(Ticket, Timestamp)>, StoreError> {
        self.read(sending!(|store| async move {
            store.delayed(partition, limit).await
        }))
        .await
    }

    async fn ready(
        &self,
        partition: Partition,
        list: &ListName,
        limit: usize,
    ) -> Result<Vec<Ticket>, StoreError> {
        let go = sending!(|store, list| async move { store.ready(partition, &list, limit).await });
        self.read(go).await
    }

    async fn scan(
        &self,
        partition: Partition,
        place: &Place,
        from: Option<&Position>,
        limit: usize,
    ) -> Result<Scan, StoreError> {
        let from = from.cloned();
        let go = sending!(|store, place, from| async move {
            store.scan(partition, &place, from.as_ref(), limit).await
        });
        self.read(go).await
    }

    async fn summaries(
        &self,
        partition: Partition,
        ids: &[InstanceId],
    ) -> Result<Summaries, StoreError> {
        let ids = ids.to_vec();
        let go = sending!(|store, ids| async move { store.summaries(partition, &ids).await });
        self.read(go).await
    }

    async fn lists(&self, partition: Partition) -> Result<Vec<ListRecord>, StoreError> {
        let go = sending!(|store| async move { store.lists(partition).await });
        self.read(go).await
    }

    async fn workers(&self) -> Result<Vec<WorkerRecord>, StoreError> {
        self.read(sending!(|store| async move { store.workers().await }))
            .await
    }

    async fn definitions(&self) -> Result<Vec<DefinitionRecord>, StoreError> {
        self.read(sending!(|store| async move { store.definitions().await }))
            .await
    }

    async fn parked(&self, id: &InstanceId) -> Result<Vec<Ticket>, StoreError> {
        self.read(sending!(|store, id| async move { store.parked(&id).await }))
            .await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.read(sending!(|store| async move { store.now().await }))
            .await
    }

    async fn presence(
        &self,
        partition: Partition,
        worker: &WorkerId,
    ) -> Result<Option<Presence>, StoreError> {
        self.read(sending!(|store, worker| async move {
            store.presence(partition, &worker).await
        }))
        .await
    }

    async fn claim_key(
        &self,
        id: &InstanceId,
        task: &TaskName,
    ) -> Result<Option<(WorkerId, u64)>, StoreError> {
        let go = sending!(|store, id, task| async move { store.claim_key(&id, &task).await });
        self.read(go).await
    }
}
