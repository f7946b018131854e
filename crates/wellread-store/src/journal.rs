//! Which images of an interrupted output are complete.
//!
//! A line per image, added when all its files are written, below a first line that says what the set is made of. A
//! line that was cut off does not count. Images are complete from the first on: what follows a gap is written again.

use crate::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the journal in the folder.
const NAME: &str = ".wellread-journal";

/// The journal of a folder that is being written; clones write to the same one.
#[derive(Clone, Debug)]
pub struct Journal {
    file: Arc<Mutex<File>>,
    path: PathBuf,
    complete: usize,
}

impl Journal {
    /// Opens the journal of `folder`, or begins it. `of` is one line; errors speak of `target`.
    ///
    /// # Errors
    /// A journal of something else; one that a living process writes.
    pub(crate) fn open(folder: &Path, target: &Path, of: &str) -> Result<Self> {
        let path = folder.join(NAME);
        let io = |e: std::io::Error| Error::io(target, "cannot open the journal of the interrupted run", &e);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(io)?;
        // Held until the file is closed, also by a killed process.
        if let Err(std::fs::TryLockError::WouldBlock) = file.try_lock() {
            return Err(
                Error::new(target, "another process is writing it").hint("wait until it has finished")
            );
        }
        let text = std::fs::read_to_string(&path).map_err(io)?;
        let first = format!("{of}\n");
        if text.is_empty() {
            file.write_all(first.as_bytes()).map_err(io)?;
        } else if !text.starts_with(&first) {
            return Err(Error::new(
                target,
                "an interrupted run left a part of it that was made of other images or with other options",
            )
            .hint(format_args!("repeat the same command, or remove {}", folder.display())));
        }
        let mut rows: Vec<usize> = vec![];
        let mut lines = text.get(first.len()..).unwrap_or_default();
        while let Some((line, rest)) = lines.split_once('\n') {
            rows.extend(line.parse::<usize>());
            lines = rest;
        }
        if !lines.is_empty() {
            file.write_all(b"\n").map_err(io)?;
        }
        rows.sort_unstable();
        rows.dedup();
        let complete = rows.iter().enumerate().take_while(|(i, row)| i == *row).count();
        Ok(Self { file: Arc::new(Mutex::new(file)), path, complete })
    }

    /// Whether a living process writes to `folder`.
    pub(crate) fn is_busy(folder: &Path) -> bool {
        File::open(folder.join(NAME))
            .is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
    }

    /// How many images an earlier run has completed, from the first on.
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// Notes that all files of image `row` are written.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn add(&self, row: usize) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines of several threads do not mix.
        file.write_all(format!("{row}\n").as_bytes()).map_err(|e| Error::io(&self.path, "cannot write", &e))
    }

    /// Removes it, as it is no part of the finished set.
    pub(crate) fn remove(self, target: &Path) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(|e| Error::io(target, "cannot remove the journal", &e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_count_up_to_the_first_gap() {
        let dir = tempfile::tempdir().unwrap();
        let open = |of: &str| Journal::open(dir.path(), Path::new("set"), of);
        let journal = open("a to b").unwrap();
        assert_eq!(journal.complete(), 0);
        for row in [1, 0, 2, 5] {
            journal.clone().add(row).unwrap();
        }
        assert!(open("a to b").unwrap_err().to_string().contains("another process"));
        drop(journal);
        assert_eq!(open("a to b").unwrap().complete(), 3);
        assert!(open("a to c").unwrap_err().to_string().contains("other images"));
        // Killed in the middle of a line: 3 counts only when it is whole.
        let path = dir.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}3")).unwrap();
        let journal = open("a to b").unwrap();
        assert_eq!(journal.complete(), 3);
        journal.add(3).unwrap();
        drop(journal);
        assert_eq!(open("a to b").unwrap().complete(), 4);
    }
}
