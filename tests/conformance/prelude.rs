//! What the cases make requests from.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tenure::{
    engine::{FollowUp, Limits, Next, Wait},
    ids::{
        DefinitionHash, InputRef, InstanceId, ListName, MailboxId, Nonce, Partition, QueueName,
        RunId, SignalId, SignalName, TaskName, ValueField, WorkerId, WorkflowName,
    },
    store::{
        Begin, ClaimNext, ClaimRequest, Claimed, ErrorKind, ErrorRecord, ExtendRequest, Holding,
        IdPolicy, Parking, ReleaseRequest, Retention, SettleRequest, Settlement, SignalRequest,
        StartItem, TickRequest, Verdict,
    },
};

/// How long claims hold.
pub(crate) const TTL: i64 = 1_000;

pub(crate) fn ms(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).expect("a duration"))
}

pub(crate) fn p0() -> Partition {
    Partition::default()
}

pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId::new(text).expect("an id")
}

pub(crate) fn task(text: &str) -> TaskName {
    TaskName::new(text).expect("a task name")
}

pub(crate) fn worker(text: &str) -> WorkerId {
    WorkerId::new(text).expect("a worker id")
}

pub(crate) fn mailbox(text: &str) -> MailboxId {
    MailboxId::new(text).expect("a mailbox id")
}

/// The ready list of a queue.
pub(crate) fn list_of(queue: &str) -> ListName {
    ListName {
        queue: QueueName::new(queue).expect("a queue"),
        definition: DefinitionHash::from_digest([7; 8]),
    }
}

pub(crate) fn list() -> ListName {
    list_of("default")
}

pub(crate) fn next(name: &str, input: InputRef) -> Next {
    Next {
        task: task(name),
        list: list(),
        input,
        limits: Limits::NONE,
    }
}

pub(crate) fn of_input(input: &Bytes) -> InputRef {
    InputRef::Field {
        field: ValueField::Input,
        len: input.len(),
    }
}

pub(crate) fn output_of(name: &str) -> ValueField {
    ValueField::Output(task(name))
}

/// The output that [`done`] and its likes store.
pub(crate) const OUTPUT: Bytes = Bytes::from_static(b"\xc3");

pub(crate) fn of_output(name: &TaskName) -> InputRef {
    InputRef::Field {
        field: ValueField::Output(name.clone()),
        len: OUTPUT.len(),
    }
}

/// An instance whose first task is `a`.
pub(crate) fn item(name: &str) -> StartItem {
    let input = Bytes::from_static(b"\x93\x01\x02\x03");
    StartItem {
        id: id(name),
        run: RunId::unique(),
        policy: IdPolicy::Fail,
        workflow: WorkflowName::new("w").expect("a name"),
        definition: list().definition,
        queue: QueueName::default(),
        begin: Begin::Now,
        signals: Vec::new(),
        first: vec![FollowUp::Ready(next("a", of_input(&input)))],
        input,
        meta: None,
        max_crashes: 3,
        on_exhausted: tenure::OnExhausted::Fail,
        waiter: None,
    }
}

/// An instance whose first tasks are these, all ready.
pub(crate) fn item_with(name: &str, tasks: &[&str]) -> StartItem {
    let item = item(name);
    let input = of_input(&item.input);
    let first = |name: &&str| FollowUp::Ready(next(name, input.clone()));
    StartItem {
        first: tasks.iter().map(first).collect(),
        ..item
    }
}

/// An instance whose only task goes to this queue.
pub(crate) fn item_in(name: &str, queue: &str) -> StartItem {
    let item = item(name);
    let next = Next {
        list: list_of(queue),
        ..next("a", of_input(&item.input))
    };
    StartItem {
        first: vec![FollowUp::Ready(next)],
        ..item
    }
}

pub(crate) fn claiming(who: &str, want: u16) -> ClaimRequest {
    ClaimRequest {
        partition: p0(),
        worker: worker(who),
        nonce: Nonce::random(),
        want,
        lists: vec![list()],
        ttl: ms(TTL),
        limits: Arc::default(),
        parking: Parking::Never,
    }
}

/// A claim of one task that knows the bounds of `a`.
pub(crate) fn claiming_bounded(who: &str, limits: Limits) -> ClaimRequest {
    ClaimRequest {
        limits: Arc::new([(list(), [(task("a"), limits)].into())].into()),
        ..claiming(who, 1)
    }
}

pub(crate) fn holding(claimed: &Claimed) -> Holding {
    Holding {
        ticket: claimed.ticket.clone(),
        run: claimed.run,
        record: claimed.record.clone(),
    }
}

pub(crate) fn completed(claimed: &Claimed, follow_ups: Vec<FollowUp>) -> Settlement {
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Completed {
            output: Some(OUTPUT),
            follow_ups,
        },
        claim_next: None,
    }
}

