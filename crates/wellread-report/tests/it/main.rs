//! What leaves this crate: files that read back, figures that parse and decode, a report that is whole.

mod tables;
