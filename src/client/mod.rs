//! Start, steer and await instances.
