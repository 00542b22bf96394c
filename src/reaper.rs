//! Recovers what dead workers held, on its own.
