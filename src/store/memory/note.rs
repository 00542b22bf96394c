//! running → running: what a task says of itself and shares.

use super::call::Call;
use crate::{
    ids::ValueField,
    store::{NoteReply, NoteRequest},
};

pub(super) fn note(call: &mut Call, request: &NoteRequest) -> NoteReply {
    let (ticket, record) = (&request.holding.ticket, &request.holding.record);
    let Some(instance) = call.share.instances.get_mut(&ticket.id) else {
        return NoteReply::Gone;
    };
    if instance.run != request.holding.run || instance.is_foreign() {
        return NoteReply::Lost;
    }
    if instance.status.is_terminal() {
        return NoteReply::Cancelled;
    }
    if !instance.holds(&ticket.task, record) {
        return NoteReply::Lost;
    }
    let last = instance.noted.get(&ticket.task);
    if last.is_some_and(|(attempt, number)| *attempt == record.attempt && *number >= request.number)
    {
        return NoteReply::Noted;
    }
    let is_shared = |field: &ValueField| matches!(field, ValueField::Shared(_));
    let new = request.values.iter().map(|(field, _)| field);
    let new = new.filter(|field| is_shared(field) && !instance.values.contains_key(field));
    let (new, old) = (
        new.count(),
        instance.values.keys().filter(|f| is_shared(f)).count(),
    );
    if new > 0 && old + new > NoteRequest::MAX_SHARED {
        return NoteReply::Full;
    }
    let number = (record.attempt, request.number);
    instance.noted.insert(ticket.task.clone(), number);
    instance.values.extend(request.values.iter().cloned());
    NoteReply::Noted
}
