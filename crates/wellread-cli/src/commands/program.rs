//! This program as its commands see it: some start it again in processes of their own, and a recipe runs its commands.
//!
//! ```text
//!  the root, which knows all commands ─▶ Program { start, parse } ─▶ bench, rerun ─▶ recipe ─▶ parse(words) ─▶ Run
//! ```
//!
//! A command so needs to know of no other.

use crate::output::{Outcome, Ui};
use std::ffi::OsString;

/// A command whose words were parsed; does its work when it is called, with what starts this program again.
pub type Run = Box<dyn FnOnce(Vec<OsString>, Ui) -> Outcome>;

/// Parses the words of a command, without the program's name, as the typed ones are parsed.
pub type Parse = fn(&[String]) -> Result<Run, String>;

/// This program.
pub struct Program {
    /// The words that start it again in a process of its own.
    pub start: Vec<OsString>,
    /// Parses a command of it.
    pub parse: Parse,
}
