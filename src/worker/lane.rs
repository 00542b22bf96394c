use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    backoff::Backoff,
    ids::{ListName, Nonce, Partition, TaskName, WorkerId},
    store::{ClaimReply, ClaimRequest, Parking, TaskLimits},
    workflow::Limits,
};

/// Up to 64 ready lists of one partition: what one claim call looks into.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) partition: Partition,
    lists: Vec<ListName>,
    limits: Arc<TaskLimits>,
    /// Something may stand in its lists.
    pub(crate) hot: bool,
    /// A hint came that this worker may be unable to follow; another worker has to get it then.
    pub(crate) hinted: bool,
    parked: bool,
    next_poll: Instant,
    pub(crate) unanswered: Option<Unanswered>,
    backoff: Backoff,
    muted: HashMap<ListName, Instant>,
}

/// A call whose reply did not come: it may hold claims for us, which only a repeat with its nonce returns.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) request: ClaimRequest,
    since: Instant,
    pub(crate) retry_at: Instant,
}

impl Lane {
    /// How long a store remembers the claims of a call.
    const REMEMBERED: Duration = Duration::from_secs(60);

    pub(crate) fn new(partition: Partition, lists: Vec<ListName>, limits: &TaskLimits) -> Self {
        let limits: HashMap<ListName, HashMap<TaskName, Limits>> = lists
            .iter()
            .filter_map(|list| Some((list.clone(), limits.get(list)?.clone())))
            .collect();
        Self {
            partition,
            lists,
            limits: Arc::new(limits),
            hot: true,
            hinted: false,
            parked: false,
            next_poll: Instant::now(),
            unanswered: None,
            backoff: Backoff::new(),
            muted: HashMap::new(),
        }
    }

