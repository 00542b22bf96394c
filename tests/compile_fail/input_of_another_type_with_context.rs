//! As for plain handlers.
use tenure::{
    task::{TaskContext, TaskError},
    workflow::Workflow,
};

async fn price(order: u64) -> Result<f64, TaskError> {
    Ok(order as f64)
}

async fn mail(_ctx: TaskContext, text: String) -> Result<(), TaskError> {
    drop(text);
    Ok(())
}

fn main() {
    let chain = Workflow::builder("shop").task("price", price);
    chain.task("mail", mail);
}
