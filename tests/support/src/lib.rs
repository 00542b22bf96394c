//! Redis servers for tests: each test has its own, on a free port of the loopback interface, gone when it is dropped.
//!
//! A missing `redis-server` fails the test with a word on how to install it; it is never a reason to skip.

mod clock;
mod cluster;
mod sentinel;
mod server;
mod tls;

pub use clock::ServerClock;
pub use cluster::RedisCluster;
pub use sentinel::RedisSentinel;
pub use server::RedisServer;
pub use tls::Certificates;
