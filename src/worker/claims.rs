use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::notes::Notes;
use crate::{
    ids::{InstanceId, Partition, RunTail},
    store::{Claimed, Held, Holding, Store},
};

/// A claim that this worker believes to hold.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) claimed: Claimed,
    /// When the reply that brought it was read.
    pub(crate) since: Instant,
    /// It belongs to somebody else: stop at once, store nothing.
    pub(crate) lost: CancellationToken,
    /// The instance is over: the handler is told, and stopped when it does not listen.
    pub(crate) cancelled: CancellationToken,
    /// What its task writes down.
    pub(crate) notes: Notes,
}

impl Claim {
    /// What the store compares.
    pub(crate) fn holding(&self) -> Holding {
        Holding {
            ticket: self.claimed.ticket.clone(),
            run: self.claimed.run,
            record: self.claimed.record.clone(),
        }
    }

    /// What a heartbeat learned.
    pub(crate) fn learn(&self, held: Held) {
        match held {
            Held::Ok => {}
            Held::Lost => self.lost.cancel(),
            Held::Cancelled => self.cancelled.cancel(),
        }
    }
}

/// All claims of a worker, for the heartbeat and for hints. A claim stands here from the reply that brought it until
/// its settlement is answered.
#[derive(Debug)]
pub(crate) struct Claims {
    store: Arc<dyn Store>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    last_key: u64,
    held: BTreeMap<Partition, BTreeMap<u64, Arc<Claim>>>,
    count: usize,
}

impl Claims {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change below is complete before anything can panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a claim until the guard is dropped.
    pub(crate) fn hold(self: &Arc<Self>, partition: Partition, claimed: Claimed) -> HeldClaim {
        let claim = Arc::new(Claim {
            claimed,
            since: Instant::now(),
            lost: CancellationToken::new(),
            cancelled: CancellationToken::new(),
            notes: Notes::new(Arc::clone(&self.store)),
        });
        let mut inner = self.lock();
        inner.last_key += 1;
        inner.count += 1;
        let key = inner.last_key;
        inner
            .held
            .entry(partition)
            .or_default()
            .insert(key, Arc::clone(&claim));
        drop(inner);
        HeldClaim {
            claims: Arc::clone(self),
            partition,
            key,
            claim,
        }
    }

    /// The claims in one partition.
    pub(crate) fn of(&self, partition: Partition) -> Vec<Arc<Claim>> {
        self.lock()
            .held
            .get(&partition)
            .map(|held| held.values().cloned().collect())
            .unwrap_or_default()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().count
    }

    /// Tells the tasks of one run that their instance is over.
    pub(crate) fn cancel(&self, id: &InstanceId, tail: RunTail) {
        for claim in self.lock().held.values().flat_map(BTreeMap::values) {
            let ticket = &claim.claimed.ticket;
            if ticket.tail == tail && ticket.id == *id {
                claim.cancelled.cancel();
            }
        }
    }
}

/// A claim and its place among those that are extended.
#[derive(Debug)]
pub(crate) struct HeldClaim {
    claims: Arc<Claims>,
    partition: Partition,
    key: u64,
    claim: Arc<Claim>,
}

impl HeldClaim {
    pub(crate) fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }

    pub(crate) fn partition(&self) -> Partition {
        self.partition
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        let mut inner = self.claims.lock();
        if let Some(held) = inner.held.get_mut(&self.partition)
            && held.remove(&self.key).is_some()
        {
            inner.count -= 1;
        }
    }
}
