//! How a user tests a workflow that takes a month: in milliseconds, with the worker that production has.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tenure::{Approval, RetryPolicy, TaskError, Workflow, store::Status, testing::TestEnv};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// A subscription: charged (a week later once more if the bank refuses), asked after 30 days whether it goes on.
fn subscription(bank_refuses: u32) -> Workflow<String, String> {
    let refusals = Arc::new(AtomicU32::new(bank_refuses));
    Workflow::builder("subscription")
        .task("charge", move |name: String| {
            let refuse = refusals
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                })
                .is_ok();
            async move {
                if refuse {
                    return Err(TaskError::new("the bank refuses"));
                }
                Ok(name)
            }
        })
        .retry(RetryPolicy::fixed(WEEK).jitter(0.0).max_attempts(3))
        .delay("month", 30 * DAY)
        .task("ask", async |name: String| anyhow::Ok(name))
        .fork(|f| {
            f.branch(|b| b)
                .branch(|b| b.await_signal::<Approval>("answer").or_none_after(3 * DAY))
        })
        .join("end", async |(name, answer): (String, Option<Approval>)| {
            anyhow::Ok(match answer {
                Some(answer) if answer.is_approved() => format!("{name} stays"),
                Some(_) => format!("{name} goes"),
                None => format!("{name} is silent"),
            })
        })
        .build()
        .expect("a valid workflow")
}

#[tokio::test(start_paused = true)]
async fn a_workflow_of_a_month_is_tested_in_milliseconds() {
    let flow = subscription(1);
    let env = TestEnv::new(&flow).unwrap();
    let begin = env.now();
    let handle = env.start(&flow, "Ada".to_owned()).await.unwrap();
    assert_eq!(env.attempts("charge"), 1, "the bank refuses");

    env.advance(WEEK - HOUR).await.unwrap();
    assert_eq!(
        env.attempts("charge"),
        1,
        "it is not tried again before a week has passed"
    );
    env.advance(2 * HOUR).await.unwrap();
    assert_eq!(env.attempts("charge"), 2);
    assert_eq!(env.order(), ["charge", "charge"]);

    env.advance(30 * DAY).await.unwrap();
    assert_eq!(env.order(), ["charge", "charge", "ask"]);
    assert_eq!(handle.status().await.unwrap(), Status::Running);
    let history = env.history();
    let asked_after = history[2].at.since(history[1].at);
    assert!(
        (30 * DAY..30 * DAY + HOUR).contains(&asked_after),
        "{asked_after:?}"
    );

    let answer = Approval::approved("ada");
    env.signal(&handle, "answer", &answer).await.unwrap();
    assert_eq!(env.order().last().unwrap(), "end");
    assert_eq!(handle.result().await.unwrap(), "Ada stays");
    assert!(env.now().since(begin) > 37 * DAY);
}

#[tokio::test(start_paused = true)]
async fn time_goes_from_timer_to_timer_in_their_order() {
    let flow = subscription(0);
    let env = TestEnv::new(&flow).unwrap();
    let first = env.start(&flow, "Ada".to_owned()).await.unwrap();
    env.advance(DAY).await.unwrap();
    let second = env.start(&flow, "Bob".to_owned()).await.unwrap();
    // Over all that is left of both: their months and their silences.
    env.advance(60 * DAY).await.unwrap();
    assert_eq!(first.result().await.unwrap(), "Ada is silent");
    assert_eq!(second.result().await.unwrap(), "Bob is silent");
    let history = env.history();
    let steps: Vec<_> = history
        .iter()
        .map(|a| (a.task.as_str(), a.id == *first.id()))
        .collect();
    assert_eq!(
        steps,
        [
            ("charge", true),
            ("charge", false),
            ("ask", true),
            ("ask", false),
            ("end", true),
            ("end", false),
        ]
    );
    assert!(history.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let silent = history[4].at.since(history[2].at);
    assert!((3 * DAY..3 * DAY + HOUR).contains(&silent), "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn out_of_attempts_the_instance_fails_after_its_weeks() {
    let flow = subscription(9);
    let env = TestEnv::new(&flow).unwrap();
    let handle = env.start(&flow, "Ada".to_owned()).await.unwrap();
    env.advance(4 * WEEK).await.unwrap();
    assert_eq!(env.attempts("charge"), 3);
    assert_eq!(env.attempts("ask"), 0);
    let error = handle.result().await.unwrap_err();
    assert!(error.to_string().contains("the bank refuses"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_sleeps_keeps_its_claim_and_its_timeout() {
    let slow = |sleeps: Duration| {
        Workflow::builder("slow")
            .task("sleep", move |(): ()| async move {
                tokio::time::sleep(sleeps).await;
                anyhow::Ok(())
            })
            .retry(RetryPolicy::none())
            .timeout(50 * MINUTE)
            .build()
            .unwrap()
    };
    for (sleeps, completes) in [(40 * MINUTE, true), (60 * MINUTE, false)] {
        let flow = slow(sleeps);
        let env = TestEnv::new(&flow).unwrap();
        let handle = env.start(&flow, ()).await.unwrap();
        env.advance(30 * MINUTE).await.unwrap();
        assert_eq!(handle.status().await.unwrap(), Status::Running);
        env.advance(40 * MINUTE).await.unwrap();
        let status = handle.status().await.unwrap();
        assert_eq!(status == Status::Completed, completes, "{status}");
        assert_eq!(env.attempts("sleep"), 1);
    }
}
