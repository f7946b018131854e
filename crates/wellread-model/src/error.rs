//! One error type: the cause, and one thing to do.

use std::fmt;

/// Result of everything a model does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure of a model, with one thing to do. Printed as `cause (hint: …)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    cause: String,
    hint: Option<String>,
}

impl Error {
    /// An error with its cause in words.
    pub fn new(cause: impl fmt::Display) -> Self {
        Self { cause: cause.to_string(), hint: None }
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint.get_or_insert_with(|| hint.to_string());
        self
    }

    /// The cause alone, in words.
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// The hint alone, if there is one.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
