//! What a task costs Redis: microseconds of its one thread, and commands inside the scripts, counted by
//! `INFO commandstats` and not by the clock of this process. Run by `cargo bench --bench redis_cost`.
//!
//! Two loads on an empty server, 200 tasks in flight, calls of 50: instances of one task, and chains of three whose
//! follow-ups are claimed in the settling call. The last line of each load is checked against the number of instances.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use tenure::{
    engine::{FollowUp, Limits, Next},
    ids::{
        DefinitionHash, InputRef, InstanceId, ListName, Nonce, Partition, QueueName, RunId,
        TaskName, ValueField, WorkerId,
    },
    store::{
        Begin, ClaimNext, ClaimRequest, Claimed, Holding, IdPolicy, Parking, SettleReply,
        SettleRequest, Settlement, StartItem, Status, Store, TaskLimits, Verdict,
        redis::RedisStore,
    },
};
use tenure_test_support::RedisServer;

const INSTANCES: usize = 20_000;
const BATCH: usize = 50;
const IN_FLIGHT: usize = 200;
const PAYLOAD: usize = 100;
const TTL: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let server = RedisServer::start();
    println!(
        "{:<28} {:>9} {:>10} {:>12}   commands inside, per item",
        "phase", "items", "µs/item", "commands"
    );
    for (name, length) in [("single", 1), ("chain of 3", 3)] {
        server.run::<()>(&["FLUSHALL"]);
        let store = RedisStore::connect(&server.url()).await.expect("connect");
        let load = Load {
            store: Arc::new(store),
            length,
        };
        server.run::<()>(&["CONFIG", "RESETSTAT"]);
        load.start().await;
        report(&server, &format!("{name}: bulk start"), INSTANCES);
        server.run::<()>(&["CONFIG", "RESETSTAT"]);
        load.drain().await;
        report(
            &server,
            &format!("{name}: claim + settle"),
            INSTANCES * length,
        );
        let counts = load
            .store
            .counts(Partition::default())
            .await
            .expect("counts");
        assert_eq!(
            counts.finished.get(&Status::Completed),
            Some(&INSTANCES),
            "every instance completed, once"
        );
        assert_eq!(
            (counts.running, counts.delayed, counts.ready.len()),
            (0, 0, 0),
            "nothing is left behind"
        );
    }
}

struct Load {
    store: Arc<dyn Store>,
    length: usize,
}

fn list() -> ListName {
    ListName {
        queue: QueueName::default(),
        definition: DefinitionHash::from_digest([7; 8]),
    }
}

fn task(index: usize) -> TaskName {
    TaskName::new(format!("step-{index}")).expect("a name")
}

fn next(index: usize, field: ValueField) -> Next {
    Next {
        task: task(index),
        list: list(),
        input: InputRef::Field {
            field,
            len: PAYLOAD,
        },
        limits: Limits::NONE,
    }
}

impl Load {
    async fn start(&self) {
        for from in (0..INSTANCES).step_by(BATCH) {
            let items = (from..from + BATCH).map(|i| self.item(i)).collect();
            self.store
                .start(Partition::default(), items)
                .await
                .expect("start");
        }
    }

    fn item(&self, number: usize) -> StartItem {
        StartItem {
            id: InstanceId::new(format!("order-{number:06}")).expect("an id"),
            run: RunId::unique(),
            policy: IdPolicy::Fail,
            workflow: "bench".parse().expect("a name"),
            definition: list().definition,
            queue: QueueName::default(),
            begin: Begin::Now,
            signals: Vec::new(),
            first: vec![FollowUp::Ready(next(0, ValueField::Input))],
            input: Bytes::from(vec![0xc0; PAYLOAD]),
            meta: None,
            max_crashes: 5,
            on_exhausted: tenure::OnExhausted::Fail,
            waiter: None,
        }
    }

    /// Claims and settles until nothing is left, with up to [`IN_FLIGHT`] tasks claimed at a time.
    async fn drain(&self) {
        let worker = WorkerId::unique();
        let mut held: Vec<Claimed> = Vec::new();
        loop {
            while held.len() + BATCH <= IN_FLIGHT {
                let reply = self.store.claim(self.claim(&worker)).await.expect("claim");
                if reply.claims.is_empty() {
                    break;
                }
                held.extend(reply.claims);
            }
            if held.is_empty() {
                return;
            }
            let batch = held
                .drain(..BATCH.min(held.len()))
                .map(|claimed| self.settlement(claimed))
                .collect();
            let request = SettleRequest {
                partition: Partition::default(),
                worker: worker.clone(),
                ttl: TTL,
                items: batch,
            };
            for reply in self.store.settle(request).await.expect("settle") {
                match reply {
                    SettleReply::Stored { next } => held.extend(next.map(|claimed| *claimed)),
                    other => panic!("a settlement was refused: {other:?}"),
                }
            }
        }
    }

    fn claim(&self, worker: &WorkerId) -> ClaimRequest {
        ClaimRequest {
            partition: Partition::default(),
            worker: worker.clone(),
            nonce: Nonce::random(),
            want: u16::try_from(BATCH).expect("small"),
            lists: vec![list()],
            ttl: TTL,
            limits: Arc::new(TaskLimits::new()),
            parking: Parking::Never,
        }
    }

    fn settlement(&self, claimed: Claimed) -> Settlement {
        let index: usize = claimed
            .ticket
            .task
            .as_str()
            .rsplit('-')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a step");
        let output = ValueField::Output(claimed.ticket.task.clone());
        let last = index + 1 == self.length;
        let follow_ups = vec![if last {
            FollowUp::End { result: output }
        } else {
            FollowUp::Ready(next(index + 1, output))
        }];
        let claim_next = (!last).then(|| ClaimNext {
            follow_up: 0,
            nonce: Nonce::random(),
            only_if_empty: false,
        });
        Settlement {
            holding: Holding {
                ticket: claimed.ticket,
                run: claimed.run,
                record: claimed.record,
            },
            verdict: Verdict::Completed {
                output: Some(Bytes::from(vec![0xc0; PAYLOAD])),
                follow_ups,
            },
            claim_next,
        }
    }
}

/// Prints what the server counted since the last reset.
fn report(server: &RedisServer, phase: &str, items: usize) {
    let info: String = server.run(&["INFO", "commandstats"]);
    let mut scripts = 0.0;
    let mut inside = BTreeMap::new();
    for line in info.lines() {
        let Some((name, rest)) = line
            .strip_prefix("cmdstat_")
            .and_then(|line| line.split_once(':'))
        else {
            continue;
        };
        let field = |key: &str| {
            rest.split(',')
                .find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
                .and_then(|v| v.parse::<f64>().ok())
        };
        let (calls, micros) = (field("calls").unwrap_or(0.0), field("usec").unwrap_or(0.0));
        match name {
            "evalsha" | "eval" => scripts += micros,
            "info" | "config|resetstat" | "script|load" | "ping" => {}
            _ => {
                inside.insert(name.to_owned(), calls / items as f64);
            }
        }
    }
    let total: f64 = inside.values().sum();
    let each: Vec<String> = inside
        .iter()
        .filter(|(_, n)| **n >= 0.01)
        .map(|(name, n)| format!("{name} {n:.2}"))
        .collect();
    println!(
        "{phase:<28} {items:>9} {:>10.2} {total:>12.2}   {}",
        scripts / items as f64,
        each.join(", ")
    );
}
