//! The error of a transform that cannot be applied.

/// A transform that cannot be applied: the cause and the advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause} (hint: {hint})")]
pub struct TransformError {
    /// The cause.
    pub cause: String,
    /// The advice.
    pub hint: String,
}

impl TransformError {
    pub(crate) fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: hint.into() }
    }

    /// As an error about a file, and a row of it if one is at fault.
    pub(crate) fn at(self, path: &std::path::Path, row: Option<usize>) -> wellread_store::Error {
        let error = wellread_store::Error::new(path, self.cause).hint(self.hint);
        match row {
            Some(row) => error.row(row),
            None => error,
        }
    }
}
