//! Whether a file is still what it was opened as.
//!
//! ```text
//!  directories, footer, labels read ─▶ Stamp: length and time of the last change ─┐
//!  pixels read ─▶ the same of the open file ────────────────────────────────────┴─▶ other ones: an error, and no mixture
//! ```
//!
//! A program that writes into a file while it is open for reading moves its pages. Other bytes at their old places are
//! then taken for pixels. Where they lie at the same places, new pixels come with old labels; checksums do not tell that. Remote places
//! have versions.

use crate::place::{Changed, File};
use crate::{Error, Result};
use std::path::Path;

/// Length and time of the last change of a file of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp(Changed);

impl Stamp {
    /// That of an open file now; `None` of one of another place.
    pub fn of(file: &File) -> Option<Self> {
        file.now().map(Self)
    }

    /// That of an open file when it was opened, which the system is not asked for again; `None` of one of another place.
    pub fn when_opened(file: &File) -> Option<Self> {
        file.when_opened().map(Self)
    }

    /// Fails where an open file is no longer of this stamp.
    ///
    /// # Errors
    /// Somebody wrote to the file.
    pub fn check(self, file: &File, path: &Path) -> Result<()> {
        if Self::of(file).is_none_or(|now| now == self) {
            return Ok(());
        }
        Err(written(path))
    }
}

/// The error of a file that somebody wrote to.
pub(crate) fn written(path: &Path) -> Error {
    Error::new(path, "was written to after it was opened: its pixels would be a mixture of both")
        .hint("open the set again; programs should write a new file beside it and rename that")
}

/// The outcome of reading `file`, unless somebody wrote to it since it got its stamp: then the error that says so, whatever came
/// of reading.
///
/// # Errors
/// As [`Stamp::check`], or `outcome`.
pub fn unless_written<T>(stamp: Option<Stamp>, file: &File, path: &Path, outcome: Result<T>) -> Result<T> {
    stamp.map_or(Ok(()), |stamp| stamp.check(file, path)).and(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_to_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [1; 10]).unwrap();
        let (file, _) = crate::place::open(&path).unwrap();
        let stamp = Stamp::of(&file).unwrap();
        stamp.check(&file, &path).unwrap();
        std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        std::fs::write(&path, [2; 10]).unwrap();
        stamp.check(&file, &path).unwrap();
        std::fs::write(dir.path().join("b"), [2; 11]).unwrap();
        let error = stamp.check(&file, &path).unwrap_err().to_string();
        assert!(error.contains("was written to after it was opened"), "{error}");
        let outcome = |stamp| unless_written(stamp, &file, &path, Ok(1)).ok();
        assert_eq!(
            (outcome(Some(stamp)), outcome(Stamp::of(&file)), outcome(None)),
            (None, Some(1), Some(1))
        );
    }
}
