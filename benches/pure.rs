//! What the pure parts cost, for each task: payloads, entries and records, the engine, the definition hash. No server.
//! Run by `cargo bench --bench pure`.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use serde::{Deserialize, Serialize};
use tenure::{
    TaskError, Workflow, codec,
    engine::{self, Attempt, Outcome},
    ids::{InputRef, InstanceId, Purpose, RunId, Ticket, ValueField},
    store::{TaskRecord, TaskState},
};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Payload {
    number: u64,
    text: String,
}

async fn work(payload: Payload) -> Result<Payload, TaskError> {
    Ok(payload)
}

async fn join((left, _): (Payload, Payload)) -> Result<Payload, TaskError> {
    Ok(left)
}

fn workflow() -> Workflow<Payload, Payload> {
    Workflow::builder("bench")
        .task("first", work)
        .fork(|fork| {
            fork.branch(|branch| branch.task("left", work))
                .branch(|branch| {
                    branch
                        .delay("wait", Duration::from_secs(1))
                        .task("right", work)
                })
        })
        .join("close", join)
        .build()
        .expect("a workflow")
}

fn payloads(criterion: &mut Criterion) {
    let payload = Payload {
        number: 1 << 40,
        text: "x".repeat(75),
    };
    let bytes = codec::encode(&payload).expect("a payload");
    let parts = vec![bytes.clone(); 10];
    criterion.bench_function("payload of 100 bytes: encode", |b| {
        b.iter(|| codec::encode(black_box(&payload)));
    });
    criterion.bench_function("payload of 100 bytes: decode", |b| {
        b.iter(|| codec::decode::<Payload>(black_box(&bytes)));
    });
    criterion.bench_function("ten payloads: join", |b| {
        b.iter(|| codec::join(black_box(&parts)));
    });
}

fn stored_text(criterion: &mut Criterion) {
    let workflow = workflow();
    let graph = workflow.graph();
    let first = graph.entry()[0];
    let ticket = Ticket {
        list: graph.list(first),
        id: InstanceId::new("order-000042").expect("an id"),
        task: graph.node(first).name.clone(),
        tail: RunId::unique().tail(),
        purpose: Purpose::Run,
        input: InputRef::Field {
            field: ValueField::Input,
            len: 100,
        },
    };
    let text = ticket.to_string();
    criterion.bench_function("ticket: write", |b| {
        b.iter(|| black_box(&ticket).to_string());
    });
    criterion.bench_function("ticket: read", |b| {
        b.iter(|| black_box(text.as_str()).parse::<Ticket>());
    });
    let record = TaskRecord::fresh(TaskState::Ready);
    let text = record.to_string();
    criterion.bench_function("record: write", |b| {
        b.iter(|| black_box(&record).to_string());
    });
    criterion.bench_function("record: read", |b| {
        b.iter(|| black_box(text.as_str()).parse::<TaskRecord>());
    });
}

fn decisions(criterion: &mut Criterion) {
    let workflow = workflow();
    let graph = workflow.graph();
    let first = graph.entry()[0];
    let attempt = Attempt {
        failures: 0,
        input: InputRef::Field {
            field: ValueField::Input,
            len: 100,
        },
        overall_left: None,
    };
    let outcome = Outcome::Completed { len: 100 };
    criterion.bench_function("engine: begin", |b| {
        b.iter(|| engine::begin(black_box(graph), 100));
    });
    criterion.bench_function("engine: decide, a fork of two", |b| {
        b.iter(|| engine::decide(black_box(graph), first, &attempt, &outcome, 0.5));
    });
    criterion.bench_function("workflow: build and hash", |b| b.iter(workflow_hash));
}

fn workflow_hash() -> tenure::ids::DefinitionHash {
    workflow().hash()
}

criterion_group!(pure, payloads, stored_text, decisions);
criterion_main!(pure);
