//! The error of words that do not go with the results.

/// Why something that was asked for does not go with these results: wrong usage, and no fault of the results.
#[derive(Debug)]
pub struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}
