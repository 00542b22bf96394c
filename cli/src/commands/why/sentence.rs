//! The sentence of each reason.

use tenure::{ids::WorkerId, time::Timestamp};

use super::reason::Reason;
use crate::{
    moment::{at, span},
    text::{count, cut},
};

/// `in 5m` or `5m ago`.
pub(super) fn from_now(time: Timestamp, now: Option<Timestamp>) -> String {
    match now {
        Some(now) if time > now => format!("in {}", span(time.since(now))),
        Some(now) => format!("{} ago", span(now.since(time))),
        None => format!("at {}", at(time)),
    }
}

fn by(who: Option<&String>) -> String {
    who.map_or_else(|| "somebody".to_owned(), Clone::clone)
}

fn because(reason: Option<&String>) -> String {
    reason.map_or_else(String::new, |reason| format!(": {}", cut(reason, 200)))
}

fn worker(worker: Option<&WorkerId>) -> String {
    worker.map_or_else(
        || "an unknown worker".to_owned(),
        |id| format!("worker {id}"),
    )
}

fn ahead(ahead: Option<usize>) -> String {
    match ahead {
        Some(0) => "it is next".to_owned(),
        Some(1) => "1 task is ahead of it".to_owned(),
        Some(n) => format!("{n} tasks are ahead of it"),
        None => "more than 10000 tasks are ahead of it".to_owned(),
    }
}

pub(super) fn workers(number: usize) -> String {
    count(number, "worker", "workers")
}

/// One sentence about `who`.
pub(super) fn sentence(who: &str, reason: &Reason, now: Option<Timestamp>) -> String {
    use Reason as R;
    match reason {
        R::Damaged { what } => format!("{who} is damaged: {what}."),
        R::Lost { task, place } => format!(
            "{who} has lost its place: task `{task}` is open, and nothing stands for it in {place}, so no worker will find it."
        ),
        R::Completed { at } => match at {
            Some(at) => format!("{who} completed {}.", from_now(*at, now)),
            None => format!("{who} has completed."),
        },
        R::Dead { error: Some(e) } => format!(
            "{who} is dead: task `{}` failed for good {}, in attempt {}: {}",
            e.task,
            from_now(e.time(), now),
            e.attempt,
            cut(&e.message, 300)
        ),
        R::Dead { error: None } => format!("{who} is dead; no error is stored."),
        R::Ended {
            status,
            by: who_did,
            reason,
        } => {
            let did = by(who_did.as_ref());
            format!("{who} was {status} by {did}{}.", because(reason.as_ref()))
        }
        R::Paused {
            by: who_did,
            reason,
            ..
        } => format!(
            "{who} is paused by {}{}; nothing of it is claimed until somebody resumes it.",
            by(who_did.as_ref()),
            because(reason.as_ref())
        ),
        R::Retry {
            task,
            due,
            failures,
            of,
            error,
        } => retry(
            who,
            task.as_str(),
            (*due, now),
            (*failures, *of),
            error.as_ref().map(|e| e.message.as_str()),
        ),
        R::Timer { task, due } => {
            format!(
                "{who} waits for a timer: `{task}` is due {}.",
                from_now(*due, now)
            )
        }
        R::Overdue {
            task,
            due,
            workers: n,
        } => format!(
            "{who} has a timer that should have fired: `{task}` was due {}, and {}.",
            from_now(*due, now),
            if *n == 0 {
                "no worker is there that keeps timers".to_owned()
            } else {
                format!("{} should keep timers", workers(*n))
            }
        ),
        R::Delayed { task } => format!(
            "{who} waits for a timer or a retry of `{task}`, behind more than 1000 others that are due before it."
        ),
        R::Signal {
            task,
            signal,
            timeout,
            ..
        } => {
            let until = timeout.map_or_else(
                || ", without a time limit".to_owned(),
                |due| format!("; its patience ends {}", from_now(due, now)),
            );
            format!("{who} waits for signal `{signal}` at `{task}`{until}.")
        }
        _ => about_workers(who, reason, now),
    }
}

fn retry(
    who: &str,
    task: &str,
    (due, now): (Timestamp, Option<Timestamp>),
    (failures, of): (u32, Option<u32>),
    error: Option<&str>,
) -> String {
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let error = error.map_or_else(String::new, |e| format!(": {}", cut(e, 200)));
    let due = from_now(due, now);
    format!("{who} waits for a retry of `{task}` {due}; attempt {failures}{of} failed{error}")
}

/// Those reasons that are about who runs a task.
fn about_workers(who: &str, reason: &Reason, now: Option<Timestamp>) -> String {
    use Reason as R;
    match reason {
        R::NoWorker {
            task,
            workflow,
            definition,
            workers: n,
            others,
        } => {
            let who_is = match (n, others.len()) {
                (0, _) => "no worker is there at all".to_owned(),
                (n, 0) => format!("none of the {} has workflow `{workflow}`", workers(*n)),
                _ => {
                    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
                    let others = others.join(", ");
                    format!("the workers have another version of it, {others}")
                }
            };
            format!(
                "{who} waits for a worker that has `{workflow}` in version {definition}: task `{task}` is ready, and {who_is}."
            )
        }
        R::NoQueue {
            task,
            queue,
            workers: n,
        } => format!(
            "{who} waits for a worker of queue `{queue}`: task `{task}` is ready, and the {} that could run it serve other queues.",
            workers(*n)
        ),
        R::Draining { task, workers: n } => format!(
            "{who} waits for a worker: task `{task}` is ready, and the {} that could run it only finish what they have.",
            workers(*n)
        ),
        R::Busy {
            task,
            ahead: before,
            slots,
            workers: n,
        } => format!(
            "{who} waits for a free slot: task `{task}` is ready, all {slots} slots of {} are busy, and {}.",
            workers(*n),
            ahead(*before)
        ),
        R::Ready {
            task,
            ahead: before,
            free,
        } => format!(
            "{who} is about to go on: task `{task}` is ready, {}, and {} free.",
            ahead(*before),
            count(*free, "slot is", "slots are")
        ),
        R::Running {
            task,
            worker: w,
            until,
            attempt,
            ..
        } => format!(
            "{who} is running: {} has task `{task}` (attempt {attempt}) and sends heartbeats; its claim holds for {} without another.",
            worker(w.as_ref()),
            now.map_or_else(|| at(*until), |now| span(until.since(now)))
        ),
        R::Silent {
            task,
            worker: w,
            heard,
            until,
        } => format!(
            "{who} waits for its claim to expire: {} has task `{task}`, and {}; another worker takes over {}.",
            worker(w.as_ref()),
            heard.map_or_else(
                || "is not heard of any more".to_owned(),
                |heard| format!("was last heard of {} ago", span(heard))
            ),
            from_now(*until, now)
        ),
        R::Expired {
            task,
            worker: w,
            workers: n,
        } => format!(
            "{who} waits to be taken over: the claim of {} on task `{task}` has expired, and {}.",
            worker(w.as_ref()),
            if *n == 0 {
                "no worker is there that would take over".to_owned()
            } else {
                "a keeper makes it ready again within seconds".to_owned()
            }
        ),
        _ => who.to_owned(),
    }
}
