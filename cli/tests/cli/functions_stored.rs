//! What functions store is what a client stores, field by field, entry by entry, byte by byte.

use std::{collections::BTreeMap, time::Duration};

use tenure::{Client, RedisStore, Status, Workflow, store::Store};

use crate::{
    functions::{NS, approval, echo, fcall, graph, installed, publish},
    world::World,
};

/// The fields of a snapshot without what differs between any two: runs, times, nonces, mailboxes.
fn stored(world: &World, id: &str) -> BTreeMap<String, Vec<u8>> {
    let key = format!("{{{NS}:0}}:instance:{id}");
    let mut fields: BTreeMap<String, Vec<u8>> = world.redis.run(&["HGETALL", &key]);
    for name in ["run", "finished_at", "controlled"] {
        if let Some(value) = fields.get_mut(name) {
            value.clear();
        }
    }
    fields.remove("waiter");
    let about = fields.get_mut("about").expect("about");
    let end = about
        .iter()
        .rposition(|byte| *byte == b' ')
        .expect("five words");
    about.truncate(end);
    fields
}

/// What stands in a place, without the runs.
fn place(world: &World, command: &[&str], id: &str) -> Vec<String> {
    let entries: Vec<String> = world.redis.run(command);
    let own = entries
        .iter()
        .filter(|entry| entry.contains(&format!("{id}\0")));
    own.map(|entry| {
        let parts: Vec<&str> = entry.split('\0').collect();
        let last = parts.last().map_or("", |last| &last[12..]);
        let rest: Vec<&str> = parts[..parts.len() - 1]
            .iter()
            .copied()
            .filter(|part| *part != id)
            .collect();
        format!("{} {last}", rest.join(" "))
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_by_function_stores_what_a_client_stores() {
    let world = installed();
    let store = world.store().await;
    let client = Client::new(store.clone());
    let late = Workflow::builder::<String>("late")
        .delay("sleep", Duration::from_millis(3_600_500))
        .task("say", async |text: String| anyhow::Ok(text))
        .queue("slow")
        .build()
        .expect("a workflow");
    let side = Workflow::builder::<String>("side")
        .on_exhausted(tenure::OnExhausted::Pause)
        .fork(|fork| {
            fork.branch(|branch| branch.task("a", async |text: String| anyhow::Ok(text)))
                .branch(|branch| {
                    branch
                        .task("b", async |text: String| anyhow::Ok(text))
                        .queue("slow")
                })
        })
        .join("both", async |(a, b): (String, String)| anyhow::Ok(a + &b))
        .build()
        .expect("a workflow");
    for workflow in [&echo("echo"), &late, &approval(), &side] {
        publish(&store, workflow).await;
        let name = graph(workflow).name().as_str();
        let (mine, theirs) = (format!("{name}-client"), format!("{name}-fcall"));
        client
            .start(workflow, "hé".to_owned())
            .id(&mine)
            .await
            .expect("a start");
        assert_eq!(
            fcall(&world, "tenure_start", &[name, &theirs, "\"hé\""]),
            Ok(theirs.clone())
        );
        assert_eq!(stored(&world, &mine), stored(&world, &theirs), "{name}");
        for list in graph(workflow).lists() {
            let key = format!("{{{NS}:0}}:ready:{list}");
            let ready = |id: &str| place(&world, &["LRANGE", &key, "0", "-1"], id);
            assert_eq!(ready(&mine), ready(&theirs), "{name}");
        }
        let delayed = format!("{{{NS}:0}}:delayed");
        let timers = |id: &str| place(&world, &["ZRANGE", &delayed, "0", "-1"], id);
        assert_eq!(timers(&theirs).len(), usize::from(name == "late"), "{name}");
        assert_eq!(timers(&mine), timers(&theirs), "{name}");
        let snapshot = client
            .handle(&theirs)
            .await
            .expect("a handle")
            .snapshot()
            .await;
        assert_eq!(snapshot.expect("a snapshot").header.status, Status::Running);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steering_by_function_stores_what_a_client_stores() {
    let world = installed();
    let store = world.store().await;
    let client = Client::new(store.clone());
    let approval = approval();
    publish(&store, &approval).await;
    for (reason, actor) in [("wrong address", "ada"), ("", ""), ("ünüblich", "")] {
        for action in ["pause", "resume", "cancel", "terminate"] {
            let ids = [format!("{action}-client"), format!("{action}-fcall")];
            let mut handles = Vec::new();
            for id in &ids {
                let start = client.start(&approval, "x".to_owned()).id(id);
                handles.push(
                    start
                        .if_exists(tenure::IdPolicy::TerminateAndReplace)
                        .await
                        .expect("a start"),
                );
            }
            let mine = &handles[0];
            if action == "resume" {
                for handle in &handles {
                    handle.pause("", "").await.expect("a pause");
                }
            }
            match action {
                "pause" => mine.pause(reason, actor).await,
                "resume" => mine.resume(reason, actor).await,
                "cancel" => mine.cancel(reason, actor).await,
                _ => mine.terminate(reason, actor).await,
            }
            .expect("a control");
            let function = format!("tenure_{action}");
            assert_eq!(
                fcall(&world, &function, &[&ids[1], reason, actor]),
                Ok("OK".to_owned())
            );
            let (mut one, mut other) = (stored(&world, &ids[0]), stored(&world, &ids[1]));
            one.remove("replaced");
            other.remove("replaced");
            assert_eq!(one, other, "{action}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_are_what_a_client_writes_and_ids_find_their_partition() {
    let world = World::new();
    let store = RedisStore::builder(world.redis.url())
        .partitions(7)
        .connect()
        .await
        .expect("a store");
    world.ok(&["functions", "install"]);
    publish(&store, &echo("echo")).await;
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let long = format!("[{}0]", "{\"k\":[]},".repeat(70_000));
    let texts = [
        "null",
        "{}",
        "[]",
        "{\"a\":{},\"b\":[],\"c\":[null,true,false]}",
        "[0,127,128,255,256,65535,65536,4294967296]",
        "[-1,-32,-33,-128,-129,-32769,-2147483649,9007199254740991]",
        "[1.0,1.5,-0.25,1e300,0.1]",
        "\"q\\\"b\\\\/\\u00fc \\n€😀\"",
        &deep,
        &long,
    ];
    for (number, text) in texts.iter().enumerate() {
        let id = ["plain", "ünï", "place~", "a:b"][number % 4].to_owned() + &number.to_string();
        assert_eq!(
            fcall(&world, "tenure_start", &["echo", &id, text]),
            Ok(id.clone())
        );
        // Found where the client looks for it.
        let key = format!("{{{NS}:{}}}:instance:{id}", home(&id, &store));
        let bytes: Vec<u8> = world.redis.run(&["HGET", &key, "input"]);
        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
        assert!(
            bytes == tenure::codec::encode(&value).expect("bytes"),
            "{text:.60}"
        );
        let shown: Vec<String> = world.redis.run(&["FCALL_RO", "tenure_show", "0", NS, &id]);
        let input = shown
            .iter()
            .find_map(|line| line.strip_prefix("input: "))
            .expect("the input");
        let back: serde_json::Value = serde_json::from_str(input).expect("JSON");
        assert!(back == value, "{input:.60}");
    }
}

fn home(id: &str, store: &dyn Store) -> u16 {
    use tenure::ids::InstanceId;
    let id = match id.split_once('~') {
        Some((placement, rest)) => InstanceId::placed(placement, rest),
        None => InstanceId::new(id),
    };
    id.expect("an id").partition(store.partitions()).number()
}