/// The task is done, and the value of the instance is its output.
pub(crate) fn done(claimed: &Claimed) -> Settlement {
    let result = ValueField::Output(claimed.ticket.task.clone());
    completed(claimed, vec![FollowUp::End { result }])
}

/// The task is done, these follow.
pub(crate) fn then(claimed: &Claimed, names: &[&str]) -> Settlement {
    let input = of_output(&claimed.ticket.task);
    let ready = |name: &&str| FollowUp::Ready(next(name, input.clone()));
    completed(claimed, names.iter().map(ready).collect())
}

/// The task is done, and its branch arrives at a join.
pub(crate) fn arrive(claimed: &Claimed, join: &str, need: u16, total: u16) -> Settlement {
    let next = next(join, InputRef::Join);
    completed(claimed, vec![FollowUp::Arrive { next, need, total }])
}

/// Waits for a signal, at most so many milliseconds.
pub(crate) fn wait_for(signal: &str, timeout: Option<i64>) -> Wait {
    Wait {
        signal: SignalName::new(signal).expect("a name"),
        timeout: timeout.map(ms),
    }
}

/// A node that waits for a signal.
pub(crate) fn waiting(name: &str, signal: &str, timeout: Option<i64>) -> FollowUp {
    FollowUp::Wait {
        next: next(name, signalled(name, 0)),
        wait: wait_for(signal, timeout),
    }
}

/// Where the value of a node is that has its signal.
pub(crate) fn signalled(name: &str, len: usize) -> InputRef {
    InputRef::Field {
        field: output_of(name),
        len,
    }
}

/// A signal with an id of its own.
pub(crate) fn signal(to: &str, name: &str, payload: &'static [u8]) -> SignalRequest {
    SignalRequest {
        id: id(to),
        run: None,
        name: SignalName::new(name).expect("a name"),
        signal: SignalId::unique(),
        payload: Bytes::from_static(payload),
    }
}

/// An instance of a workflow that waits for these signals.
pub(crate) fn awaiting(name: &str, signals: &[&str]) -> StartItem {
    let named = |name: &&str| SignalName::new(name).expect("a name");
    StartItem {
        signals: signals.iter().map(named).collect(),
        ..item(name)
    }
}

/// The node is done, with the value that is stored already.
pub(crate) fn passed(claimed: &Claimed, follow_ups: Vec<FollowUp>) -> Settlement {
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Completed {
            output: None,
            follow_ups,
        },
        claim_next: None,
    }
}

/// Claims the first follow-up of a settlement.
pub(crate) fn and_claim(settlement: Settlement) -> Settlement {
    Settlement {
        claim_next: Some(ClaimNext {
            follow_up: 0,
            nonce: Nonce::random(),
            only_if_empty: false,
        }),
        ..settlement
    }
}

pub(crate) fn error(claimed: &Claimed, message: &str) -> ErrorRecord {
    ErrorRecord {
        kind: ErrorKind::Error,
        task: claimed.ticket.task.clone(),
        attempt: claimed.record.attempt,
        message: message.to_owned(),
        worker: claimed.record.worker.clone(),
        at: claimed.now.as_millis(),
    }
}

pub(crate) fn retry(claimed: &Claimed, after: i64) -> Settlement {
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Retry {
            after: ms(after),
            error: error(claimed, "not yet"),
        },
        claim_next: None,
    }
}

pub(crate) fn fail(claimed: &Claimed) -> Settlement {
    Settlement {
        holding: holding(claimed),
        verdict: Verdict::Failed {
            error: error(claimed, "no\nhope"),
        },
        claim_next: None,
    }
}

pub(crate) fn settling(who: &str, items: Vec<Settlement>) -> SettleRequest {
    SettleRequest {
        partition: p0(),
        worker: worker(who),
        ttl: ms(TTL),
        items,
    }
}

pub(crate) fn extending(who: &str, claims: &[&Claimed]) -> ExtendRequest {
    ExtendRequest {
        partition: p0(),
        worker: worker(who),
        ttl: ms(TTL),
        items: claims.iter().map(|c| holding(c)).collect(),
    }
}

pub(crate) fn releasing(who: &str, claims: &[&Claimed]) -> ReleaseRequest {
    ReleaseRequest {
        partition: p0(),
        worker: worker(who),
        items: claims.iter().map(|c| holding(c)).collect(),
        leave: false,
    }
}

pub(crate) fn ticking() -> TickRequest {
    TickRequest {
        partition: p0(),
        keeper: None,
        expected: None,
        promote: 500,
        reap: 100,
        prune: 100,
        crash_delay: ms(100),
        ttl: ms(TTL),
        retention: Retention::default(),
    }
}
