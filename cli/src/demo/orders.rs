//! The demo's workflow: an order is reserved, charged, then mailed and shipped side by side, and closed.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{BuildErrors, RetryPolicy, TaskContext, TaskError, Workflow};
use uuid::Uuid;

use super::ledger::{Ledger, Line, Phase};

/// The workflow's name.
pub(crate) const NAME: &str = "demo-orders";
/// One order in so many has a card that is declined twice before it is accepted.
pub(crate) const DECLINED: u32 = 10;
/// How long a handler pretends to work.
const WORK: Duration = Duration::from_millis(4);

/// What an instance starts with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: u32,
}

/// What every task returns: its token is new for each execution, so that a result which was committed twice is seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) number: u32,
    pub(crate) task: String,
    pub(crate) token: Uuid,
}

/// The workflow, with handlers that append to a ledger.
pub(crate) fn workflow(ledger: Option<Ledger>) -> Result<Workflow<Order, Done>, BuildErrors> {
    let step = Step { ledger };
    let (reserve, charge, mail, ship, close) =
        (step.clone(), step.clone(), step.clone(), step.clone(), step);
    Workflow::builder(NAME)
        .task("reserve", move |ctx: TaskContext, order: Order| {
            let step = reserve.clone();
            async move { step.work(&ctx, order.number, &[]).await }
        })
        .task("charge", move |ctx: TaskContext, reserved: Done| {
            let step = charge.clone();
            async move { step.charge(&ctx, &reserved).await }
        })
        .retry(RetryPolicy::exponential(Duration::from_millis(20)).max_attempts(5))
        .timeout(Duration::from_secs(10))
        .fork(|fork| {
            fork.branch(|branch| {
                branch.task("mail", move |ctx: TaskContext, charged: Done| {
                    let step = mail.clone();
                    async move { step.work(&ctx, charged.number, &[&charged]).await }
                })
            })
            .branch(|branch| {
                branch.delay("pack", Duration::from_millis(50)).task(
                    "ship",
                    move |ctx: TaskContext, charged: Done| {
                        let step = ship.clone();
                        async move { step.work(&ctx, charged.number, &[&charged]).await }
                    },
                )
            })
        })
        .join(
            "close",
            move |ctx: TaskContext, (mailed, shipped): (Done, Done)| {
                let step = close.clone();
                async move { step.work(&ctx, mailed.number, &[&mailed, &shipped]).await }
            },
        )
        .build()
}

/// What all handlers share.
#[derive(Debug, Clone)]
struct Step {
    ledger: Option<Ledger>,
}

impl Step {
    async fn charge(&self, ctx: &TaskContext, reserved: &Done) -> Result<Done, TaskError> {
        if reserved.number.is_multiple_of(DECLINED) && ctx.failures() < 2 {
            self.write(ctx, Phase::Begin, None, &[reserved])?;
            self.write(ctx, Phase::Fail, None, &[])?;
            return Err("the card was declined".into());
        }
        self.work(ctx, reserved.number, &[reserved]).await
    }

    async fn work(&self, ctx: &TaskContext, number: u32, saw: &[&Done]) -> Result<Done, TaskError> {
        self.write(ctx, Phase::Begin, None, saw)?;
        tokio::time::sleep(WORK).await;
        let done = Done {
            number,
            task: ctx.task().to_string(),
            token: Uuid::new_v4(),
        };
        self.write(ctx, Phase::End, Some(done.token), &[])?;
        Ok(done)
    }

    fn write(
        &self,
        ctx: &TaskContext,
        phase: Phase,
        gave: Option<Uuid>,
        saw: &[&Done],
    ) -> Result<(), TaskError> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let saw = saw
            .iter()
            .map(|done| (done.task.clone(), done.token))
            .collect();
        ledger.write(&Line {
            phase,
            instance: ctx.instance().to_string(),
            task: ctx.task().to_string(),
            attempt: ctx.attempt(),
            process: std::process::id(),
            at: super::ledger::now(),
            gave,
            saw,
        })?;
        Ok(())
    }
}
