//! The command line as a user runs it: the program as a process, on a real Redis with real workers.

mod lists;
mod payloads;
mod starting;
mod world;
