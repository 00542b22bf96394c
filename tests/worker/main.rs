//! What a worker, a client and a reaper do, on the store in memory. Rows are those of the list of behaviours that this
//! project keeps, cases those of its list of cases.

mod building;
mod cancelling;
mod claiming;
mod faults;
mod logging;
mod middleware;
mod noting;
mod producing;
mod reaping;
mod retrying;
mod running;
mod signals;
mod steering;
mod stopping;
mod support;
