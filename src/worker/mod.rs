//! A process that claims tasks and runs handlers.
