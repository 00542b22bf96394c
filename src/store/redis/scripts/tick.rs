//! `tick.lua`

use crate::{
    error::StoreError,
    ids::InstanceId,
    store::{
        Clocks, KeeperRole, Recovered, Recovery, Status, TickReply, TickRequest,
        redis::{
            Inner,
            decode::Items,
            script::{Args, Named, script},
        },
    },
    time::{Timestamp, millis},
};

use super::delay;

pub(in crate::store::redis) static SCRIPT: Named =
    script!("tick", "tick_promote", "tick_expired", "tick_reap");

pub(in crate::store::redis) async fn call(
    inner: &Inner,
    request: &TickRequest,
) -> Result<TickReply, StoreError> {
    inner.bounds().tick(request)?;
    let keys = inner.keys_of(request.partition)?;
    let mut args = Args::default();
    args.key(keys.meta())
        .key(keys.woken())
        .key(keys.seq())
        .key(keys.running())
        .key(keys.delayed())
        .key(keys.keeper())
        .key(keys.aside());
    for status in Status::ALL.into_iter().filter(|s| s.is_terminal()) {
        args.key(keys.done(status.as_str()));
    }
    args.key(keys.lists())
        .key(keys.waiting())
        .key(keys.paused());
    args.arg(keys.prefix.to_owned())
        .arg(inner.publish_command())
        .arg(inner.guard());
    match &request.keeper {
        Some((worker, ttl)) => {
            args.arg(worker.to_string()).number(millis(*ttl));
        }
        None => {
            args.arg("").number(1);
        }
    }
    let retention = &request.retention;
    args.optional(request.expected.map(Timestamp::as_millis))
        .number(request.promote)
        .number(request.reap)
        .number(request.prune)
        .number(delay(request.crash_delay))
        .number(millis(request.ttl));
    for kept in [
        retention.completed,
        retention.failed,
        retention.cancelled,
        retention.cancelled,
    ] {
        args.number(delay(kept));
    }
    let mut items = Items::of(SCRIPT.name, inner.call(&SCRIPT, args).await?)?;
    let now = items.time()?;
    let role = match items.text()?.as_str() {
        "keeper" => KeeperRole::Keeper,
        "other" => KeeperRole::Other,
        other => return Err(items.unknown_tag(other)),
    };
    let clocks = items
        .optional()?
        .map_or(Clocks::Steady, |by| Clocks::Stepped { by });
    let (promoted, pruned) = (items.parse()?, items.parse()?);
    let again = match items.text()?.as_str() {
        "again" => true,
        "done" => false,
        other => return Err(items.unknown_tag(other)),
    };
    let next_due = items.optional::<f64>()?.map(whole);
    Ok(TickReply {
        now,
        role,
        clocks,
        promoted,
        recovered: recovered(items.items()?)?,
        pruned,
        again,
        next_due,
    })
}

/// A score as Redis writes it: whole milliseconds, but a number with a fraction to it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "scores are times, far below 2^53"
)]
fn whole(score: f64) -> Timestamp {
    Timestamp::from_millis(score as i64)
}

fn recovered(mut items: Items) -> Result<Vec<Recovered>, StoreError> {
    let mut recovered = Vec::with_capacity(items.len() / 5);
    while !items.is_empty() {
        let what = items.text()?;
        let id = InstanceId::stored(&items.text()?)?;
        let (task, worker) = (items.parse()?, items.parse()?);
        let crashes = items.parse()?;
        let recovery = match what.as_str() {
            "requeued" => Recovery::Requeued { crashes },
            "failed" => Recovery::Failed,
            "paused" => Recovery::Paused,
            "lost" => Recovery::Lost,
            "timed-out" => Recovery::TimedOut,
            other => return Err(items.unknown_tag(other)),
        };
        recovered.push(Recovered {
            id,
            task,
            worker,
            recovery,
        });
    }
    Ok(recovered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_keeps_its_milliseconds() {
        assert_eq!(whole(1_732_999_999_999.5).as_millis(), 1_732_999_999_999);
    }
}
