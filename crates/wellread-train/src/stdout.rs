//! Lines for people who follow a task.

use std::io::Write as _;

/// Prints a line for people on stdout. A reader that is gone must not end the task.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
