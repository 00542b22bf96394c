use std::{
    process::{Command, Output},
    time::Duration,
};

use serde_json::Value;
use tenure::{RedisStore, Worker, WorkerHandle, Workflow, store::Store};
use tenure_test_support::RedisServer;

/// A Redis of its own, and the program pointed at it.
pub(crate) struct World {
    pub(crate) redis: RedisServer,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code().expect("an exit code"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            redis: RedisServer::start(),
        }
    }

    /// The program with these arguments, to be run. Its environment names this Redis and nothing else.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let ours = std::env::vars().filter(|(name, _)| name.starts_with("TENURE_"));
        for (name, _) in ours {
            command.env_remove(name);
        }
        command
            .args(args)
            .env("TENURE_REDIS_URL", self.redis.url())
            .env("HOME", self.redis.dir())
            .env_remove("XDG_CONFIG_HOME");
        command
    }

    /// Runs the program to its end, whatever that is.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        self.command(args).output().expect("the program").into()
    }

    /// Runs the program, which must succeed; answers with its standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said.out
    }

    /// As [`World::ok`], with `--json`.
    pub(crate) fn ok_json(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let said = self.run(&args);
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
        said.json()
    }

    pub(crate) async fn store(&self) -> RedisStore {
        RedisStore::connect(&self.redis.url())
            .await
            .expect("a connection")
    }

    /// A worker of a workflow, in this process. Shut it down at the end of the test.
    pub(crate) async fn worker<I, O>(&self, workflow: &Workflow<I, O>) -> WorkerHandle {
        Worker::builder(self.store().await)
            .workflow(workflow)
            .claim_ttl(Duration::from_secs(2))
            .build()
            .expect("a worker")
            .spawn()
    }
}

/// Makes a workflow known, without anybody who runs it.
pub(crate) async fn publish<I, O>(world: &World, workflow: &Workflow<I, O>) {
    let graph = workflow.graph();
    let bytes = graph.to_bytes().expect("a definition");
    let store = world.store().await;
    let published = store.publish(graph.name(), graph.hash(), bytes).await;
    published.expect("published");
}

/// Lets a worker end.
pub(crate) async fn stop(worker: WorkerHandle) {
    worker.shutdown();
    worker.join().await.expect("its end");
}

/// Waits for a condition, at most 20 s.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("{what}: not within 20 s"));
}
