//! A handler returns a `Result`.
use tenure::workflow::Workflow;

async fn mail(_order: u64) -> String {
    "sent".into()
}

fn main() {
    Workflow::builder::<u64>("shop").task("mail", mail);
}
