//! waiting → ready, or kept until a node waits.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{
    call::Call,
    state::{Damage, Instance},
};
use crate::{
    engine::Wait,
    ids::{InputRef, InstanceId, Purpose, RunTail, SignalId, SignalName, Ticket, ValueField},
    store::{
        EarlySignal, SignalReply, SignalRequest, StoreError, TaskRecord, TaskState, WaitRecord,
    },
};

/// What an instance knows of signals.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Those that nodes of the definition wait for.
    awaited: Vec<SignalName>,
    /// The nodes that wait, in the order in which they began to.
    waits: Vec<WaitRecord>,
    /// What no node has waited for yet, oldest first.
    early: VecDeque<(EarlySignal, Bytes)>,
    /// The ids of those accepted last, oldest first.
    heard: VecDeque<SignalId>,
}

impl Signals {
    pub(super) fn of(awaited: &[SignalName]) -> Self {
        Self {
            awaited: awaited.to_vec(),
            ..Self::default()
        }
    }

    pub(super) fn awaited(&self) -> &[SignalName] {
        &self.awaited
    }

    pub(super) fn waits(&self) -> &[WaitRecord] {
        &self.waits
    }

    pub(super) fn early(&self) -> Vec<EarlySignal> {
        self.early.iter().map(|(early, _)| early.clone()).collect()
    }

    /// Nobody waits any more.
    pub(super) fn give_up(&mut self) -> Vec<WaitRecord> {
        std::mem::take(&mut self.waits)
    }

    fn knows(&self, id: &SignalId) -> bool {
        self.heard.contains(id) || self.early.iter().any(|(early, _)| early.id == *id)
    }

    fn hear(&mut self, id: SignalId) {
        self.heard.push_back(id);
        let size = |id: &SignalId| id.as_str().len() + 1;
        let mut bytes: usize = self.heard.iter().map(size).sum();
        while bytes > SignalRequest::HEARD
            && let Some(oldest) = self.heard.pop_front()
        {
            bytes -= size(&oldest);
        }
    }

    fn take_early(&mut self, name: &SignalName) -> Option<Bytes> {
        let at = self
            .early
            .iter()
            .position(|(early, _)| early.name == *name)?;
        self.early.remove(at).map(|(_, payload)| payload)
    }

    fn take_wait(&mut self, is_it: impl Fn(&WaitRecord) -> bool) -> Option<WaitRecord> {
        let at = self.waits.iter().position(is_it)?;
        Some(self.waits.remove(at))
    }
}

pub(super) fn signal(call: &mut Call, request: &SignalRequest) -> Result<SignalReply, StoreError> {
    let Some(instance) = call.share.instances.get_mut(&request.id) else {
        return Ok(SignalReply::NotFound);
    };
    if let Some(refused) = refusal(instance, request)? {
        return Ok(refused);
    }
    let signals = &mut instance.signals;
    let reply = SignalReply::Accepted { run: instance.run };
    if let Some(wait) = signals.take_wait(|wait| wait.signal == request.name) {
        signals.hear(request.signal.clone());
        deliver(call, request, wait);
    } else if signals.early.len() >= SignalRequest::MAX_EARLY {
        return Ok(SignalReply::Full);
    } else {
        signals.hear(request.signal.clone());
        let early = EarlySignal {
            name: request.name.clone(),
            id: request.signal.clone(),
            len: request.payload.len(),
        };
        signals.early.push_back((early, request.payload.clone()));
    }
    Ok(reply)
}

/// What is said before anything is looked for: also to a repeat.
fn refusal(
    instance: &Instance,
    request: &SignalRequest,
) -> Result<Option<SignalReply>, StoreError> {
    let (run, status) = (instance.run, instance.status);
    if instance.is_foreign() {
        instance.check(&request.id)?;
    }
    if request.run.is_some_and(|meant| meant != run) {
        return Ok(Some(SignalReply::Replaced { run }));
    }
    if let Some(Damage::Format(_)) = instance.damage {
        instance.check(&request.id)?;
    }
    if instance.signals.knows(&request.signal) {
        return Ok(Some(SignalReply::Accepted { run }));
    }
    if status.is_terminal() {
        return Ok(Some(SignalReply::Over { run, status }));
    }
    let awaited = instance.signals.awaited();
    Ok(
        (!awaited.contains(&request.name)).then(|| SignalReply::NotAwaited {
            awaited: awaited.to_vec(),
        }),
    )
}

/// The node that waited has its value, and is ready for an engine to go on from it.
fn deliver(call: &mut Call, request: &SignalRequest, wait: WaitRecord) {
    let Some(instance) = call.share.instances.get_mut(&request.id) else {
        return;
    };
    let field = ValueField::Output(wait.task.clone());
    instance.values.insert(field, request.payload.clone());
    if let Some(record) = instance.task_in(TaskState::Waiting, &wait.task) {
        record.state = TaskState::Ready;
    }
    let tail = instance.run.tail();
    let waits_still = !instance.signals.waits.is_empty();
    let overdue = Ticket::overdue(wait.list, request.id.clone(), wait.task, tail);
    if !waits_still {
        call.share.waiting.remove(&request.id);
    }
    call.share.delayed.remove(&overdue);
    call.append(with_signal(overdue, request.payload.len()));
}

/// What stands in the list of a node whose signal is there.
fn with_signal(overdue: Ticket, len: usize) -> Ticket {
    Ticket {
        purpose: Purpose::Run,
        input: InputRef::Field {
            field: ValueField::Output(overdue.task.clone()),
            len,
        },
        ..overdue
    }
}

/// A node waits for a signal from now on, or takes the oldest that came before. One that has its signal already, and was
/// entered by an entry that stood twice, keeps it. `overdue` is its timer's ticket, `record` its record but for the state.
pub(super) fn await_signal(call: &mut Call, overdue: Ticket, wait: &Wait, mut record: TaskRecord) {
    let Some(instance) = call.share.instances.get_mut(&overdue.id) else {
        return;
    };
    let task = overdue.task.clone();
    let field = ValueField::Output(task.clone());
    let has = instance
        .values
        .get(&field)
        .filter(|value| !value.is_empty());
    let value = has
        .cloned()
        .or_else(|| instance.signals.take_early(&wait.signal));
    if let Some(value) = value {
        record.state = TaskState::Ready;
        instance.tasks.insert(task, record);
        let len = value.len();
        instance.values.insert(field, value);
        call.append(with_signal(overdue, len));
        return;
    }
    record.state = TaskState::Waiting;
    instance.tasks.insert(task.clone(), record);
    instance.signals.waits.push(WaitRecord {
        signal: wait.signal.clone(),
        task,
        list: overdue.list.clone(),
    });
    call.share.waiting.insert(overdue.id.clone());
    if let Some(timeout) = wait.timeout {
        call.delay(call.now.plus(timeout), &overdue);
    }
}

/// The time of a node that waited is over.
pub(super) fn stop_waiting(call: &mut Call, overdue: &Ticket) {
    let Some(instance) = call.share.live(overdue) else {
        return;
    };
    instance.signals.take_wait(|wait| wait.task == overdue.task);
    if instance.signals.waits.is_empty() {
        call.share.waiting.remove(&overdue.id);
    }
}

/// An instance that is over waits for nothing, and its timers of waits are gone.
pub(super) fn forget_waits(
    call: &mut Call,
    id: &InstanceId,
    tail: RunTail,
    waits: Vec<WaitRecord>,
) {
    for wait in waits {
        let overdue = Ticket::overdue(wait.list, id.clone(), wait.task, tail);
        call.share.delayed.remove(&overdue);
        call.share.waiting.remove(id);
    }
}
