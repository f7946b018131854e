//! Paths and names as SQLite has them.

use std::fmt::Write;
use std::path::Path;

/// A path as SQLite's address of a file.
pub(super) fn address(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut out = String::from(if cfg!(windows) { "file:/" } else { "file:" });
    for &byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => out.push('/'),
            b'/' | b'.' | b'-' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => {
                // Writing to a text does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out + "?immutable=1"
}

/// A name as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
