//! The wellread command.
fn main() {}
