//! The rights that a user needs.

use std::time::Duration;

use tenure::{RedisStore, TaskError, Worker, Workflow};

use crate::world::{Said, World, stop, until};

const PASSWORD: &str = "s3cret";

/// What the documentation asks for, without the commands that some installations forbid.
const RIGHTS: [&str; 13] = [
    "resetchannels",
    "~{tenure:*",
    "~{tenure}:*",
    "&{tenure:*",
    "+@all",
    "-@admin",
    "-@dangerous",
    "-info",
    "-config",
    "-client",
    "-keys",
    "-script",
    "-hello",
];

struct Restricted {
    world: World,
    url: String,
}

impl Restricted {
    fn new() -> Self {
        let world = World::new();
        let password = format!(">{PASSWORD}");
        let mut words = vec!["ACL", "SETUSER", "app", "reset", "on", &password];
        words.extend(RIGHTS);
        world.redis.run::<()>(&words);
        let url = world.redis.url_as("app", PASSWORD);
        Self { world, url }
    }

    fn run(&self, args: &[&str]) -> Said {
        let mut command = self.world.command(args);
        command.env("TENURE_REDIS_URL", &self.url);
        command.output().expect("the program").into()
    }

    fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        assert!(!said.err.contains("may not"), "{args:?}: {said:?}");
        said.out
    }
}

fn workflow() -> Workflow<String, String> {
    Workflow::builder("echo")
        .task("say", async |text: String| match text.as_str() {
            "no" => Err(TaskError::permanent("no is no text")),
            _ => Ok(text),
        })
        .build()
        .expect("a workflow")
}

// case 29
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_info_config_client_keys_and_script_flush_operates_all() {
    let here = Restricted::new();
    let store = RedisStore::connect(&here.url).await.expect("a store");
    let worker = Worker::builder(store)
        .workflow(workflow())
        .claim_ttl(Duration::from_secs(2))
        .build()
        .expect("a worker")
        .spawn();
    until("the worker says that it is there", async || {
        here.ok(&["workers"]).contains("echo:")
    })
    .await;
    let start = ["start", "echo", "--input"];
    here.ok(&[&start[..], &["\"x\"", "--id", "one", "--wait"]].concat());
    assert_eq!(here.ok(&["result", "one"]).trim(), "\"x\"");
    here.ok(&[&start[..], &["\"no\"", "--id", "bad"]].concat());
    until("it failed", async || {
        here.ok(&["list", "--status", "failed"]).contains("bad")
    })
    .await;
    stop(worker).await;
    let looked = here.run(&["doctor"]);
    assert_eq!(
        looked.code, 0,
        "only notes on what it may not see: {looked:?}"
    );
    here.ok(&[&start[..], &["\"x\"", "--id", "two"]].concat());
    for args in [
        &["definitions"][..],
        &["queues"],
        &["list", "--count"],
        &["show", "bad"],
        &["keys", "one"],
        &["reap"],
        &["dead"],
        &["top", "--once"],
        &["events", "--for", "10ms"],
        &["pause", "two"],
        &["resume", "two"],
        &["cancel", "two"],
        &["retry", "bad"],
        &["terminate", "bad"],
        &["delete", "bad"],
    ] {
        here.ok(args);
    }
    let refused = here.run(&["signal", "one", "nothing"]);
    assert_eq!(refused.code, 4, "it is over: {refused:?}");
    here.ok(&["demo", "--keep", "--instances", "20"]);
}
