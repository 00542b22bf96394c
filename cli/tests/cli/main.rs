//! The command line as a user runs it: the program as a process, on a real Redis with real workers.

mod connection;
mod controlling;
mod dead;
mod doctor;
mod events;
mod functions;
mod functions_stored;
mod idle;
mod listing;
mod lists;
mod payloads;
mod queues;
mod rights;
mod showing;
mod starting;
mod starting_many;
mod terminal;
mod top;
mod upkeep;
mod why;
mod world;
