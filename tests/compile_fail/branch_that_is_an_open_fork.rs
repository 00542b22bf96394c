//! A branch that forks joins again before it ends.
use tenure::{task::TaskError, workflow::Workflow};

async fn mail(_order: u64) -> Result<(), TaskError> {
    Ok(())
}

async fn end(_: ((),)) -> Result<(), TaskError> {
    Ok(())
}

fn main() {
    Workflow::builder("shop")
        .task("mail", mail)
        .fork(|f| f.branch(|b| b.fork(|f| f.branch(|b| b))))
        .join("end", end);
}
