//! Who signals: sends each instance what its workflow waits for, early or late, and now and then one more.

use std::{collections::HashMap, sync::Arc, time::Duration};

use fastrand::Rng;
use tenure::{
    Client, ClientError, InstanceId, Status, codec,
    ids::{RunId, SignalId, SignalName},
    store::Inspect,
    testing::{Digest, Line, Link},
    workflow::Graph,
};
use tokio::time::{sleep, timeout};

use crate::{shape::Token, world::World};

/// How long one call may take before it is sent again.
const PATIENCE: Duration = Duration::from_secs(6);

/// A process that signals one instance, and the next one when it has died.
struct Clerk {
    world: World,
    id: InstanceId,
    client: Client,
    link: Arc<Link>,
    lives: usize,
    rng: Rng,
    sent: HashMap<(RunId, SignalName), usize>,
}

/// One for each id that an instance can have.
pub(crate) fn begin(world: &World, ids: u64) {
    for number in 0..ids {
        let (client, link) = world.client(&format!("s{number}.0"));
        let clerk = Clerk {
            world: world.clone(),
            id: InstanceId::new(format!("i{number}")).expect("an id"),
            client,
            link,
            lives: 0,
            rng: world.rng(0x51c7 + number),
            sent: HashMap::new(),
        };
        tokio::spawn(clerk.run());
    }
}

/// How many nodes wait for a signal.
fn waits(graph: &Graph, name: &SignalName) -> usize {
    let signals = graph.nodes().iter().filter_map(|node| node.signal.as_ref());
    signals.filter(|signal| *signal == name).count()
}

impl Clerk {
    async fn run(mut self) {
        while !self.world.over.is_cancelled() {
            sleep(Duration::from_millis(self.rng.u64(50..700))).await;
            let store: &dyn Inspect = self.world.store.as_ref();
            let header = store.header(&self.id).await.expect("a whole store");
            let Some(header) = header.filter(|header| header.status == Status::Running) else {
                continue;
            };
            let flows = Arc::clone(&self.world.flows);
            let flow = flows.iter().find(|flow| flow.hash() == header.definition);
            let graph = flow.expect("a workflow of this world").graph();
            for name in graph.signals() {
                let more = usize::from(self.rng.u8(0..8) == 0);
                let sent = self.sent.entry((header.run, name.clone())).or_default();
                let eager = self.world.chaos.is_healed() || self.rng.u8(0..3) == 0;
                if eager && *sent < waits(graph, &name) + more {
                    *sent += 1;
                    let signal = SignalId::new(format!("{name}-{sent}")).expect("an id");
                    self.send(header.run, &name, &signal).await;
                }
            }
        }
    }

    /// Until there is an answer, by a new process where one has died.
    async fn send(&mut self, run: RunId, name: &SignalName, signal: &SignalId) {
        let payload = codec::encode(&Token {
            by: "clerk".into(),
            serial: self.world.chaos.serial(),
        });
        let payload = payload.expect("a token can be stored");
        let line = |acknowledged| Line::Signalled {
            id: self.id.clone(),
            run,
            name: name.clone(),
            signal: signal.clone(),
            payload: Digest::of_bytes(&payload),
            acknowledged,
        };
        let (begun, done) = (line(false), line(true));
        self.world.ledger.write(begun).expect("a ledger in memory");
        while !self.world.over.is_cancelled() {
            self.revive();
            let client = self.client.clone();
            let call = client.signal_bytes(self.id.as_str(), name.as_str(), payload.clone());
            let call = call.id(signal.as_str()).run(run).into_future();
            match timeout(PATIENCE, call).await {
                Ok(Ok(_)) => {
                    self.world.ledger.write(done).expect("a ledger in memory");
                    return;
                }
                Ok(Err(
                    ClientError::NotFound { .. }
                    | ClientError::Over { .. }
                    | ClientError::Replaced { .. },
                )) => return,
                Ok(Err(_)) | Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    fn revive(&mut self) {
        if self.link.is_dead() {
            self.lives += 1;
            let number = self.id.as_str().trim_start_matches('i');
            let name = format!("s{number}.{}", self.lives);
            (self.client, self.link) = self.world.client(&name);
        } else if self.world.chaos.is_healed() {
            self.link.heal();
        }
    }
}
