//! Which part of an interrupted output is complete.
//!
//! A first line names the images and options that make the set. Each line below notes progress: the number of an
//! image for folders with files per image, and the engine's own notes for tables. A line that was cut off does not
//! count. Images are complete from the first on: images behind a gap are written again.
//!
//! In another place than the file system it is an object (`journal/remote.rs`), which notes images and nothing else.

mod parts;
mod remote;

pub(crate) use parts::{PARTS, has_parts};

use crate::{Error, Result, place};
use remote::{Notes, OTHER};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the journal in the folder.
pub(crate) const NAME: &str = ".wellread-journal";

/// Whether a journal of this process says that something is complete.
static IS_ANY_COMPLETE: AtomicBool = AtomicBool::new(false);

/// The part that is kept of the interrupted output of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptPart {
    /// There is none.
    None,
    /// Nothing in it was complete: it goes, and a later run begins anew.
    Begun,
    /// One that a later run continues from.
    Complete,
}

impl KeptPart {
    /// That of output which `is_kept` or not.
    pub(crate) fn of(is_kept: bool) -> Self {
        match (is_kept, IS_ANY_COMPLETE.load(Ordering::Relaxed)) {
            (false, _) => Self::None,
            (true, false) => Self::Begun,
            (true, true) => Self::Complete,
        }
    }
}

/// Whether the journal in the `folder` of an interrupted run says that something is complete.
pub fn is_any_complete(folder: &Path) -> bool {
    let text = place::read(&folder.join(NAME)).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().skip(1).any(remote::is_of_images)
}

/// Where a journal is kept.
#[derive(Clone, Debug)]
enum Kept {
    File(Arc<Mutex<File>>),
    Remote(Arc<Mutex<Notes>>),
}

/// The journal of a folder that is being written; clones write to the same one.
#[derive(Clone, Debug)]
pub struct Journal {
    kept: Kept,
    path: PathBuf,
    /// Bytes of the first line.
    head: usize,
    lines: Vec<String>,
    complete: usize,
    begun: bool,
}

/// Times that a lock is asked for, 10 ms apart: another process may look for a moment whether it is held.
const LOCK_ATTEMPTS: usize = 6;

/// Takes the lock of a journal; `false` where another process keeps it. Where the file system has no locks, nobody is kept out.
fn lock(file: &File) -> bool {
    for attempt in 0..LOCK_ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if !matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            return true;
        }
    }
    false
}

