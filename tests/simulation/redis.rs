//! The same on Redis, in real time: fewer runs, side by side on one server.

use std::{ops::Range, sync::Arc, time::Duration};

use tenure::{Namespace, RedisStore};
use tenure_test_support::RedisServer;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    chaos::{Chaos, Logs, Time},
    run::heal,
    scenario::{Kind, Mode, Scenario},
    world::{Tuning, World},
};

const SEEDS: Range<u64> = 1..17;
/// The longest that a late repeat of a call is on its way.
const LATEST: Duration = Duration::from_secs(5);

async fn run(scenario: Scenario, url: String) -> Vec<String> {
    let millis = Duration::from_millis;
    let tuning = Tuning {
        ttl: millis(1000),
        poll: millis(500),
        reap: millis(200),
        drain: millis(300),
        trouble: millis(6000),
    };
    let chaos = Arc::new(Chaos::new(scenario, tuning.ttl, Time::Real, Logs::None));
    let namespace = Namespace::new(format!("run{}", chaos.scenario.seed)).expect("a name");
    let store = RedisStore::builder(url).namespace(namespace);
    let store = store.connect().await.expect("the server of this test");
    let world = World::new(Arc::clone(&chaos), Arc::new(store), tuning);
    world.begin();
    sleep(tuning.trouble).await;
    let healed = heal(&world).await;
    world.over.cancel();
    // Workers notice it within 200 ms; what they had sent before is stored soon after.
    let repeats = LATEST.saturating_sub(healed.unwrap_or_default());
    sleep(repeats + millis(500)).await;
    world.check_always().await;
    chaos.take().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_on_redis_in_real_time() {
    let server = RedisServer::start();
    let mut runs = JoinSet::new();
    for seed in SEEDS {
        let scenario = Scenario::new(Mode::Liveness, seed).without(Kind::ClockStep);
        let run = run(scenario.clone(), server.url());
        runs.spawn(async move { (scenario, run.await) });
    }
    while let Some(run) = runs.join_next().await {
        let (scenario, violations) = run.expect("a run that ends");
        assert!(violations.is_empty(), "{scenario}: {violations:#?}");
    }
}
