//! A queue belongs to a task or to the whole workflow.
use std::time::Duration;

use tenure::workflow::Workflow;

fn main() {
    let chain = Workflow::builder::<u64>("shop").delay("night", Duration::from_secs(3600));
    chain.queue("slow");
}
