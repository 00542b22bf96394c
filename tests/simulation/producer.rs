//! Clients: they start, wait, cancel, and die too.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use tenure::{
    Client, ClientError, Handle, IdPolicy, RetryFrom, Status,
    client::Filter,
    testing::{Digest, Link},
};
use tokio::{sync::Mutex, time::sleep};

use crate::{shape::Token, world::World};

/// A client process, and the next one when it has died.
struct Office {
    world: World,
    current: Mutex<(usize, Client, Arc<Link>)>,
}

/// How many ids there are: they meet now and then, so that policies have something to decide.
pub(crate) fn ids(world: &World) -> u64 {
    world.chaos.scenario.starts as u64 * 3 / 4 + 1
}

/// All starts of the run, each at its own time.
pub(crate) fn begin(world: &World) {
    let (client, link) = world.client("c0");
    let office = Arc::new(Office {
        world: world.clone(),
        current: Mutex::new((0, client, link)),
    });
    tokio::spawn(Arc::clone(&office).operate());
    let mut rng = world.rng(0xc11e);
    let latest = u64::try_from(world.tuning.trouble.as_millis()).unwrap_or(u64::MAX) * 2 / 3;
    for number in 0..world.chaos.scenario.starts {
        let (office, mut rng) = (Arc::clone(&office), Rng::with_seed(rng.u64(..)));
        let at = if number == 0 { 10 } else { rng.u64(1..latest) };
        tokio::spawn(async move {
            sleep(Duration::from_millis(at)).await;
            office.start(rng, number as u64).await;
        });
    }
}

impl Office {
    async fn client(&self) -> Client {
        let mut current = self.current.lock().await;
        if current.2.is_dead() {
            let number = current.0 + 1;
            let (client, link) = self.world.client(&format!("c{number}"));
            *current = (number, client, link);
        }
        current.1.clone()
    }

    async fn start(self: Arc<Self>, mut rng: Rng, number: u64) {
        let world = &self.world;
        let flow = &world.flows[rng.usize(..world.flows.len())];
        let ids = ids(world);
        let input = Token {
            by: "client".into(),
            serial: number,
        };
        let client = self.client().await;
        let mut start = client
            .start(flow, input)
            .id(format!("i{}", rng.u64(..ids)))
            .if_exists(IdPolicy::ALL[rng.usize(..4)])
            .max_crashes(rng.u32(0..4));
        if rng.u8(0..5) == 0 {
            start = start.delay(Duration::from_millis(rng.u64(1..3000)));
        }
        let Ok(handle) = start.await else { return };
        world
            .ledger
            .started(handle.id(), handle.run())
            .expect("a ledger in memory");
        if rng.bool() {
            let (office, handle) = (Arc::clone(&self), handle.clone());
            tokio::spawn(async move { office.wait(&handle).await });
        }
        self.control(&mut rng, &handle).await;
    }

    async fn control(&self, rng: &mut Rng, handle: &Handle<Token>) {
        let what = rng.u8(0..10);
        if what >= 7 {
            return;
        }
        sleep(Duration::from_millis(rng.u64(1..6000))).await;
        let done = match what {
            0 => handle.terminate("it is enough", "operator").await,
            1 | 2 => handle.cancel("not needed", "user").await,
            3..6 => self.pause(rng, handle).await,
            _ => self.retry(handle).await,
        };
        if let Err(error) = done {
            self.world.chaos.note("control", &|| error.to_string());
        }
    }

    /// For a while, or until the operator sees it: the client may die in between.
    async fn pause(&self, rng: &mut Rng, handle: &Handle<Token>) -> Result<(), ClientError> {
        handle.pause("to look at it", "user").await?;
        sleep(Duration::from_millis(rng.u64(1..3000))).await;
        handle.resume("looked at it", "user").await
    }

    /// As soon as it is dead, as long as the world is not whole: then all has to end.
    async fn retry(&self, handle: &Handle<Token>) -> Result<(), ClientError> {
        let failed = matches!(handle.result_bytes().await, Err(ClientError::Failed { .. }));
        if !failed || self.world.chaos.is_healed() {
            return Ok(());
        }
        handle.retry(RetryFrom::Failed, "once more", "user").await
    }

    /// Now and then all that is paused goes on: what clients forgot, and what waits for a person.
    async fn operate(self: Arc<Self>) {
        let mut rng = self.world.rng(0x09e7);
        while !self.world.over.is_cancelled() {
            let most = if self.world.chaos.is_healed() {
                500
            } else {
                5000
            };
            sleep(Duration::from_millis(rng.u64(100..most))).await;
            // A client that dies is never heard of again.
            tokio::time::timeout(Duration::from_secs(3), self.resume_all())
                .await
                .ok();
        }
    }

    async fn resume_all(&self) {
        let client = self.client().await;
        let paused = Filter::new().status(Status::Paused);
        let Ok(page) = client.list(&paused).await else {
            return;
        };
        for instance in page.instances {
            if let Err(error) = client.resume(instance.id.as_str(), "", "operator").await {
                self.world.chaos.note("operator", &|| error.to_string());
            }
        }
    }

    async fn wait(&self, handle: &Handle<Token>) {
        let (status, result) = match handle.result_bytes().await {
            Ok(bytes) => (Status::Completed, Some(Digest::of_bytes(&bytes))),
            Err(ClientError::Failed { .. }) => (Status::Failed, None),
            Err(ClientError::Cancelled { .. }) => (Status::Cancelled, None),
            Err(ClientError::Terminated { .. }) => (Status::Terminated, None),
            // Replaced, or the client gave up.
            Err(_) => return,
        };
        self.world
            .ledger
            .told(handle.id(), handle.run(), status, result)
            .expect("a ledger in memory");
    }
}
