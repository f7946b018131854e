//! The one error type of the crate: the attempted action, the file, and the cause.

use std::io;
use std::path::{Path, PathBuf};

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, as a verb ("open", "read").
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's own words.
        source: io::Error,
    },
    /// The operating system offers no way to know this.
    #[error("{what} cannot be measured here: {reason}")]
    Unsupported {
        /// The quantity asked for.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// A plan of runs that cannot be carried out as written.
    #[error("the benchmark plan is not valid: {0}")]
    Plan(String),
    /// A histogram that cannot be written.
    #[error("the histogram cannot be written: {0}")]
    Histogram(String),
}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Attaches an action and a path to an operating-system error; made for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
