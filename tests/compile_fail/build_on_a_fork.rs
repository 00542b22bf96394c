//! A workflow does not end in a fork.
use tenure::{task::TaskError, workflow::Workflow};

async fn mail(_order: u64) -> Result<(), TaskError> {
    Ok(())
}

fn main() {
    let fork = Workflow::builder("shop").fork(|f| f.branch(|b| b.task("mail", mail)));
    let _workflow = fork.build();
}
