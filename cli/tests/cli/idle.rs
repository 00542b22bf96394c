//! `worker` when nothing happens for long.

use std::{
    fs::{self, File},
    process::Child,
    time::Duration,
};

use chrono::DateTime;
use serde_json::Value;

use crate::world::{World, until};

/// What a worker may complain of, on its standard error.
const LOG: (&str, &str) = ("TENURE_LOG", "warn");
const STARTS: usize = 20;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn moment(instance: &Value, field: &str) -> i64 {
    let text = instance[field].as_str().expect("a moment");
    let moment = DateTime::parse_from_rfc3339(text).expect("a moment");
    moment.timestamp_millis()
}

// case 18
#[tokio::test]
async fn after_a_minute_of_nothing_a_start_is_picked_up_at_once() {
    let world = World::new();
    let log = world.redis.dir().join("worker.log");
    let mut command = world.command(&["worker", "--demo"]);
    command
        .env(LOG.0, LOG.1)
        .stderr(File::create(&log).expect("a file"));
    let _worker = Running(command.spawn().expect("a worker"));
    let known = async || world.ok(&["workers"]).contains("demo-orders");
    until("the worker is there", known).await;
    let said = || fs::read_to_string(&log).expect("its log");
    // That this Redis keeps nothing on a disk.
    let before = said();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(said(), before, "nothing went wrong meanwhile");
    let mut waited: Vec<i64> = (0..STARTS)
        .map(|number| {
            let (id, input) = (
                format!("order-{number}"),
                format!("{{\"number\": {number}}}"),
            );
            world.ok(&[
                "start",
                "demo-orders",
                "--id",
                &id,
                "--input",
                &input,
                "--wait",
            ]);
            // Both by the clock of Redis.
            let shown = world.ok_json(&["show", &id]);
            moment(&shown, "started_at") - moment(&shown, "created_at")
        })
        .collect();
    waited.sort_unstable();
    // A poll comes in up to 5 s. One start may meet a moment in which this machine does something else.
    assert!(waited[STARTS - 2] <= 50, "{waited:?} ms");
}
