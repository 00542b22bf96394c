//! The command line of Tenure.

fn main() {}
