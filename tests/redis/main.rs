//! The store on a real Redis: each test has a server of its own.

mod life;
mod making;
