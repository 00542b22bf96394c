//! The branches of a fork meet in a join before anything else follows.
use tenure::{task::TaskError, workflow::Workflow};

async fn mail(_order: u64) -> Result<(), TaskError> {
    Ok(())
}

fn main() {
    let fork = Workflow::builder("shop").fork(|f| f.branch(|b| b.task("mail", mail)));
    fork.task("again", mail);
}
