//! A handler is an `async fn`.
use tenure::{task::TaskError, workflow::Workflow};

fn mail(_order: u64) -> Result<String, TaskError> {
    Ok("sent".into())
}

fn main() {
    Workflow::builder::<u64>("shop").task("mail", mail);
}
