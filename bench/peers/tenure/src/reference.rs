use std::time::Instant;

use peers_common::{Args, Result};
use redis::{Script, aio::MultiplexedConnection};
use tokio::task::JoinSet;

/// Eight commands of the kinds that a transition is made of. It leaves nothing behind.
const SCRIPT: &str = "
local id = ARGV[1]
redis.call('ZREM', KEYS[1], id)
redis.call('HSET', KEYS[2], 'status', ARGV[2], 'out', ARGV[3])
redis.call('HMGET', KEYS[2], 'status', 'out', 'none')
redis.call('SET', KEYS[3], ARGV[2], 'NX', 'PX', 30000)
redis.call('RPUSH', KEYS[4], id)
redis.call('LPOP', KEYS[4])
redis.call('ZADD', KEYS[1], 1, id)
redis.call('DEL', KEYS[2], KEYS[3])
return 1
";

/// How often a second the script runs, from as many tasks as there are slots, on one connection.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let connection = redis::Client::open(args.url.as_str())?
        .get_multiplexed_async_connection()
        .await?;
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
    let keys = ["running", "instance", "claim", "ready"].map(|key| format!("{{ref}}:{key}:{slot}"));
    let output = "x".repeat(100);
    let mut answered = 0;
    for call in 0..count {
        let mut call_of = script.prepare_invoke();
        for key in &keys {
            call_of.key(key);
        }
        call_of
            .arg(call)
            .arg("running 1 abcdefgh 0 0 worker 1")
            .arg(&output);
        answered += call_of.invoke_async::<usize>(&mut connection).await?;
    }
    Ok(answered)
}
