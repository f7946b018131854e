//! Why a file is not read: because it is damaged, or because it is of a kind that is not read. The advice
//! differs: a new copy may help with the first, only a conversion with the second.

use crate::Error;
use std::fmt::Display;
use std::path::Path;

/// A cause without file and row, which whoever knows them adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The file is not what it should be.
    Damaged(String),
    /// The file may be fine, but is of a kind that is not read.
    Unsupported(String),
}

impl Refusal {
    /// The file is not what it should be.
    pub fn damaged(cause: impl Display) -> Self {
        Self::Damaged(cause.to_string())
    }

    /// The file may be fine, but is of a kind that is not read.
    pub fn unsupported(cause: impl Display) -> Self {
        Self::Unsupported(cause.to_string())
    }

    /// An error about `path`; `what` comes before the cause, `convert` says how to convert what is unsupported.
    pub fn error(&self, path: &Path, what: &str, convert: &str) -> Error {
        let error = |cause: &str| Error::new(path, format_args!("{what}{cause}"));
        match self {
            Self::Damaged(cause) => {
                error(cause).hint("the file is truncated or corrupt; copy or write it again")
            }
            Self::Unsupported(cause) => error(cause).unsupported().hint(convert),
        }
    }
}

impl From<String> for Refusal {
    fn from(cause: String) -> Self {
        Self::Damaged(cause)
    }
}

impl From<&str> for Refusal {
    fn from(cause: &str) -> Self {
        Self::Damaged(cause.to_owned())
    }
}
