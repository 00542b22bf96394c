//! What is read, what is known of it, and how it is drawn.

mod draw;
mod look;
mod model;
