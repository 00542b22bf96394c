//! The doctor on an installation that is busy and well: signals, pauses, retries, ends by hand, workers that come, go and
//! die. It must have nothing to say.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tenure::{
    Client, RedisStore, RetryPolicy, TaskError, Worker, WorkerHandle, Workflow,
    client::ClientError,
    ids::Nonce,
    store::{ClaimRequest, Parking, Retention, Store},
};
use tenure_test_support::RedisServer;
use tokio::time::Instant;

use crate::making::{P0, partition, store, worker};

/// Two branches, one with a signal and a delay, one that fails now and then; then a last task.
fn flow() -> Workflow<u32, u32> {
    Workflow::builder("busy")
        .task("first", async |n: u32| anyhow::Ok(n))
        .fork(|f| {
            f.branch(|b| {
                b.await_signal::<u32>("go")
                    .delay("rest", Duration::from_millis(50))
            })
            .branch(|b| {
                b.task("shaky", async |n: u32| {
                    tokio::time::sleep(Duration::from_millis(u64::from(n % 50))).await;
                    if fastrand::u8(..4) == 0 {
                        return Err(TaskError::new("shaken"));
                    }
                    Ok(n)
                })
                .retry(RetryPolicy::fixed(Duration::from_millis(100)).max_attempts(4))
            })
        })
        .join("last", async |(a, b): (u32, u32)| anyhow::Ok(a + b))
        .build()
        .expect("a workflow")
}

/// How long: a few seconds in a test run, as long as `TENURE_BUSY_SECONDS` says when somebody wants to know.
fn how_long() -> Duration {
    let asked = std::env::var("TENURE_BUSY_SECONDS").ok();
    Duration::from_secs(asked.and_then(|text| text.parse().ok()).unwrap_or(20))
}

#[derive(Clone)]
struct Load {
    store: RedisStore,
    client: Client,
    flow: Workflow<u32, u32>,
    over: Arc<AtomicBool>,
    started: Arc<AtomicU64>,
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn worker(&self) -> WorkerHandle {
        Worker::builder(self.store.clone())
            .workflow(&self.flow)
            .claim_ttl(Duration::from_secs(1))
            .retention(Retention {
                completed: Duration::ZERO,
                ..Retention::default()
            })
            .build()
            .expect("a worker")
            .spawn()
    }

    /// Starts some sixty a second.
    async fn produce(self) {
        while self.goes_on() {
            let n = self.started.fetch_add(1, Ordering::Relaxed);
            let number = u32::try_from(n).expect("not so many");
            let start = self
                .client
                .start(&self.flow, number)
                .id(format!("busy-{n}"));
            let start = if n.is_multiple_of(10) {
                start.delay(Duration::from_millis(300))
            } else {
                start
            };
            start.await.expect("a start");
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }

    /// One of the latest.
    fn some(&self) -> String {
        let last = self.started.load(Ordering::Relaxed);
        format!("busy-{}", fastrand::u64(last.saturating_sub(200)..=last))
    }

    async fn signal(self) {
        let mut next = 0;
        while self.goes_on() {
            let last = self.started.load(Ordering::Relaxed).saturating_sub(20);
            while next < last {
                allowed(
                    self.client
                        .signal(format!("busy-{next}"), "go", &1_u32)
                        .await
                        .map(drop),
                );
                next += 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Pauses, resumes, ends and removes whatever it meets.
    async fn steer(self) {
        let (reason, who) = ("by chance", "test");
        while self.goes_on() {
            let (client, id) = (&self.client, self.some());
            allowed(client.pause(&id, reason, who).await.map(drop));
            tokio::time::sleep(Duration::from_millis(fastrand::u64(..60))).await;
            match fastrand::u8(..6) {
                0 => allowed(client.cancel(&id, reason, who).await.map(drop)),
                1 => allowed(client.terminate(&id, reason, who).await.map(drop)),
                2 => {
                    allowed(client.cancel(&id, reason, who).await.map(drop));
                    allowed(client.delete(&id).await.map(drop));
                }
                _ => {}
            }
            allowed(client.resume(&id, reason, who).await.map(drop));
        }
    }

    /// Claims as a worker that dies at once.
    async fn die(self) {
        while self.goes_on() {
            let request = ClaimRequest {
                partition: partition(&self.store, P0),
                worker: worker(&format!("dead-{}", fastrand::u32(..))),
                nonce: Nonce::random(),
                want: 2,
                lists: self.flow.graph().lists(),
                ttl: Duration::from_millis(400),
                limits: Arc::default(),
                parking: Parking::Never,
            };
            self.store.claim(request).await.expect("a claim");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Workers that come and go.
    async fn restart(self) {
        while self.goes_on() {
            let worker = self.worker();
            tokio::time::sleep(Duration::from_millis(1500)).await;
            worker.shutdown();
            worker.join().await.expect("its end");
        }
    }
}

/// What is met may be over, gone or paused already: that is no failure.
fn allowed(result: Result<(), ClientError>) {
    match result {
        Ok(())
        | Err(
            ClientError::NotFound { .. }
            | ClientError::Over { .. }
            | ClientError::AlreadyPaused { .. }
            | ClientError::Live { .. }
            | ClientError::Replaced { .. },
        ) => {}
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_busy_healthy_installation_there_is_no_finding() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let load = Load {
        client: Client::new(store.clone()),
        flow: flow(),
        over: Arc::default(),
        started: Arc::default(),
        store: store.clone(),
    };
    let stays = load.worker();
    let parts = [
        tokio::spawn(load.clone().produce()),
        tokio::spawn(load.clone().signal()),
        tokio::spawn(load.clone().steer()),
        tokio::spawn(load.clone().steer()),
        tokio::spawn(load.clone().die()),
        tokio::spawn(load.clone().restart()),
    ];
    let (until, mut looks, mut most) = (Instant::now() + how_long(), 0, 0);
    while Instant::now() < until {
        let suspected = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&suspected);
        // Small bites take long: much moves between the walk and the look at what was walked.
        let batch = if looks % 2 == 0 { 500 } else { 10 };
        let doctor = store.doctor().batch(batch).on_progress(move |progress| {
            counter.fetch_max(progress.suspects as u64, Ordering::Relaxed);
        });
        let report = doctor.examine().await.expect("an examination");
        assert_eq!(report.findings, [], "look {looks}");
        most = most.max(suspected.load(Ordering::Relaxed));
        looks += 1;
    }
    load.over.store(true, Ordering::Relaxed);
    for part in parts {
        part.await.expect("a part of the load");
    }
    stays.shutdown();
    stays.join().await.expect("its end");
    println!(
        "{looks} looks, at most {most} suspects, {} instances",
        load.started.load(Ordering::Relaxed)
    );
    assert!(
        looks >= 3 && most > 0,
        "{looks} looks, {most} suspects: it was not busy"
    );
    assert!(load.started.load(Ordering::Relaxed) > 100);
}