impl Journal {
    /// Opens the journal of `folder`, or begins it. `of` is one line; errors speak of `target`. `None` where another
    /// process has just moved the folder to its place.
    ///
    /// # Errors
    /// A journal of something else; one that a living process writes.
    pub(crate) fn open(folder: &Path, target: &Path, of: &str) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let what = if path.exists() {
            "cannot open the journal of the interrupted run"
        } else {
            "cannot begin the journal, by which a later run could go on"
        };
        let io = |e: std::io::Error| Error::io(target, what, &e);
        let mut file = match OpenOptions::new().read(true).append(true).create(true).open(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io)?,
        };
        // Held until the file is closed, also by a killed process.
        if !lock(&file) {
            return Err(
                Error::new(target, "another process is writing it").hint("wait until it has finished")
            );
        }
        if !is_at(&file, &path) {
            return Ok(None);
        }
        let text = std::fs::read(&path).map_err(io)?;
        let first = format!("{of}\n");
        let is_other = !text.starts_with(first.as_bytes());
        // A first line that was cut off is of a run that had completed nothing, as is one without a whole line behind it.
        let behind = text.iter().position(|&byte| byte == b'\n').map(|end| &text[end + 1..]);
        let is_of_nothing = |notes: &[u8]| is_other && !notes.contains(&b'\n') && !has_parts(folder);
        let begun = behind.is_none_or(is_of_nothing);
        if begun {
            file.set_len(0).and_then(|()| file.write_all(first.as_bytes())).map_err(|e| {
                // One that could not be begun says nothing.
                let _ = std::fs::remove_file(&path);
                io(e)
            })?;
        } else if is_other {
            return Err(Error::new(target, OTHER)
                .hint(format_args!(
                "repeat the same command on the same images; or remove {}, as overwriting without resuming does",
                folder.display()
            )));
        }
        let text = text.get(first.len()..).filter(|_| !begun).unwrap_or_default();
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        if whole < text.len() {
            file.set_len((first.len() + whole) as u64).map_err(io)?;
        }
        let lines = String::from_utf8_lossy(&text[..whole]);
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        let mut rows: Vec<usize> = lines.iter().filter_map(|line| line.parse().ok()).collect();
        rows.sort_unstable();
        rows.dedup();
        let complete = rows.iter().enumerate().take_while(|(i, row)| i == *row).count();
        IS_ANY_COMPLETE.fetch_or(!lines.is_empty(), Ordering::Relaxed);
        let kept = Kept::File(Arc::new(Mutex::new(file)));
        Ok(Some(Self { kept, path, head: first.len(), lines, complete, begun }))
    }

    /// The journal of a `folder` in another place than the file system, for the process `by`. Nothing is written yet.
    ///
    /// # Errors
    /// A journal of something else; one that cannot be read.
    pub(crate) fn remote(folder: &Path, target: &Path, of: &str, by: &str) -> Result<Self> {
        let path = folder.join(NAME);
        let notes = Notes::read(&path, target, of, by)?;
        let begun = notes.is_new();
        let complete = notes.complete();
        IS_ANY_COMPLETE.fetch_or(complete > 0, Ordering::Relaxed);
        let kept = Kept::Remote(Arc::new(Mutex::new(notes)));
        Ok(Self { kept, path, head: 0, lines: vec![], complete, begun })
    }

    /// The process that has written the journal of a `folder` in another place last.
    pub(crate) fn remote_writer(folder: &Path) -> Option<String> {
        remote::writer(&folder.join(NAME))
    }

    /// Does something with the notes of another place; nothing for a file.
    fn with_notes<T: Default>(&self, work: impl FnOnce(&mut Notes) -> std::io::Result<T>) -> Result<T> {
        match &self.kept {
            Kept::File(_) => Ok(T::default()),
            Kept::Remote(notes) => {
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                work(&mut notes).map_err(|e| Error::io(&self.path, "cannot write", &e))
            }
        }
    }

    /// Writes what was noted in another place, at once.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn write(&self) -> Result<()> {
        self.with_notes(Notes::write)
    }

    /// Notes, in another place, that the set is whole and is moved to its place, which may be half there then.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub(crate) fn note_placing(&self) -> Result<()> {
        self.with_notes(Notes::note_placing)
    }

    /// Whether an earlier run was moving the set to its place.
    pub(crate) fn is_placing(&self) -> bool {
        self.with_notes(|notes| Ok(notes.is_placing())).unwrap_or_default()
    }

    /// Writes nothing any more in another place: the folder goes.
    pub(crate) fn close(&self) {
        let _ = self.with_notes(|notes| {
            notes.close();
            Ok(())
        });
    }

    /// Whether a living process writes to `folder`.
    pub(crate) fn is_busy(folder: &Path) -> bool {
        // Open for writing, without which network file systems have no lock.
        match OpenOptions::new().read(true).write(true).open(folder.join(NAME)) {
            Ok(file) => file.try_lock().is_err(),
            Err(e) => e.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Whether it was begun now: nothing in the folder is known.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// How many images an earlier run has completed, from the first on.
    pub fn complete(&self) -> usize {
        self.complete
    }

    /// The notes of earlier runs.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Strikes out all but the first `lines` of what earlier runs noted.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn keep(&mut self, lines: usize) -> Result<()> {
        let Kept::File(file) = &self.kept else { return Ok(()) };
        self.lines.truncate(lines);
        let length = self.head + self.lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.set_len(length as u64).map_err(|e| Error::io(&self.path, "cannot write", &e))
    }

    /// Strikes out image `row` and all after it, so that they are written again. False, and nothing is changed, where images are not
    /// what is noted.
    ///
    /// # Errors
    /// The journal cannot be read or written.
    pub(crate) fn remove_from(&self, row: usize) -> Result<bool> {
        let io = |e: std::io::Error| Error::io(&self.path, "cannot write", &e);
        let Kept::File(file) = &self.kept else {
            return self.with_notes(|notes| notes.remove_from(row)).map(|()| true);
        };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let text = std::fs::read(&self.path).map_err(io)?;
        let noted = text.get(self.head..).unwrap_or_default();
        // A database notes no images: it knows its rows by itself, and would have them all again.
        if noted.is_empty() {
            return Ok(false);
        }
        let mut kept = String::new();
        for line in String::from_utf8_lossy(noted).lines() {
            match line.parse::<usize>() {
                Ok(noted) if noted < row => kept.push_str(&format!("{line}\n")),
                Ok(_) => (),
                Err(_) => return Ok(false),
            }
        }
        file.set_len(self.head as u64).and_then(|()| file.write_all(kept.as_bytes())).map_err(io)?;
        Ok(true)
    }

    /// Notes that all files of image `row` are written.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn add(&self, row: usize) -> Result<()> {
        match &self.kept {
            Kept::File(_) => self.note(&row.to_string()),
            Kept::Remote(_) => {
                IS_ANY_COMPLETE.store(true, Ordering::Relaxed);
                self.with_notes(|notes| notes.add(row))
            }
        }
    }

    /// Notes a line.
    ///
    /// # Errors
    /// The journal cannot be written, or is in another place, where images alone are noted.
    pub fn note(&self, line: &str) -> Result<()> {
        let Kept::File(file) = &self.kept else {
            return Err(Error::new(&self.path, "only images that are complete are noted there"));
        };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // One write, so that lines of several threads do not mix.
        let written = file.write_all(format!("{line}\n").as_bytes());
        IS_ANY_COMPLETE.fetch_or(written.is_ok(), Ordering::Relaxed);
        written.map_err(|e| Error::io(&self.path, "cannot write", &e))
    }
}

/// Whether an open file is still what is found at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |meta: &std::fs::Metadata| (meta.dev(), meta.ino());
        matches!((file.metadata(), path.metadata()), (Ok(a), Ok(b)) if of(&a) == of(&b))
    }
    #[cfg(not(unix))]
    {
        file.metadata().is_ok() && path.exists()
    }
}

#[cfg(test)]
mod tests;
