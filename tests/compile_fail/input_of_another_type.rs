//! A task takes what the task before it returns.
use tenure::{task::TaskError, workflow::Workflow};

async fn price(order: u64) -> Result<f64, TaskError> {
    Ok(order as f64)
}

async fn mail(text: String) -> Result<(), TaskError> {
    drop(text);
    Ok(())
}

fn main() {
    let chain = Workflow::builder("shop").task("price", price);
    chain.task("mail", mail);
}
