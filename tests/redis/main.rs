//! The store on a real Redis: each test has a server of its own.

mod access;
mod bounds;
mod busy;
mod cluster;
mod contract;
mod cost;
mod doctor;
mod eviction;
mod full;
mod functions;
mod life;
mod making;
mod proxy;
mod records;
mod repeats;
mod trouble;
mod volume;
