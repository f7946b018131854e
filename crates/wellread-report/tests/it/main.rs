//! The output of this crate: files that read back, figures that parse and decode and where no text touches
//! another, a report that is whole.

mod figures;
mod order;
mod report;
mod sample;
mod tables;
mod values;
