//! The raw reference: what this Redis, this client and this machine can do at most with one script call for each task.
//!
//! A script of eight commands, of the kind a transition needs, is called by its hash by 200 tasks at once over one
//! multiplexed connection (one for each node), with a payload of 100 bytes. It is measured before and after each load, so
//! that a machine that is slower today is slower in both.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use futures_util::future::try_join_all;
use hdrhistogram::Histogram;
use redis::{Script, aio::MultiplexedConnection};

use super::{
    clock,
    flow::PAYLOAD,
    measure::{Meter, Spent, histogram},
};

/// Calls in flight.
pub(crate) const IN_FLIGHT: usize = 200;
/// What one call runs.
pub(crate) const COMMANDS: u32 = 8;
const SCRIPT: &str = "\
local at = redis.call('HMGET', KEYS[1], 'state', 'run')
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'input', ARGV[2])
redis.call('SET', KEYS[2], ARGV[1], 'PX', 30000)
redis.call('ZADD', KEYS[3], 1, ARGV[1])
redis.call('LPUSH', KEYS[4], ARGV[1])
redis.call('RPOP', KEYS[4])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[2])
return at";

/// One connection and the keys on its node.
#[derive(Clone)]
pub(crate) struct Lane {
    connection: MultiplexedConnection,
    script: Arc<Script>,
    tag: Arc<str>,
}

/// One measurement.
pub(crate) struct Reference {
    pub(crate) calls: u64,
    pub(crate) latency: Histogram<u64>,
    pub(crate) spent: Spent,
}

impl Reference {
    /// Calls per second.
    pub(crate) fn rate(&self) -> f64 {
        self.calls as f64 / self.spent.seconds
    }

    /// Calls the script so often over all lanes together.
    pub(crate) async fn measure(meter: &Meter, lanes: &[Lane], calls: u64) -> anyhow::Result<Self> {
        for lane in lanes {
            lane.call(0).await?;
        }
        let next = Arc::new(AtomicU64::new(0));
        let before = meter.mark().await?;
        let tasks = (0..IN_FLIGHT).map(|number| {
            let (lane, next) = (lanes[number % lanes.len()].clone(), Arc::clone(&next));
            tokio::spawn(async move { lane.work(number, &next, calls).await })
        });
        let done = try_join_all(tasks).await?;
        let spent = meter.mark().await?.since(&before);
        let mut latency = histogram();
        for one in done {
            latency.add(one?)?;
        }
        Ok(Self {
            calls,
            latency,
            spent,
        })
    }
}

impl Lane {
    /// Keys are made under a tag, so that they are in one slot.
    pub(crate) fn new(connection: MultiplexedConnection, tag: &str) -> Self {
        Self {
            connection,
            script: Arc::new(Script::new(SCRIPT)),
            tag: tag.into(),
        }
    }

    async fn work(
        &self,
        number: usize,
        next: &AtomicU64,
        calls: u64,
    ) -> anyhow::Result<Histogram<u64>> {
        let mut latency = histogram();
        while next.fetch_add(1, Ordering::Relaxed) < calls {
            let began = clock::micros();
            self.call(number).await?;
            latency.saturating_record(clock::micros() - began);
        }
        Ok(latency)
    }

    async fn call(&self, number: usize) -> anyhow::Result<()> {
        let Self { script, tag, .. } = self;
        let payload = [b'x'; PAYLOAD];
        let _: redis::Value = script
            .key(format!("{{{tag}}}:raw:instance-{number}"))
            .key(format!("{{{tag}}}:raw:claim-{number}"))
            .key(format!("{{{tag}}}:raw:running"))
            .key(format!("{{{tag}}}:raw:ready"))
            .arg(number)
            .arg(&payload[..])
            .invoke_async(&mut self.connection.clone())
            .await?;
        Ok(())
    }

    /// Deletes the keys.
    pub(crate) async fn remove(&self) -> anyhow::Result<()> {
        let tag = &self.tag;
        let keys: Vec<String> = (0..IN_FLIGHT)
            .map(|number| format!("{{{tag}}}:raw:instance-{number}"))
            .collect();
        redis::cmd("UNLINK")
            .arg(keys)
            .exec_async(&mut self.connection.clone())
            .await?;
        Ok(())
    }
}
