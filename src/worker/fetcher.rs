//! Claims tasks for free slots.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{bell::Bell, claims::HeldClaim, core::Core, lane::Lane, slot};
use crate::{
    ids::{ListName, Partition},
    store::{AsideEntry, ClaimReply, ClaimRequest, Claimed, StoreError, TaskLimits},
};

/// What the fetcher is told.
#[derive(Debug, Default)]
pub(crate) struct FetchNews {
    /// Something is ready there.
    pub(crate) ready: HashSet<Partition>,
    /// The connection is new: hints may have been missed.
    pub(crate) look_everywhere: bool,
    /// Lists whose tasks this worker cannot run after all.
    pub(crate) mute: Vec<ListName>,
}

pub(crate) type FetchBell = Bell<FetchNews>;

/// The role. Slots that became free ring its bell too.
pub(crate) struct Fetcher {
    core: Arc<Core>,
    lanes: Vec<Lane>,
    /// Partitions with a call in flight: there is never a second one.
    busy: HashSet<Partition>,
    turn: usize,
    calls: FuturesUnordered<BoxFuture<'static, Call>>,
    /// Since when nothing new is claimed.
    stopping: Option<Instant>,
}

/// A call that has ended.
struct Call {
    lane: usize,
    permits: Option<OwnedSemaphorePermit>,
    request: ClaimRequest,
    reply: Result<ClaimReply, StoreError>,
}

impl Fetcher {
    /// How long a list is left alone after one of its tasks turned out to be none of ours.
    const MUTED: Duration = Duration::from_secs(5);

    /// How long a worker that stops asks for claims that it may hold; after that they expire.
    const FAREWELL: Duration = Duration::from_secs(5);

    pub(crate) fn new(core: Arc<Core>) -> Self {
        let limits = core.catalog.limits();
        let lists = core.catalog.lists();
        let lanes = Partition::all(core.store.partitions())
            .flat_map(|partition| lanes(partition, lists, limits))
            .collect();
        Self {
            core,
            lanes,
            busy: HashSet::new(),
            turn: 0,
            calls: FuturesUnordered::new(),
            stopping: None,
        }
    }

    /// Until the worker stops and the calls in flight are answered.
    pub(crate) async fn run(mut self) {
        let core = Arc::clone(&self.core);
        loop {
            if let Some(since) = self.stopping {
                self.finish_calls(since);
                if self.calls.is_empty() && self.lanes.iter().all(|lane| lane.unanswered.is_none())
                {
                    return;
                }
            } else {
                self.launch();
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                Some(call) = self.calls.next() => self.absorb(call),
                () = core.fetch.rung() => self.read_news(),
                () = sleep_until(wake) => {}
                () = core.stop.cancelled(), if self.stopping.is_none() => self.farewell(),
            }
        }
    }

    fn read_news(&mut self) {
        let news = self.core.fetch.take();
        for lane in &mut self.lanes {
            if news.look_everywhere || news.ready.contains(&lane.partition) {
                lane.hot = true;
                lane.hinted = true;
            }
            for list in &news.mute {
                lane.mute(list, Self::MUTED);
            }
        }
        if self.stopping.is_some() {
            self.farewell();
        }
    }

    /// When the next lane is due, if its partition is free and there is a slot for it.
    fn next_wake(&self) -> Option<Instant> {
        let now = Instant::now();
        self.lanes
            .iter()
            .filter(|lane| !self.busy.contains(&lane.partition))
            .filter_map(Lane::due_at)
            // What is due and was not launched waits for a slot or for a heartbeat, which ring.
            .filter(|due| *due > now)
            .min()
    }

