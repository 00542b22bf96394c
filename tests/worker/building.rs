use std::time::Duration;

use tenure::{
    reaper::Reaper,
    store::memory::MemoryStore,
    worker::{Worker, WorkerBuildError},
    workflow::Workflow,
};

fn echo(name: &str) -> Workflow<u32, u32> {
    Workflow::builder(name)
        .task("a", |n: u32| async move { anyhow::Ok(n) })
        .build()
        .unwrap()
}

fn refused(builder: tenure::worker::WorkerBuilder) -> WorkerBuildError {
    builder.build().expect_err("refused")
}

// W01
#[test]
fn workers_have_ids_of_their_own_unless_told() {
    let flow = echo("flow");
    let worker = || Worker::builder(MemoryStore::new()).workflow(&flow);
    let (one, two) = (worker().build().unwrap(), worker().build().unwrap());
    assert_ne!(one.id(), two.id());
    assert!(one.id().as_str().len() <= 30);
    assert_eq!(worker().id("w-1").build().unwrap().id().as_str(), "w-1");
}

// W02 W03 W49
#[test]
fn a_worker_that_makes_no_sense_is_refused_in_words() {
    let flow = echo("flow");
    let worker = || Worker::builder(MemoryStore::new()).workflow(&flow);
    let none = refused(Worker::builder(MemoryStore::new()));
    assert_eq!(none, WorkerBuildError::NoWorkflow);
    let twice = refused(worker().workflow(echo("flow")));
    assert!(matches!(twice, WorkerBuildError::Twice { .. }), "{twice}");
    assert!(worker().workflow(echo("other")).build().is_ok());
    let queue = refused(worker().queues(["elsewhere"]));
    assert!(queue.to_string().contains("default"), "{queue}");
    for (option, builder) in [
        ("claim_ttl", worker().claim_ttl(Duration::ZERO)),
        ("claim_ttl", worker().claim_ttl(Duration::from_millis(49))),
        ("claim_ttl", worker().claim_ttl(Duration::from_secs(86_401))),
        ("claim_ttl", worker().claim_ttl(Duration::MAX)),
        ("concurrency", worker().concurrency(0)),
        ("max_batch", worker().max_batch(0)),
        ("max_batch", worker().max_batch(257)),
        ("poll_interval", worker().poll_interval(Duration::ZERO)),
        ("reap_interval", worker().reap_interval(Duration::ZERO)),
        ("reap_batch", worker().reap_batch(0)),
        ("crash_delay", worker().crash_delay(Duration::ZERO)),
        ("drain_timeout", worker().drain_timeout(Duration::MAX)),
    ] {
        let error = refused(builder).to_string();
        assert!(
            error.starts_with(option) && error.contains(" to "),
            "{error}"
        );
    }
    assert!(
        worker()
            .claim_ttl(Duration::from_millis(50))
            .build()
            .is_ok()
    );
    for id in ["", "a b", "this-id-is-longer-than-30-bytes"] {
        let error = refused(worker().id(id));
        assert!(matches!(error, WorkerBuildError::Id(_)), "{error}");
    }
    let queue = refused(worker().queues(["not a queue"]));
    assert!(matches!(queue, WorkerBuildError::Id(_)), "{queue}");
}

// R03
#[test]
fn a_reaper_that_makes_no_sense_is_refused_in_words() {
    let reaper = || Reaper::builder(MemoryStore::new());
    assert!(reaper().build().is_ok());
    let defaults = format!("{:?}", reaper());
    for default in ["interval: 1s", "batch_size: 100"] {
        assert!(defaults.contains(default), "{defaults}");
    }
    for (option, builder) in [
        ("interval", reaper().interval(Duration::ZERO)),
        ("interval", reaper().interval(Duration::MAX)),
        ("batch_size", reaper().batch_size(0)),
        ("crash_delay", reaper().crash_delay(Duration::ZERO)),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.option, option);
        assert!(error.to_string().contains(" to "), "{error}");
    }
}
