//! What a request must satisfy before anything is done, the same for every store.

use std::{num::NonZeroU16, time::Duration};

use super::{
    ClaimRequest, Control, ControlRequest, ExtendRequest, Holding, NoteRequest, ReleaseRequest,
    RetryRequest, SettleRequest, Settlement, SignalRequest, StartItem, TickRequest, Verdict,
};
use crate::{
    engine::FollowUp,
    error::StoreError,
    ids::{InstanceId, Partition, ValueField},
};

/// The longest time that a claim, a presence or a keeper role may hold without being renewed.
const LONGEST_TTL: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a store accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Of the namespace.
    pub(crate) partitions: NonZeroU16,
    /// In bytes.
    pub(crate) max_payload: usize,
}

type Checked = Result<(), StoreError>;

impl Bounds {
    pub(crate) fn start(&self, partition: Partition, items: &[StartItem]) -> Checked {
        self.partition(partition)?;
        at_most("the number of items", items.len(), StartItem::MAX_ITEMS)?;
        let mut total = 0;
        for item in items {
            self.placed(partition, &item.id)?;
            let meta = item.meta.as_ref().map_or(0, bytes::Bytes::len);
            self.payload(|| format!("the input of `{}`", item.id), item.input.len())?;
            self.payload(|| format!("the labels of `{}`", item.id), meta)?;
            let starts = |f: &FollowUp| matches!(f, FollowUp::Ready(_) | FollowUp::After { .. });
            if item.first.is_empty() || !item.first.iter().all(starts) {
                return Err(StoreError::Request {
                    what: "the first nodes of an instance",
                    allowed: "at least one, each ready or delayed".into(),
                    given: format!("{} of `{}`", item.first.len(), item.id),
                });
            }
            total += item.payload_len();
        }
        if items.len() > 1 {
            at_most(
                "the payload of a start of several, in bytes",
                total,
                StartItem::MAX_BYTES,
            )?;
        }
        Ok(())
    }

    pub(crate) fn claim(&self, request: &ClaimRequest) -> Checked {
        self.partition(request.partition)?;
        ttl(request.ttl)?;
        at_most(
            "the number of tasks to claim",
            usize::from(request.want),
            usize::from(ClaimRequest::MAX_WANT),
        )?;
        at_least_one("the number of ready lists", request.lists.len())?;
        at_most(
            "the number of ready lists",
            request.lists.len(),
            ClaimRequest::MAX_LISTS,
        )
    }

    pub(crate) fn extend(&self, request: &ExtendRequest) -> Checked {
        ttl(request.ttl)?;
        self.holdings(
            request.partition,
            request.items.iter(),
            ExtendRequest::MAX_ITEMS,
        )
    }

    pub(crate) fn settle(&self, request: &SettleRequest) -> Checked {
        ttl(request.ttl)?;
        self.holdings(
            request.partition,
            request.items.iter().map(|item| &item.holding),
            SettleRequest::MAX_ITEMS,
        )?;
        request
            .items
            .iter()
            .try_for_each(|item| self.settlement(item))
    }

    pub(crate) fn release(&self, request: &ReleaseRequest) -> Checked {
        self.holdings(
            request.partition,
            request.items.iter(),
            ReleaseRequest::MAX_ITEMS,
        )
    }

    pub(crate) fn signal(&self, request: &SignalRequest) -> Checked {
        self.payload(
            || format!("the signal `{}` for `{}`", request.name, request.id),
            request.payload.len(),
        )
    }

    pub(crate) fn note(&self, request: &NoteRequest) -> Checked {
        let holding = std::iter::once(&request.holding);
        self.holdings(request.partition, holding, 1)?;
        at_least_one("the number of values to note", request.values.len())?;
        at_most(
            "the number of values to note",
            request.values.len(),
            NoteRequest::MAX_VALUES,
        )?;
        let task = &request.holding.ticket.task;
        request.values.iter().try_for_each(|(field, value)| {
            let own = match field {
                ValueField::Progress(of) => of == task,
                ValueField::Shared(_) => true,
                ValueField::Input | ValueField::Output(_) => false,
            };
            if !own {
                return Err(StoreError::Request {
                    what: "a value to note",
                    allowed: format!("the progress of `{task}` or a shared value"),
                    given: field.to_string(),
                });
            }
            let limit = self.max_payload.min(NoteRequest::MAX_BYTES);
            if value.len() <= limit {
                return Ok(());
            }
            Err(StoreError::TooLarge {
                what: format!("`{field}`"),
                size: value.len(),
                limit,
            })
        })
    }

    pub(crate) fn tick(&self, request: &TickRequest) -> Checked {
        self.partition(request.partition)?;
        ttl(request.ttl)?;
        for (what, given) in [
            ("the most timers to promote", request.promote),
            ("the most claims to reap", request.reap),
            ("the most instances to prune", request.prune),
        ] {
            at_most(what, given as usize, TickRequest::MOST as usize)?;
        }
        request
            .keeper
            .as_ref()
            .map_or(Ok(()), |(_, held)| ttl(*held))
    }

