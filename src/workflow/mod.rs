//! Pure: the typed builder, the graph, its policies and its hash.

mod policy;

pub use policy::Limits;
