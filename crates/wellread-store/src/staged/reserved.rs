//! A name that is taken now, for a file that is written later.

use super::cleaning::unfinished;
use super::remove::remove_any;
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
        File::create_new(path)?;
        unfinished().push(path.to_owned());
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
            self.keep();
            remove_any(&self.path);
        }
    }
}