    pub(crate) fn control(&self, request: &ControlRequest) -> Checked {
        if request.control != Control::Retry {
            return self.reason(&request.id, request.reason.as_ref(), request.actor.as_ref());
        }
        Err(StoreError::Request {
            what: "a control",
            allowed: "any but a retry, which needs a plan".into(),
            given: request.control.as_str().into(),
        })
    }

    pub(crate) fn retry(&self, request: &RetryRequest) -> Checked {
        self.reason(&request.id, request.reason.as_ref(), request.actor.as_ref())?;
        let plan = &request.plan;
        let begins = |f: &FollowUp| matches!(f, FollowUp::Ready(_) | FollowUp::After { .. });
        if plan.again.is_empty() || !plan.again.iter().all(begins) {
            return Err(StoreError::Request {
                what: "the nodes that begin again",
                allowed: "at least one, each ready or delayed".into(),
                given: format!("{} of `{}`", plan.again.len(), request.id),
            });
        }
        let nodes = plan.again.len() + plan.go_on.len() + plan.clear.len() + plan.joins.len();
        at_most("the nodes of a retry", nodes, RetryRequest::MAX_NODES)
    }

    fn reason(&self, id: &InstanceId, reason: Option<&String>, actor: Option<&String>) -> Checked {
        let size = reason.map_or(0, String::len) + actor.map_or(0, String::len);
        self.payload(|| format!("reason and actor for `{id}`"), size)
    }

    pub(crate) fn partition(&self, partition: Partition) -> Checked {
        if partition.number() < self.partitions.get() {
            return Ok(());
        }
        Err(StoreError::Request {
            what: "the partition",
            allowed: format!("less than {}", self.partitions),
            given: partition.to_string(),
        })
    }

    fn settlement(&self, item: &Settlement) -> Checked {
        let task = &item.holding.ticket.task;
        let follow_ups: &[FollowUp] = match &item.verdict {
            Verdict::Completed { output, follow_ups } => {
                let size = output.as_ref().map_or(0, bytes::Bytes::len);
                self.payload(|| format!("the output of `{task}`"), size)?;
                follow_ups
            }
            Verdict::Wait(_)
            | Verdict::Retry { .. }
            | Verdict::Failed { .. }
            | Verdict::Paused { .. } => &[],
        };
        let Some(next) = item.claim_next else {
            return Ok(());
        };
        match follow_ups.get(next.follow_up) {
            Some(FollowUp::Ready(_) | FollowUp::Arrive { .. }) => Ok(()),
            Some(FollowUp::After { .. } | FollowUp::Wait { .. } | FollowUp::End { .. }) | None => {
                Err(StoreError::Request {
                    what: "the follow-up to claim",
                    allowed: "one that is ready or arrives at a join".into(),
                    given: format!("number {} of {}", next.follow_up, follow_ups.len()),
                })
            }
        }
    }

    fn holdings<'a>(
        &self,
        partition: Partition,
        items: impl ExactSizeIterator<Item = &'a Holding>,
        most: usize,
    ) -> Checked {
        self.partition(partition)?;
        at_most("the number of items", items.len(), most)?;
        items
            .map(|item| &item.ticket.id)
            .try_for_each(|id| self.placed(partition, id))
    }

    fn placed(&self, partition: Partition, id: &InstanceId) -> Checked {
        let own = id.partition(self.partitions);
        if own == partition {
            return Ok(());
        }
        Err(StoreError::Request {
            what: "the partition of an item",
            allowed: format!("{own}, where `{id}` lives"),
            given: partition.to_string(),
        })
    }

    fn payload(&self, what: impl FnOnce() -> String, size: usize) -> Checked {
        if size <= self.max_payload {
            return Ok(());
        }
        Err(StoreError::TooLarge {
            what: what(),
            size,
            limit: self.max_payload,
        })
    }
}

fn at_most(what: &'static str, given: usize, most: usize) -> Checked {
    if given <= most {
        return Ok(());
    }
    Err(StoreError::Request {
        what,
        allowed: format!("at most {most}"),
        given: given.to_string(),
    })
}

fn at_least_one(what: &'static str, given: usize) -> Checked {
    if given > 0 {
        return Ok(());
    }
    Err(StoreError::Request {
        what,
        allowed: "at least 1".into(),
        given: given.to_string(),
    })
}

fn ttl(given: Duration) -> Checked {
    if given >= Duration::from_millis(1) && given <= LONGEST_TTL {
        return Ok(());
    }
    Err(StoreError::Request {
        what: "the time to hold a claim",
        allowed: "1 ms to 365 days".into(),
        given: format!("{given:?}"),
    })
}
