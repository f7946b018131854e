//! A name that is taken now, for a file that is written later.

use super::cleaning::{remove_one, unfinished};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file whose name is taken before there is anything to say in it. It goes when this is dropped or the program is
/// interrupted, unless it is [kept](Self::keep).
#[derive(Debug)]
pub struct Reserved {
    path: PathBuf,
    kept: bool,
}

impl Reserved {
    /// Makes the file, which must not be there.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::AlreadyExists`] where the name is taken.
    pub fn new(path: &Path) -> io::Result<Self> {
        // In one step with its name, or it would stay where the process is ended just now.
        let mut names = unfinished();
        File::create_new(path)?;
        names.push(path.to_owned());
        Ok(Self { path: path.to_owned(), kept: false })
    }

    /// The file stays from now on.
    pub fn keep(&mut self) {
        self.kept = true;
        unfinished().retain(|path| *path != self.path);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.kept {
            remove_one(&self.path);
        }
    }
}