    /// Starts a call in every partition that has a reason for one, sharing the free slots.
    fn launch(&mut self) {
        let now = Instant::now();
        let count = self.lanes.len();
        // The store remembers one call of a worker in each partition: until a lost reply is had, no other lane may call.
        let unanswered: HashSet<Partition> = self
            .lanes
            .iter()
            .filter(|lane| lane.unanswered.is_some())
            .map(|lane| lane.partition)
            .collect();
        let may_call = |lane: &Lane| {
            lane.is_due(now)
                && self.core.is_present(lane.partition)
                && (lane.unanswered.is_some() || !unanswered.contains(&lane.partition))
        };
        let mut due: Vec<usize> = (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(|&i| may_call(&self.lanes[i]))
            .collect();
        let mut partitions = self.busy.clone();
        due.retain(|&i| partitions.insert(self.lanes[i].partition));
        self.turn = due.first().map_or(self.turn, |first| first + 1);
        let mut left = due.len();
        for index in due {
            self.launch_lane(index, left);
            left -= 1;
        }
    }

    fn launch_lane(&mut self, index: usize, sharing: usize) {
        let config = &self.core.config;
        if let Some(unanswered) = &self.lanes[index].unanswered {
            let request = unanswered.request.clone();
            if let Ok(permits) = self.core.reserve(usize::from(request.want)) {
                return self.call(index, permits, request);
            }
            if !self.lanes[index].is_forgotten() {
                return;
            }
            // So many slots may never be free at once while other lanes take each that is.
            self.lanes[index].give_up();
        }
        let share = self
            .core
            .free_slots()
            .div_ceil(sharing)
            .min(config.most_in_a_call());
        if share == 0 && !self.lanes[index].hinted {
            return;
        }
        let Ok(permits) = self.core.reserve(share) else {
            return;
        };
        let want = u16::try_from(share).unwrap_or(ClaimRequest::MAX_WANT);
        if let Some(request) = self.lanes[index].request(&config.worker, want, config.claim_ttl) {
            self.call(index, permits, request);
        }
    }

    fn call(&mut self, lane: usize, permits: Option<OwnedSemaphorePermit>, request: ClaimRequest) {
        self.busy.insert(request.partition);
        let store = Arc::clone(&self.core.store);
        self.calls.push(Box::pin(async move {
            let reply = store.claim(request.clone()).await;
            Call {
                lane,
                permits,
                request,
                reply,
            }
        }));
    }

    fn absorb(&mut self, call: Call) {
        self.busy.remove(&call.request.partition);
        let lane = &mut self.lanes[call.lane];
        match call.reply {
            Ok(reply) => {
                self.core.health.heard();
                self.core.saw_epoch(reply.epoch);
                lane.answered(call.request.want, &reply, self.core.config.poll_interval);
                report_aside(&self.core, &reply.aside);
                self.start(call.request.partition, reply.claims, call.permits);
            }
            Err(error) => {
                if lane.failed(call.request) {
                    tracing::warn!(worker = %self.core.config.worker, partition = %lane.partition, %error, "claiming failed; it is tried again");
                }
            }
        }
        if self.stopping.is_some() {
            // The call may have parked a worker that will not be here when the hint comes.
            self.farewell();
        }
    }

    /// Gives every claim its slot. All of them are held, and thus extended, before any runs.
    fn start(
        &self,
        partition: Partition,
        claims: Vec<Claimed>,
        mut permits: Option<OwnedSemaphorePermit>,
    ) {
        let held: Vec<HeldClaim> = claims
            .into_iter()
            .map(|claimed| self.core.claims.hold(partition, claimed))
            .collect();
        for claim in held {
            let slot = permits.as_mut().and_then(|permits| permits.split(1));
            self.core
                .tasks
                .spawn(slot::run(Arc::clone(&self.core), claim, slot));
        }
    }

    /// The worker stops: others get what it was hinted at, and nobody parks for it any more.
    fn farewell(&mut self) {
        self.stopping.get_or_insert_with(Instant::now);
        for index in 0..self.lanes.len() {
            if self.busy.contains(&self.lanes[index].partition) {
                continue;
            }
            let config = &self.core.config;
            let lane = &mut self.lanes[index];
            if lane.unanswered.is_none()
                && let Some(request) = lane.farewell(&config.worker, config.claim_ttl)
            {
                self.call(index, None, request);
            }
        }
    }

    /// Repeats calls whose reply is missing, so that their claims can be given back.
    fn finish_calls(&mut self, since: Instant) {
        let now = Instant::now();
        let patient = now - since < Self::FAREWELL;
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if self.busy.contains(&lane.partition) {
                continue;
            }
            if let Some(unanswered) = &lane.unanswered {
                if unanswered.request.want == 0 || !patient {
                    lane.give_up();
                } else if unanswered.retry_at <= now {
                    let request = unanswered.request.clone();
                    self.call(index, None, request);
                }
            }
        }
    }
}

fn lanes<'a>(
    partition: Partition,
    lists: &'a [ListName],
    limits: &'a TaskLimits,
) -> impl Iterator<Item = Lane> + 'a {
    lists
        .chunks(ClaimRequest::MAX_LISTS)
        .map(move |chunk| Lane::new(partition, chunk.to_vec(), limits))
}

fn report_aside(core: &Core, aside: &[AsideEntry]) {
    for entry in aside {
        tracing::error!(worker = %core.config.worker, ticket = ?entry.ticket, reason = %entry.reason, "a stored record cannot be read; it was set aside, everything else goes on");
    }
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}
