use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{Args, Ledger, Peer, Result};

/// No load takes longer than this.
const LIMIT: Duration = Duration::from_secs(600);
/// Between two looks at what is stored.
const LOOK: Duration = Duration::from_millis(2);
/// Tasks that a worker does before its rate at a depth is measured.
const WARM_UP: usize = 1_000;
/// Tasks over which the rate at a depth is measured.
const MEASURED: usize = 8_000;

/// Runs the load that the command line asks for, and prints its line.
///
/// # Errors
/// Whatever went wrong, and a count that is not what it must be.
pub async fn load<P: Peer>(args: Args) -> Result<()> {
    let ledger = Arc::new(Ledger::new(&args));
    let mut peer = P::connect(&args, Arc::clone(&ledger)).await?;
    let line = match args.load.as_str() {
        "throughput" => throughput(&mut peer, &args, &ledger).await?,
        "idle" => idle(&mut peer, &args, &ledger).await?,
        "depth" => depth(&mut peer, &args, &ledger).await?,
        "enqueue" => {
            peer.enqueue(0, args.count).await?;
            json!({ "enqueued": args.count })
        }
        "worker" => {
            peer.work().await?;
            println!("ready");
            tokio::time::sleep(LIMIT).await;
            return Err("nobody ended this worker".into());
        }
        other => return Err(format!("unknown load {other}").into()),
    };
    println!("{line}");
    Ok(())
}

/// Everything in, then everything out.
async fn throughput<P: Peer>(peer: &mut P, args: &Args, ledger: &Ledger) -> Result<Value> {
    let tasks = args.count * args.shape.tasks();
    let empty = peer.bytes().await?;
    let begun = Instant::now();
    peer.enqueue(0, args.count).await?;
    let enqueued = begun.elapsed();
    let full = peer.bytes().await?;

    let begun = Instant::now();
    peer.work().await?;
    ledger.reached(tasks, LIMIT).await?;
    committed(peer, args).await?;
    let drained = begun.elapsed();
    Ok(json!({
        "enqueue": per_second(args.count, enqueued),
        "drain": per_second(tasks, drained),
        "bytes": full.saturating_sub(empty) as f64 / args.count as f64,
        "jobs": args.count,
        "tasks": tasks,
        "repeated": ledger.repeated()?,
    }))
}

/// Waits until all that ran is stored, and no more than that.
async fn committed<P: Peer>(peer: &mut P, args: &Args) -> Result<()> {
    let wanted = args.count * peer.commits_per_job();
    let deadline = Instant::now() + LIMIT;
    loop {
        let stored = peer.completed().await?;
        if stored == wanted {
            return Ok(());
        }
        if stored > wanted || Instant::now() > deadline {
            return Err(format!("{stored} completed, not {wanted}").into());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// One job at a time for a worker that has nothing else to do.
async fn idle<P: Peer>(peer: &mut P, args: &Args, ledger: &Ledger) -> Result<Value> {
    peer.work().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (mut handler, mut result) = (Vec::new(), Vec::new());
    for job in 0..args.count {
        // Not in step with anybody's clock.
        tokio::time::sleep(Duration::from_micros(10_000 + (job as u64 * 7919) % 5_000)).await;
        let begun = Instant::now();
        if tokio::time::timeout(P::PATIENCE, peer.round_trip(job)).await?? {
            result.push(begun.elapsed());
        }
        ledger.reached(job + 1, P::PATIENCE).await?;
        handler.push(ledger.began(job).duration_since(begun));
    }
    committed(peer, args).await?;
    Ok(json!({
        "handler_p50": percentile(&mut handler, 0.50),
        "handler_p99": percentile(&mut handler, 0.99),
        "result_p50": percentile(&mut result, 0.50),
        "result_p99": percentile(&mut result, 0.99),
        "repeated": ledger.repeated()?,
    }))
}

/// How fast a worker is while very much is queued. It leaves the rest where it is.
async fn depth<P: Peer>(peer: &mut P, args: &Args, ledger: &Ledger) -> Result<Value> {
    peer.enqueue(0, args.count).await?;
    peer.work().await?;
    ledger.reached(WARM_UP, LIMIT).await?;
    let (from, begun) = (ledger.total(), Instant::now());
    ledger.reached(from + MEASURED, LIMIT).await?;
    let done = ledger.total() - from;
    Ok(json!({ "depth": args.count, "drain": per_second(done, begun.elapsed()) }))
}

fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// In milliseconds; nothing of nothing.
fn percentile(times: &mut [Duration], share: f64) -> Option<f64> {
    times.sort_unstable();
    let last = times.len().checked_sub(1)?;
    let index = (last as f64 * share).round() as usize;
    Some(times[index].as_secs_f64() * 1000.0)
}
