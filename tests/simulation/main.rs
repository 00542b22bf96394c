//! Real workers, clients and keepers around a store on a simulated clock, with everything that can go wrong, each run
//! from one seed.
//!
//! `SEED=liveness:17 cargo test --test simulation the_seed_that_is_asked_for -- --nocapture` repeats one with its log.

mod chaos;
mod clerk;
mod coverage;
mod handler;
mod producer;
mod redis;
mod run;
mod scenario;
mod script;
mod seeds;
mod shape;
mod slips;
mod world;

/// A seed made of a seed and a name.
fn mix(seed: u64, name: &str) -> u64 {
    name.bytes()
        .fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
