//! Reaping beside commits.

use std::{sync::Arc, time::Duration};

use tenure::{
    ids::{ListName, Nonce, Partition, QueueName, WorkerId},
    store::{
        ClaimRequest, Claimed, Holding, Parking, Recovery, Retention, SettleReply, SettleRequest,
        Settlement, Status, Store, TaskState, TickRequest, Verdict,
    },
};

use crate::{
    job::{Job, Kind},
    world::World,
};

/// The shortest TTL that claims may have.
const TTL: Duration = Duration::from_millis(50);
const TASKS: u16 = 200;

// case 5
pub(super) async fn a_reaper_that_races_with_commits_undoes_none() {
    let world = World::new().await;
    let workflow = world.workflow(Kind::One);
    let list = ListName {
        queue: QueueName::default(),
        definition: workflow.graph().hash(),
    };
    let handles = world
        .start_many(Kind::One, "x", usize::from(TASKS), 5, |_| Job::default())
        .await;
    let worker = WorkerId::new("dead").expect("a worker id");
    let claims = claim(&world, &list, &worker).await;
    assert_eq!(claims.len(), usize::from(TASKS));
    // Nobody extends them: from here on every claim is one that a reaper may take, and that its owner may still commit.
    tokio::time::sleep(TTL * 2).await;

    let reaper = tokio::spawn({
        let store = world.store.clone();
        async move {
            let mut recovered = Vec::new();
            while recovered.len() < usize::from(TASKS) {
                let reply = store.tick(round()).await.expect("a tick");
                if reply.recovered.is_empty() && !reply.again {
                    break;
                }
                recovered.extend(reply.recovered);
            }
            recovered
        }
    });
    let mut replies = Vec::new();
    for claimed in claims.iter().rev() {
        replies.push((
            claimed.ticket.id.clone(),
            settle(&world, &worker, claimed).await,
        ));
    }
    let recovered = reaper.await.expect("the reaper");

    let stored = replies
        .iter()
        .filter(|(_, reply)| matches!(reply, SettleReply::Stored { .. }))
        .count();
    assert_eq!(
        stored + recovered.len(),
        usize::from(TASKS),
        "each was either committed or recovered"
    );
    assert!(
        stored > 0 && !recovered.is_empty(),
        "{stored} commits did not race with {} recoveries",
        recovered.len()
    );
    assert!(
        recovered
            .iter()
            .all(|r| r.recovery == Recovery::Requeued { crashes: 1 }),
        "{recovered:?}"
    );
    for handle in &handles {
        let (_, reply) = replies
            .iter()
            .find(|(id, _)| id == handle.id())
            .expect("a reply");
        let (status, state) = match reply {
            SettleReply::Stored { .. } => (Status::Completed, TaskState::Completed),
            SettleReply::Lost => (Status::Running, TaskState::Ready),
            other => panic!("{other:?}"),
        };
        assert_eq!(handle.status().await.expect("the status"), status);
        assert_eq!(world.record(handle, "a").await.state, state);
        assert!(!recovered.iter().any(|r| r.id == *handle.id()) || status == Status::Running);
    }
    let _worker = world.worker_of(Kind::One, Duration::from_secs(5)).await;
    for handle in &handles {
        assert_eq!(world.over(handle).await, Status::Completed);
    }
    world.indexed_once(&handles).await;
    world.nothing_left().await;
}

async fn claim(world: &World, list: &ListName, worker: &WorkerId) -> Vec<Claimed> {
    let request = ClaimRequest {
        partition: Partition::default(),
        worker: worker.clone(),
        nonce: Nonce::random(),
        want: TASKS,
        lists: vec![list.clone()],
        ttl: TTL,
        limits: Arc::default(),
        parking: Parking::Never,
    };
    world.store.claim(request).await.expect("a claim").claims
}

async fn settle(world: &World, worker: &WorkerId, claimed: &Claimed) -> SettleReply {
    let holding = Holding {
        ticket: claimed.ticket.clone(),
        run: claimed.run,
        record: claimed.record.clone(),
    };
    let field = tenure::ids::ValueField::Output(claimed.ticket.task.clone());
    let output = rmp_serde::to_vec_named(&Job::default())
        .expect("a job")
        .into();
    let follow_ups = vec![tenure::engine::FollowUp::End { result: field }];
    let request = SettleRequest {
        partition: Partition::default(),
        worker: worker.clone(),
        ttl: TTL,
        items: vec![Settlement {
            holding,
            verdict: Verdict::Completed {
                output: Some(output),
                follow_ups,
            },
            claim_next: None,
        }],
    };
    world
        .store
        .settle(request)
        .await
        .expect("a settlement")
        .remove(0)
}

fn round() -> TickRequest {
    TickRequest {
        partition: Partition::default(),
        keeper: None,
        expected: None,
        promote: 0,
        reap: 1,
        prune: 0,
        crash_delay: Duration::from_millis(1),
        ttl: TTL,
        retention: Retention::default(),
    }
}
