//! running → running.

use super::{
    call::{Call, later},
    scored::Expiring,
    state::ClaimKey,
};
use crate::{
    ids::WorkerId,
    store::{ExtendRequest, Held, Holding},
    time::millis,
};

pub(super) fn extend(call: &mut Call, request: &ExtendRequest) -> Vec<Held> {
    call.share.woken.remove(&request.worker);
    let ttl = millis(request.ttl);
    call.share.presence.insert(
        request.worker.clone(),
        Expiring::new(ttl, later(call.now, ttl)),
    );
    request
        .items
        .iter()
        .map(|item| extend_one(call, item, &request.worker, ttl))
        .collect()
}

fn extend_one(call: &mut Call, item: &Holding, worker: &WorkerId, ttl: i64) -> Held {
    let ticket = &item.ticket;
    let stored = call.share.instances.get(&ticket.id);
    let Some(instance) = stored.filter(|i| i.run == item.run && !i.is_foreign()) else {
        return Held::Lost;
    };
    if instance.status.is_terminal() {
        return Held::Cancelled;
    }
    if !instance.holds(&ticket.task, &item.record) {
        return Held::Lost;
    }
    let until_grace = item.record.deadline.map_or(i64::MAX, |deadline| {
        deadline.plus(ExtendRequest::GRACE).as_millis() - call.now.as_millis()
    });
    let hold = ttl.min(until_grace);
    if hold > 0 {
        set_key(call, item, worker, ttl, hold);
    }
    Held::Ok
}

/// Extends the claim key, or sets it again if it expired while nobody reaped it.
fn set_key(call: &mut Call, item: &Holding, worker: &WorkerId, ttl: i64, hold: i64) {
    let until = later(call.now, hold);
    let key = (item.ticket.id.clone(), item.ticket.task.clone());
    match call.share.claims.get_mut(&key) {
        Some(claim) if claim.get(call.now).is_some() => claim.hold_until(until),
        _ => {
            let claim = ClaimKey::of(item.run, &item.record, worker, ttl);
            call.share.claims.insert(key, Expiring::new(claim, until));
        }
    }
}
