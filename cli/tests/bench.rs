//! `tenure bench` as a process: each kind of load runs, its counts are right, and it says so. What it measures is looked
//! at nowhere: a test machine is busy, and this is a debug build.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tenure_test_support::RedisServer;

/// Everything small enough for a debug build on a busy machine.
const COUNT: u64 = 60;

fn bench(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command
        .args(["bench", "--json", "--count", &COUNT.to_string()])
        .args(["--seconds", "1", "--rate", "50"])
        .args(arguments)
        .env_remove("TENURE_REDIS_URL");
    command
}

/// The rows of a benchmark that must succeed, without those of the reference.
fn rows(output: &Output) -> Vec<Value> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
    assert_eq!(report["failures"], Value::Array(Vec::new()));
    let rows = report["rows"].as_array().expect("rows").clone();
    rows.into_iter()
        .filter(|row| row["load"] != "raw reference")
        .collect()
}

/// Runs one load and compares its rows: name, how many of what.
fn load_has(load: &str, expected: &[(&str, &str, u64)]) {
    let rows = rows(&bench(&["--only", load]));
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().expect("a text");
            (
                text("load"),
                text("unit"),
                row["count"].as_u64().expect("a count"),
            )
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn single_tasks_are_started_in_bulk_drained_and_sent_at_a_steady_rate() {
    load_has(
        "single",
        &[
            ("single: bulk start", "starts", COUNT),
            ("single: drain", "tasks", COUNT),
            ("single: 50 starts/s", "tasks", 50),
        ],
    );
}

#[test]
fn chains_run_all_their_tasks() {
    load_has(
        "chain",
        &[
            ("chain of 3: bulk start", "starts", 20),
            ("chain of 3: drain", "tasks", 60),
            ("chain of 9: drain", "tasks", 54),
            ("chain of 40: drain", "tasks", 40),
        ],
    );
}

#[test]
fn forks_run_all_their_branches_and_their_join() {
    load_has(
        "fan",
        &[
            ("fan of 10 and join: bulk start", "starts", 5),
            ("fan of 10 and join: drain", "tasks", 60),
            ("fan of 100 and join: drain", "tasks", 102),
        ],
    );
}

#[test]
fn an_idle_worker_is_asked_in_every_way() {
    load_has(
        "idle",
        &[
            ("idle: start to handler", "starts", COUNT),
            ("idle: start to result", "starts", COUNT),
            ("idle: signal to handler", "signals", COUNT / 5),
            ("idle: cancel to token", "cancellations", COUNT / 5),
            ("idle: nothing to do", "seconds", 1),
        ],
    );
}

#[test]
fn timers_fire_while_others_wait() {
    load_has("timers", &[("timers", "timers", COUNT)]);
}

#[test]
fn a_queue_is_drained_down_to_its_depth_and_the_rest_stays() {
    let rows = rows(&bench(&["--only", "depth"]));
    assert_eq!(rows.len(), 1, "both depths are bounded by the count");
    assert_eq!(rows[0]["load"], format!("depth {COUNT}"));
    assert!(rows[0]["count"].as_u64().expect("a count") >= COUNT);
}

#[test]
fn memory_is_measured_in_every_state_with_both_settings() {
    let rows = rows(&bench(&["--only", "memory"]));
    assert_eq!(rows.len(), 2);
    for row in rows {
        let names: Vec<_> = row["figures"]
            .as_array()
            .expect("figures")
            .iter()
            .map(|figure| figure["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(names, ["queued", "running", "completed"]);
    }
}

#[test]
fn heartbeats_keep_every_claim() {
    load_has("heartbeats", &[("heartbeats", "extensions", COUNT)]);
}

#[test]
fn what_a_killed_worker_held_runs_again() {
    load_has("recovery", &[("kill -9 of a worker", "claims", COUNT)]);
}

#[test]
fn worker_processes_share_a_queue() {
    load_has(
        "processes",
        &[
            ("worker processes: 1", "tasks", COUNT),
            ("worker processes: 2", "tasks", COUNT),
            ("worker processes: 4", "tasks", COUNT),
        ],
    );
}

#[test]
fn every_kind_of_persistence_is_measured() {
    load_has(
        "aof",
        &[
            ("AOF: no AOF", "tasks", COUNT),
            ("AOF: everysec", "tasks", COUNT),
            ("AOF: always", "tasks", COUNT),
        ],
    );
}

#[test]
fn one_node_and_a_cluster_of_three_are_measured() {
    load_has(
        "nodes",
        &[
            ("Redis nodes: 1", "tasks", COUNT),
            ("Redis nodes: 3", "tasks", COUNT),
        ],
    );
}

#[test]
fn a_redis_that_was_given_is_left_as_it_was() {
    let server = RedisServer::start();
    let output = bench(&[
        "--redis",
        &server.url(),
        "--only",
        "single,memory,timers,aof",
    ]);
    let rows = rows(&output);
    assert_eq!(rows.len(), 5, "all but the load that needs its own server");
    assert_eq!(server.run::<u64>(&["DBSIZE"]), 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("aof is left out"), "{said}");
}

#[test]
fn a_missing_redis_server_is_named_with_what_to_do() {
    let output = command(&["--only", "single"])
        .env("PATH", "")
        .output()
        .expect("the program");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("apt-get install redis-server"), "{said}");
    assert!(said.contains("--redis"), "{said}");
}

#[test]
fn a_load_whose_counts_are_wrong_fails() {
    let server = RedisServer::start();
    let child = command(&["--redis", &server.url(), "--only", "idle"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // Each part of a load has a namespace of its own; that of the last one is looked at after seconds.
    let key = format!("{{tenure-bench-{}-4:0}}:claim:order-1:task", child.id());
    server.run::<()>(&["SET", &key, "nobody"]);
    let output = child.wait_with_output().expect("its end");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("a claim is left: {key}")), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON on standard output");
    assert_eq!(report["failures"].as_array().map(Vec::len), Some(1));
}
