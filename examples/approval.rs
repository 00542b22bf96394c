//! A loan that a person decides about: a workflow that waits for a signal, and goes on without when it does not come.
//!
//! Run it with `cargo run --example approval -- redis://127.0.0.1:6379`.

use std::time::Duration;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use tenure::{Approval, Client, RedisStore, Worker, Workflow};

#[derive(Debug, Serialize, Deserialize)]
struct Application {
    income: u64,
    amount: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Assessment {
    amount: u64,
    limit: u64,
}

async fn assess(application: Application) -> anyhow::Result<Assessment> {
    Ok(Assessment {
        amount: application.amount,
        limit: application.income * 3,
    })
}

async fn decide((assessment, approval): (Assessment, Option<Approval>)) -> anyhow::Result<String> {
    let Assessment { amount, limit } = assessment;
    Ok(match approval {
        Some(approval) if approval.is_approved() => {
            format!("{amount} granted by {}", approval.actor)
        }
        Some(approval) => format!(
            "refused by {}: {}",
            approval.actor,
            approval.reason.unwrap_or_default()
        ),
        None => format!("nobody decided in time; up to {limit} without asking"),
    })
}

fn loan(patience: Duration) -> Result<Workflow<Application, String>, tenure::BuildErrors> {
    Workflow::builder("loan")
        .task("assess", assess)
        // The assessment goes around the wait, in a branch without nodes.
        .fork(|f| {
            f.branch(|b| b).branch(|b| {
                b.await_signal::<Approval>("approval")
                    .or_none_after(patience)
            })
        })
        .join("decide", decide)
        .build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1);
    let store = RedisStore::connect(address.as_deref().unwrap_or("redis://127.0.0.1:6379")).await?;
    let client = Client::new(store.clone());
    let loan = loan(Duration::from_secs(2))?;
    let worker = Worker::builder(store).workflow(&loan).build()?.spawn();

    let application = |amount| Application {
        income: 1000,
        amount,
    };
    let granted = client.start(&loan, application(2500)).await?;
    let refused = client.start(&loan, application(9000)).await?;
    let forgotten = client.start(&loan, application(100)).await?;

    // Whether the workflow waits for it already or not: a signal is kept until it is taken. With an id that says where it
    // comes from it counts once, however often it is sent.
    for _ in 0..2 {
        let yes = Approval::approved("ada");
        granted.signal("approval", &yes).id("mail-4711").await?;
    }
    let no = Approval::rejected("bob").because("more than three incomes");
    refused.signal("approval", &no).await?;

    let results = [
        granted.result().await?,
        refused.result().await?,
        forgotten.result().await?,
    ];
    println!("{}", results.join("\n"));
    ensure!(results[0] == "2500 granted by ada");
    ensure!(results[1] == "refused by bob: more than three incomes");
    ensure!(results[2] == "nobody decided in time; up to 3000 without asking");

    worker.shutdown();
    worker.join().await?;
    Ok(())
}
