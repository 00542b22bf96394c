//! A timeout belongs to a task.
use std::time::Duration;

use tenure::workflow::Workflow;

fn main() {
    let chain = Workflow::builder::<u64>("shop");
    chain.timeout(Duration::from_secs(1));
}
