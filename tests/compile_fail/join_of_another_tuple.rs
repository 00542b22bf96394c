//! A join takes a tuple of what the branches bring, in their order.
use tenure::{task::TaskError, workflow::Workflow};

async fn mail(_order: u64) -> Result<String, TaskError> {
    Ok("sent".into())
}

async fn ship(order: u64) -> Result<u64, TaskError> {
    Ok(order)
}

async fn close((_parcel, _mail): (u64, String)) -> Result<(), TaskError> {
    Ok(())
}

fn main() {
    let fork = Workflow::builder("shop")
        .fork(|f| f.branch(|b| b.task("mail", mail)).branch(|b| b.task("ship", ship)));
    fork.join("close", close);
}
