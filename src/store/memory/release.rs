//! running → ready, at the head of the list.

use super::call::Call;
use crate::{
    ids::WorkerId,
    store::{Holding, ReleaseReply, ReleaseRequest, TaskState},
};

/// The last item first, so that the first one ends up at the head.
pub(super) fn release(call: &mut Call, request: &ReleaseRequest) -> Vec<ReleaseReply> {
    call.share.woken.remove(&request.worker);
    let mut replies: Vec<ReleaseReply> = request
        .items
        .iter()
        .rev()
        .map(|item| release_one(call, item, &request.worker))
        .collect();
    replies.reverse();
    if request.leave {
        leave(call, &request.worker);
    }
    replies
}

fn release_one(call: &mut Call, item: &Holding, worker: &WorkerId) -> ReleaseReply {
    let Holding {
        ticket,
        run,
        record,
    } = item;
    let stored = call.share.instances.get_mut(&ticket.id);
    let Some(instance) = stored.filter(|i| i.run == *run && !i.is_foreign()) else {
        return ReleaseReply::Lost;
    };
    if instance.status.is_terminal() || !instance.holds(&ticket.task, record) {
        return if call.drop_stale_claim(item, worker).is_terminal() {
            ReleaseReply::Cancelled
        } else {
            ReleaseReply::Lost
        };
    }
    instance.requeue(&ticket.task, TaskState::Ready);
    call.let_go(ticket);
    call.prepend(ticket.clone());
    ReleaseReply::Released
}

/// The worker stops. Its parking places become void by their age.
fn leave(call: &mut Call, worker: &WorkerId) {
    call.share.presence.remove(worker);
    let keeper = call.share.keeper.as_ref();
    if keeper.and_then(|k| k.get(call.now)) == Some(worker) {
        call.share.keeper = None;
    }
}
