//! A delay does not fail, so there is nothing to retry.
use std::time::Duration;

use tenure::workflow::{RetryPolicy, Workflow};

fn main() {
    let chain = Workflow::builder::<u64>("shop").delay("night", Duration::from_secs(3600));
    chain.retry(RetryPolicy::none());
}
