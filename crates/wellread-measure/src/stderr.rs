//! Lines on stderr, for programs that must go on when nobody reads it.

use std::io::Write as _;

/// Writes a line to stderr. Where that fails (it is closed, or its disk is full), there is nobody left to tell. It is no error, and no
/// panic as with `eprintln!`.
pub fn to_stderr(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}
