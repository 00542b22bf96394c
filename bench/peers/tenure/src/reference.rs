use std::time::Instant;

use peers_common::{Args, Result};
use redis::{Script, aio::MultiplexedConnection};
use tokio::task::JoinSet;

/// Eight commands of the kinds that a transition is made of, those of `tenure bench`. It leaves little behind.
const SCRIPT: &str = "
local at = redis.call('HMGET', KEYS[1], 'state', 'run')
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'input', ARGV[2])
redis.call('SET', KEYS[2], ARGV[1], 'PX', 30000)
redis.call('ZADD', KEYS[3], 1, ARGV[1])
redis.call('LPUSH', KEYS[4], ARGV[1])
redis.call('RPOP', KEYS[4])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('DEL', KEYS[2])
return at
";

/// How often a second the script runs, from as many tasks as there are slots, on one connection.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let connection = peers_common::connect(&args.url).await?;
    let script = Script::new(SCRIPT);
    script
        .prepare_invoke()
        .load_async(&mut connection.clone())
        .await?;
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for slot in 0..args.slots {
        tasks.spawn(calls(connection.clone(), slot, args.count / args.slots));
    }
    let mut called = 0;
    while let Some(done) = tasks.join_next().await {
        called += done??;
    }
    if called != args.count / args.slots * args.slots {
        return Err(format!("{called} calls answered, not {}", args.count).into());
    }
    let rate = called as f64 / begun.elapsed().as_secs_f64();
    println!("{{\"reference\":{rate}}}");
    Ok(())
}

async fn calls(mut connection: MultiplexedConnection, slot: usize, count: usize) -> Result<usize> {
    let script = Script::new(SCRIPT);
    let instance = format!("{{raw}}:instance-{slot}");
    let claim = format!("{{raw}}:claim-{slot}");
    let payload = "x".repeat(100);
    let mut answered = 0;
    for _ in 0..count {
        let _: redis::Value = script
            .key(&instance)
            .key(&claim)
            .key("{raw}:running")
            .key("{raw}:ready")
            .arg(slot)
            .arg(&payload)
            .invoke_async(&mut connection)
            .await?;
        answered += 1;
    }
    Ok(answered)
}
