//! One error type: which file, what is wrong, what to do.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of everything that reads or writes results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The advice where a disk is full.
const DISK_FULL_HINT: &str = "free some space or choose another --out folder";

/// A failure with a result file, with one thing to do.
///
/// Printed as `FILE: cause (hint: …)`.
#[derive(Debug)]
pub struct Error {
    path: PathBuf,
    cause: String,
    hint: Option<&'static str>,
}

impl Error {
    /// An error about `path`, with its cause in words.
    pub fn new(path: impl AsRef<Path>, cause: impl fmt::Display) -> Self {
        Self { path: path.as_ref().to_owned(), cause: cause.to_string(), hint: None }
    }

    /// An input/output error at `path` while doing `what` ("cannot read", "cannot write" …).
    pub(crate) fn io(path: impl AsRef<Path>, what: &str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let e = Self::new(path, format_args!("{what}: {error}"));
        match error.kind() {
            K::NotFound => e.hint("check the path; `wellread bench` writes the results"),
            K::PermissionDenied => e.hint("check the permissions of the file and of its folder"),
            K::StorageFull | K::QuotaExceeded => e.hint(DISK_FULL_HINT),
            _ => e,
        }
    }

    /// The error of a library that was writing `path`: an error of the disk is a text by then.
    pub(crate) fn writing(path: impl AsRef<Path>, cause: &str) -> Self {
        let e = Self::new(path, format_args!("cannot write: {}", cause.trim_start_matches("External: ")));
        let is_full = ["No space left", "quota exceeded"].iter().any(|words| cause.contains(words));
        if is_full { e.hint(DISK_FULL_HINT) } else { e }
    }

    /// Says what to do.
    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The file or folder at fault.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The cause alone, in words.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cause)?;
        match self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
