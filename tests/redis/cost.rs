//! What a task costs Redis: commands and time, counted by the server itself.

use std::time::Duration;

use tenure::store::{Begin, ClaimNext, SettleReply, Store};
use tenure_test_support::RedisServer;

use crate::making::{
    P0, claim, claiming, done, item, partition, settle, start_many, store, then, ticking,
};

const BATCH: u16 = 50;
/// Timers of one tick.
const DUE: u32 = 200;

/// What the server counted between two looks.
#[derive(Debug, Clone, Copy)]
struct Cost {
    calls: f64,
    commands: f64,
    micros: f64,
}

fn scripts(server: &RedisServer) -> Cost {
    let text: String = server.run(&["INFO", "commandstats"]);
    let mut cost = Cost {
        calls: 0.0,
        commands: 0.0,
        micros: 0.0,
    };
    for line in text
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"))
    {
        let (name, stats) = line.split_once(':').expect("a name");
        let number = |key: &str| {
            stats
                .split(',')
                .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
                .and_then(|value| value.parse::<f64>().ok())
                .expect("a number")
        };
        match name {
            "evalsha" | "eval" => {
                cost.calls += number("calls");
                cost.micros += number("usec");
            }
            "info" | "client|setinfo" | "ping" => {}
            _ => cost.commands += number("calls"),
        }
    }
    cost
}

impl Cost {
    fn since(self, before: Self, tasks: usize) -> Self {
        let tasks = tasks as f64;
        Self {
            calls: (self.calls - before.calls) / tasks,
            commands: (self.commands - before.commands) / tasks,
            micros: (self.micros - before.micros) / tasks,
        }
    }
}

fn least(costs: &[Cost]) -> f64 {
    costs
        .iter()
        .map(|cost| cost.micros)
        .fold(f64::MAX, f64::min)
}

/// The time is the least of all batches: what the work takes when nothing else disturbs it.
fn show(name: &str, costs: &[Cost]) -> Cost {
    let count = costs.len() as f64;
    let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / count;
    let cost = Cost {
        calls: mean(|c| c.calls),
        commands: mean(|c| c.commands),
        micros: least(costs),
    };
    println!(
        "{name:6} {:6.2} µs, {:5.2} commands, {:.4} calls for each task",
        cost.micros, cost.commands, cost.calls
    );
    cost
}

#[tokio::test]
async fn a_task_costs_few_commands_and_a_fraction_of_a_call() {
    const BATCHES: usize = 100;
    let batch = usize::from(BATCH);
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "warm-", 500).await;
    let (mut started, mut claimed, mut settled) = (vec![], vec![], vec![]);
    for round in 0..BATCHES {
        let before = scripts(&server);
        start_many(&store, &format!("order-{round}-"), batch).await;
        started.push(scripts(&server).since(before, batch));
    }
    for _ in 0..BATCHES {
        let before = scripts(&server);
        let claims = claim(&store, "w", BATCH).await.claims;
        let between = scripts(&server);
        claimed.push(between.since(before, claims.len()));
        settle(&store, "w", claims.iter().map(done).collect()).await;
        settled.push(scripts(&server).since(between, claims.len()));
    }
    let start = show("start", &started);
    assert!(start.commands < 1.2, "{start:?}: HSET");
    assert!(start.calls < 0.021, "{start:?}");
    let claim = show("claim", &claimed);
    assert!(
        claim.commands < 3.4,
        "{claim:?}: HMGET, SET, HSET, and a few for each call"
    );
    let settle = show("settle", &settled);
    assert!(
        settle.commands < 2.3,
        "{settle:?}: HMGET, HSET, and a few for each call"
    );
}

#[tokio::test]
async fn a_chain_costs_one_call_for_several_tasks_once_it_is_claimed() {
    let server = RedisServer::start();
    let store = store(&server).await;
    start_many(&store, "order-", usize::from(BATCH)).await;
    let mut claims = claim(&store, "w", BATCH).await.claims;
    settle(
        &store,
        "w",
        claims
            .split_off(usize::from(BATCH) - 1)
            .iter()
            .map(done)
            .collect(),
    )
    .await;
    let mut costs = Vec::new();
    for round in 0..40 {
        let items = claims.iter().map(|claimed| {
            let mut settlement = then(claimed, &format!("t{round}"));
            settlement.claim_next = Some(ClaimNext {
                follow_up: 0,
                nonce: tenure::ids::Nonce::random(),
                only_if_empty: false,
            });
            settlement
        });
        let before = scripts(&server);
        let replies = settle(&store, "w", items.collect()).await;
        costs.push(scripts(&server).since(before, claims.len()));
        let next = |reply| match reply {
            SettleReply::Stored { next: Some(next) } => *next,
            other => panic!("{other:?}"),
        };
        claims = replies.into_iter().map(next).collect();
    }
    let cost = show("chain", &costs);
    assert!(cost.commands < 3.3, "{cost:?}: HMGET, SET, HSET");
    assert!(cost.calls < 0.03, "{cost:?}");
}

/// What one call does must not grow with what stands in the lists: the commands are counted, and the time is shown.
#[tokio::test]
async fn no_script_does_more_on_a_backlog_of_100_000() {
    let server = RedisServer::start();
    let store = store(&server).await;
    let mut starts = Vec::new();
    for round in 0..200 {
        let before = scripts(&server);
        start_many(&store, &format!("order-{round}-"), 500).await;
        starts.push(scripts(&server).since(before, 1));
    }
    let (mut claims, mut settles, mut reaps, mut promotes) = (vec![], vec![], vec![], vec![]);
    for round in 0..40 {
        let before = scripts(&server);
        let claimed = claim(&store, "w", BATCH).await.claims;
        claims.push(scripts(&server).since(before, 1));
        let before = scripts(&server);
        settle(&store, "w", claimed.iter().map(done).collect()).await;
        settles.push(scripts(&server).since(before, 1));
        let mut expiring = claiming(&store, "w", 100);
        expiring.ttl = Duration::from_millis(1);
        store.claim(expiring).await.expect("a claim");
        let delayed = (0..DUE).map(|i| {
            let mut delayed = item(&format!("delayed-{round}-{i}"));
            delayed.begin = Begin::After(Duration::from_millis(1));
            delayed
        });
        store
            .start(partition(&store, P0), delayed.collect())
            .await
            .expect("a start");
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut promote = ticking(&store, P0);
        (promote.reap, promote.promote) = (0, DUE);
        let before = scripts(&server);
        let promoted = store.tick(promote.clone()).await.expect("a tick").promoted;
        promotes.push(scripts(&server).since(before, 1));
        assert_eq!(promoted, DUE);
        (promote.reap, promote.promote) = (100, 0);
        let before = scripts(&server);
        let recovered = store.tick(promote).await.expect("a tick").recovered.len();
        reaps.push(scripts(&server).since(before, 1));
        assert_eq!(recovered, 100);
    }
    for (name, costs, most) in [
        ("start of 500", starts, 520.0),
        ("claim of 50", claims, 170.0),
        ("settle of 50", settles, 115.0),
        ("promote of 200", promotes, 420.0),
        ("reap of 100", reaps, 520.0),
    ] {
        let commands = costs.iter().map(|cost| cost.commands);
        let commands = commands.fold(0.0, f64::max);
        println!(
            "{name:15} {:6.0} µs at best, {commands} commands at most",
            least(&costs)
        );
        assert!(commands <= most, "{name}: {commands} commands");
    }
}
