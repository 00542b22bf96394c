//! Slips of a hand in what is stored, which cost time and nothing else: claim keys that are deleted, ready entries that
//! stand twice or come late.

use std::{collections::HashSet, time::Duration};

use fastrand::Rng;
use tenure::{
    MemoryStore,
    ids::{Partition, Purpose, Ticket},
    store::{Inspect, Store},
};
use tokio::time::sleep;

use crate::{scenario::Kind, world::World};

/// More tickets than there are in one place.
const MOST: usize = 1000;

/// Until the world heals.
pub(crate) fn begin(world: &World, store: MemoryStore) {
    let (world, rng) = (world.clone(), world.rng(0x511b));
    tokio::spawn(async move { slip(&world, &store, rng).await });
}

async fn slip(world: &World, store: &MemoryStore, mut rng: Rng) {
    // Each key once: of a living owner only a second slip, just before the second look, takes the task away.
    let mut lost = HashSet::new();
    loop {
        sleep(Duration::from_millis(rng.u64(100..1500))).await;
        if world.chaos.is_healed() {
            return;
        }
        match rng.u8(0..4) {
            0..2 if world.chaos.scenario.has(Kind::KeyLost) => {
                if let Some(ticket) = rng.choice(running(store).await)
                    && lost.insert((ticket.id.clone(), ticket.task.clone(), ticket.tail))
                {
                    world.chaos.happened(Kind::KeyLost);
                    store.delete_claim_key(&ticket.id, &ticket.task);
                }
            }
            2..4 if world.chaos.scenario.has(Kind::EntryTwice) => {
                repeat_an_entry(world, store, &mut rng).await;
            }
            _ => {}
        }
    }
}

/// At once, or when much may have happened to its task.
async fn repeat_an_entry(world: &World, store: &MemoryStore, rng: &mut Rng) {
    let mut tickets = running(store).await;
    tickets.extend(ready(world, store).await);
    tickets.retain(|ticket| ticket.purpose == Purpose::Run);
    let Some(ticket) = rng.choice(tickets) else {
        return;
    };
    if rng.bool() {
        sleep(Duration::from_millis(rng.u64(1..2000))).await;
    }
    if !world.chaos.is_healed() {
        world.chaos.happened(Kind::EntryTwice);
        store.repeat_entry(&ticket);
    }
}

async fn running(store: &MemoryStore) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for partition in Partition::all(store.partitions()) {
        tickets.extend(store.running(partition, MOST).await.expect("a read"));
    }
    tickets
}

async fn ready(world: &World, store: &MemoryStore) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for partition in Partition::all(store.partitions()) {
        for list in world.flows.iter().flat_map(|flow| flow.graph().lists()) {
            tickets.extend(store.ready(partition, &list, MOST).await.expect("a read"));
        }
    }
    tickets
}