    /// Whether there is a reason to look into the lists now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        match &self.unanswered {
            Some(unanswered) => unanswered.retry_at <= now,
            None => self.hot || self.next_poll <= now,
        }
    }

    /// When the lane is due if nothing happens; `None` when it is due already.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        match &self.unanswered {
            Some(unanswered) => Some(unanswered.retry_at),
            None if self.hot => None,
            None => Some(self.next_poll),
        }
    }

    /// The next call. Each looks first into another list, so that no list is always last.
    pub(crate) fn request(
        &mut self,
        worker: &WorkerId,
        want: u16,
        ttl: Duration,
    ) -> Option<ClaimRequest> {
        let now = Instant::now();
        self.muted.retain(|_, until| *until > now);
        self.lists.rotate_left(1);
        let lists: Vec<ListName> = self
            .lists
            .iter()
            .filter(|list| !self.muted.contains_key(list))
            .cloned()
            .collect();
        self.hinted = false;
        // What stands there is still to be claimed when a slot is free.
        self.hot = want == 0;
        if lists.is_empty() {
            self.hot = false;
            self.next_poll = self.muted.values().min().copied().unwrap_or(now);
            return None;
        }
        let parking = match (want, self.parked) {
            (0, _) => Parking::Never,
            (_, true) => Parking::Parked,
            (_, false) => Parking::WhenShort,
        };
        Some(ClaimRequest {
            partition: self.partition,
            worker: worker.clone(),
            nonce: Nonce::random(),
            want,
            lists,
            ttl,
            limits: Arc::clone(&self.limits),
            parking,
        })
    }

    /// The call by which a worker that stops gives up its parking place, and passes on what stands in the lists.
    pub(crate) fn farewell(&mut self, worker: &WorkerId, ttl: Duration) -> Option<ClaimRequest> {
        if !self.parked && !self.hinted {
            return None;
        }
        let request = self.request(worker, 0, ttl)?;
        self.parked = false;
        Some(ClaimRequest {
            parking: Parking::Parked,
            ..request
        })
    }

    /// Forgets a call whose answer never came. It may have parked the worker.
    pub(crate) fn give_up(&mut self) {
        if let Some(unanswered) = self.unanswered.take() {
            self.parked |=
                unanswered.request.parking != Parking::Never && unanswered.request.want > 0;
        }
    }

    /// Whether a repeat of the call would not bring its claims any more: the store has forgotten them.
    pub(crate) fn is_forgotten(&self) -> bool {
        let since = self.unanswered.as_ref().map(|unanswered| unanswered.since);
        since.is_some_and(|since| since.elapsed() >= Self::REMEMBERED)
    }

    /// After the answer.
    pub(crate) fn answered(&mut self, want: u16, reply: &ClaimReply, poll: Duration) {
        self.unanswered = None;
        self.backoff.reset();
        if want == 0 {
            return;
        }
        let full = reply.claims.len() >= usize::from(want);
        self.parked = reply.parked;
        self.hot |= full || reply.again;
        self.next_poll = Instant::now() + poll.mul_f64(0.9 + fastrand::f64() / 10.0);
    }

    /// After an error; says whether it is the first of a row.
    pub(crate) fn failed(&mut self, request: ClaimRequest) -> bool {
        let first = self.backoff.is_fresh();
        let now = Instant::now();
        let since = self.unanswered.take().map_or(now, |u| u.since);
        let retry_at = now + self.backoff.delay();
        let nonce = if now - since < Self::REMEMBERED {
            request.nonce
        } else {
            Nonce::random()
        };
        let since = if nonce == request.nonce { since } else { now };
        self.unanswered = Some(Unanswered {
            request: ClaimRequest { nonce, ..request },
            since,
            retry_at,
        });
        first
    }

    /// Leaves a list alone for a while.
    pub(crate) fn mute(&mut self, list: &ListName, duration: Duration) {
        if self.lists.contains(list) {
            self.muted.insert(list.clone(), Instant::now() + duration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{DefinitionHash, QueueName};

    const TTL: Duration = Duration::from_secs(30);
    const POLL: Duration = Duration::from_secs(5);

    fn list(n: u8) -> ListName {
        ListName {
            queue: QueueName::default(),
            definition: DefinitionHash::from_digest([n; 8]),
        }
    }

    fn lane(lists: u8) -> Lane {
        let lists = (0..lists).map(list).collect();
        Lane::new(Partition::default(), lists, &TaskLimits::new())
    }

    fn request(lane: &mut Lane, want: u16) -> ClaimRequest {
        let worker = WorkerId::new("w").expect("an id");
        lane.request(&worker, want, TTL).expect("a request")
    }

    fn parked() -> ClaimReply {
        ClaimReply {
            parked: true,
            ..ClaimReply::default()
        }
    }

    #[tokio::test]
    async fn every_list_is_the_first_in_turn() {
        let mut lane = lane(3);
        let firsts: Vec<ListName> = (0..3)
            .map(|_| request(&mut lane, 1).lists[0].clone())
            .collect();
        assert_eq!(firsts, [list(1), list(2), list(0)]);
    }

    #[tokio::test]
    async fn a_hint_during_a_call_is_kept_until_it_ends() {
        let mut lane = lane(1);
        request(&mut lane, 5);
        assert!(!lane.hot);
        lane.hot = true;
        lane.answered(5, &parked(), POLL);
        assert!(lane.is_due(Instant::now()));
        request(&mut lane, 5);
        lane.answered(5, &parked(), POLL);
        assert!(!lane.is_due(Instant::now()));
    }

    #[tokio::test]
    async fn a_parked_lane_says_so_and_gives_its_place_up_when_the_worker_stops() {
        let worker = WorkerId::new("w").expect("an id");
        let mut lane = lane(1);
        assert_eq!(request(&mut lane, 5).parking, Parking::WhenShort);
        lane.answered(5, &parked(), POLL);
        assert_eq!(request(&mut lane, 5).parking, Parking::Parked);
        let farewell = lane.farewell(&worker, TTL).expect("it is parked");
        assert_eq!((farewell.want, farewell.parking), (0, Parking::Parked));
        assert!(lane.farewell(&worker, TTL).is_none(), "once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_a_reply_keeps_its_nonce_for_as_long_as_the_store_remembers_it() {
        let mut lane = lane(1);
        let first = request(&mut lane, 5);
        assert!(lane.failed(first.clone()), "the first of a row");
        for _ in 0..5 {
            tokio::time::advance(Duration::from_secs(10)).await;
            let again = lane.unanswered.as_ref().expect("to repeat").request.clone();
            assert_eq!((again.nonce, again.want), (first.nonce, 5));
            assert!(!lane.failed(again));
        }
        tokio::time::advance(Duration::from_secs(11)).await;
        let last = lane.unanswered.as_ref().expect("to repeat").request.clone();
        lane.failed(last);
        let next = &lane.unanswered.as_ref().expect("to repeat").request;
        assert_ne!(next.nonce, first.nonce);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_tasks_that_are_not_ours_is_left_alone_for_a_while() {
        let worker = WorkerId::new("w").expect("an id");
        let mut lane = lane(2);
        lane.mute(&list(0), POLL);
        assert_eq!(request(&mut lane, 1).lists, [list(1)]);
        lane.mute(&list(1), POLL);
        assert!(lane.request(&worker, 1, TTL).is_none());
        assert!(!lane.is_due(Instant::now()));
        tokio::time::advance(POLL).await;
        assert!(lane.is_due(Instant::now()));
        assert_eq!(request(&mut lane, 1).lists.len(), 2);
    }
}
