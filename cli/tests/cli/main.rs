//! The command line as a user runs it: the program as a process, on a real Redis with real workers.

mod controlling;
mod dead;
mod lists;
mod payloads;
mod starting;
mod terminal;
mod world;
