//! The amounts of memory of a process in `/proc/PID/status`, one per line.

use crate::error::{Error, Result};
use crate::sys;

/// The text of a file of `/proc` about a process. Its name is part of it, and need not be UTF-8.
pub(super) fn text(name: &str) -> std::io::Result<String> {
    sys::proc_file(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of `/proc/PID/status`.
pub(super) struct Status(String);

impl Status {
    pub(super) fn read(pid: &str) -> Result<Self> {
        let name = format!("{pid}/status");
        text(&name)
            .map(Self)
            .map_err(|error| Error::Unsupported { what: "memory", reason: format!("/proc/{name}: {error}") })
    }

    pub(super) fn bytes(&self, name: &str) -> Option<u64> {
        kibibytes_field(&self.0, name)
    }
}

/// A line `Name:   123 kB` in bytes.
pub(super) fn kibibytes_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// The error where the kernel leaves an amount out.
pub(super) fn missing(name: &str) -> Error {
    Error::Unsupported { what: "memory", reason: format!("the kernel does not give {name}") }
}
