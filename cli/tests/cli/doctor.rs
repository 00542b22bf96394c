//! `tenure doctor`: silent where nothing is wrong, and what it says and mends where something is.

use std::time::Duration;

use serde_json::json;
use tenure::{Client, Status, Workflow};

use crate::world::{World, until};

fn greet() -> Workflow<String, String> {
    Workflow::builder("greet")
        .task("think", async |name: String| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            anyhow::Ok(name)
        })
        .await_signal::<String>("mood")
        .task("say", async |mood: String| anyhow::Ok(mood))
        .build()
        .expect("a workflow")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn doctor_names_what_is_wrong_mends_it_and_is_silent_afterwards() {
    let world = World::new();
    let flow = greet();
    let worker = world.worker(&flow).await;
    let client = Client::new(world.store().await);
    let handle = client
        .start(&flow, "Ada".to_owned())
        .id("order-42")
        .await
        .expect("a start");
    until("it waits", async || {
        client.counts().await.expect("counts").waiting == 1
    })
    .await;
    let said = world.run(&["doctor"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    assert!(
        said.err.contains("note: the append-only file is off"),
        "{said:?}"
    );
    let quiet = world.run(&["doctor", "--quiet"]);
    assert_eq!(
        (quiet.code, quiet.out.as_str(), quiet.err.as_str()),
        (0, "", "")
    );

    world
        .redis
        .run::<()>(&["SREM", "{tenure:0}:waiting", "order-42"]);
    world
        .redis
        .run::<()>(&["HSET", "{tenure:0}:instance:order-42", "open", "rubbish"]);
    world
        .redis
        .run::<()>(&["SET", "{tenure:0}:claim:nobody:think", "w"]);
    let said = world.run(&["doctor", "--quiet"]);
    assert_eq!(said.code, 1, "{said:?}");
    for part in [
        "{tenure:0}:instance:order-42: open cannot be read: invalid digit found in string\n  `tenure doctor --fix` mends it: the field was restored",
        "{tenure:0}:claim:nobody:think: no running task has this claim, and it does not expire as it should (`w`)",
        "2 findings\n",
    ] {
        assert!(said.out.contains(part), "{part}: {said:?}");
    }
    let said = world.run(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.json()["well"], false);
    assert_eq!(said.json()["findings"][0]["outcome"], "mendable");

    let said = world.run(&["doctor", "--fix", "--quiet"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out
            .contains("it is missing in the index `waiting`\n  mended: it is in the index again"),
        "{said:?}"
    );
    assert!(said.out.ends_with("3 findings, 3 mended\n"), "{said:?}");
    let again = world.run(&["doctor", "--fix", "--quiet"]);
    assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");
    handle
        .signal("mood", &"merry".to_owned())
        .await
        .expect("a signal");
    assert_eq!(handle.result().await.expect("a result"), "merry");
    worker.shutdown();
    worker.join().await.expect("its end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_doctor_cannot_mend_is_told_with_advice_that_works() {
    let world = World::new();
    let flow = greet();
    let worker = world.worker(&flow).await;
    let client = Client::new(world.store().await);
    client
        .start(&flow, "Ada".to_owned())
        .id("order-42")
        .await
        .expect("a start");
    until("it waits", async || {
        client.counts().await.expect("counts").waiting == 1
    })
    .await;
    world.redis.run::<()>(&[
        "HSET",
        "{tenure:0}:instance:order-42",
        "task:mood",
        "rubbish",
    ]);
    let said = world.run(&["doctor", "--fix", "--quiet"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("task:mood cannot be read"), "{said:?}");
    assert!(said.out.contains("not mended: it cannot be told from anything else; write what belongs there by hand, or `tenure terminate` the instance"), "{said:?}");
    assert!(said.out.ends_with("1 finding, 0 mended\n"), "{said:?}");
    let other = world.run(&["doctor", "--partition", "1"]);
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.err.contains("there is no partition 1"), "{other:?}");
    // As `tenure terminate` does: then it is started anew.
    client
        .terminate("order-42", "damaged", "ada")
        .await
        .expect("its end");
    let anew = client
        .start(&flow, "Ada".to_owned())
        .id("order-42")
        .if_exists(tenure::IdPolicy::ReplaceFinished);
    let anew = anew.await.expect("a start");
    anew.signal("mood", &"merry".to_owned())
        .await
        .expect("a signal");
    assert_eq!(anew.result().await.expect("a result"), "merry");
    assert_eq!(anew.status().await.expect("a status"), Status::Completed);
    assert_eq!(world.ok_json(&["doctor"])["findings"], json!([]));
    worker.shutdown();
    worker.join().await.expect("its end");
}
