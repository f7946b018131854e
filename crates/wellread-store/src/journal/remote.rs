//! The journal of a folder in another place than the file system: an object that is written whole, now and then.
//!
//! ```text
//!  {"source": …}       what the set is made of
//!  by 4711.1a2b3c4d     the process that writes it
//!  placing              once the set is whole and moved to its place
//!  0-4132               images that are complete
//!  4135
//! ```
//!
//! Objects cannot be appended to, and each is a request. So it is written once a second at most, and when the writer ends. A
//! process that is killed loses what it noted since: those images are written again.

use super::parts::has_parts;
use crate::{Error, Result, place};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// The cause for a journal that does not fit.
pub(super) const OTHER: &str = "an interrupted run left a part of it that was made of other images, with other options or by another release";
const BY: &str = "by ";
const PLACING: &str = "placing";

/// Whether a line of a journal, the first one left out, says that something is complete.
pub(super) fn is_of_images(line: &str) -> bool {
    !line.starts_with(BY) && line != PLACING
}

/// The text of an object, and the notes since.
#[derive(Debug)]
pub(super) struct Notes {
    path: PathBuf,
    of: String,
    by: String,
    placing: bool,
    /// Whether there was none, or one of something else in which nothing was complete.
    is_new: bool,
    /// Images that are complete, from the first on.
    complete: usize,
    /// Those that are behind a gap.
    others: BTreeSet<usize>,
    written: Instant,
    /// Whether something was noted since it was written.
    changed: bool,
    /// Whether nothing is written any more.
    closed: bool,
}

impl Notes {
    /// Those of `path`, for the process `by` to go on with; empty ones where there are none.
    ///
    /// # Errors
    /// They are of something else than `of`, or cannot be read.
    pub(super) fn read(path: &Path, target: &Path, of: &str, by: &str) -> Result<Self> {
        let mut notes = Self {
            path: path.to_owned(),
            of: of.to_owned(),
            by: by.to_owned(),
            placing: false,
            is_new: false,
            complete: 0,
            others: BTreeSet::new(),
            written: Instant::now(),
            changed: false,
            closed: false,
        };
        let Some(text) = text(path)
            .map_err(|e| Error::io(target, "cannot open the journal of the interrupted run", &e))?
        else {
            notes.is_new = true;
            return Ok(notes);
        };
        let Some(rest) = text.strip_prefix(of).and_then(|rest| rest.strip_prefix('\n')) else {
            let folder = path.parent().unwrap_or(path);
            let is_of_something = |line: &str| line == PLACING || is_of_images(line);
            if !text.lines().skip(1).any(is_of_something) && !has_parts(folder) {
                notes.is_new = true;
                return Ok(notes);
            }
            return Err(Error::new(target, OTHER)
                .hint(format_args!("repeat the same command, or remove {}", folder.display())));
        };
        for line in rest.lines() {
            notes.placing |= line == PLACING;
            let (first, last) = line.split_once('-').unwrap_or((line, line));
            if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>())
                && first <= last
            {
                // Only those from the first on are written as a run.
                if first <= notes.complete {
                    notes.complete = notes.complete.max(last.saturating_add(1));
                } else {
                    notes.others.insert(first);
                }
            }
        }
        notes.close_gap();
        Ok(notes)
    }

    fn close_gap(&mut self) {
        while self.others.first().is_some_and(|&row| row <= self.complete) {
            if self.others.pop_first() == Some(self.complete) {
                self.complete += 1;
            }
        }
    }

    /// Images that are complete, from the first on.
    pub(super) fn complete(&self) -> usize {
        self.complete
    }

    /// Whether there was no journal.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether a run was moving the set to its place.
    pub(super) fn is_placing(&self) -> bool {
        self.placing
    }

    /// Notes an image.
    pub(super) fn add(&mut self, row: usize) -> io::Result<()> {
        self.others.insert(row);
        self.close_gap();
        self.changed = true;
        if self.written.elapsed() < WRITE_INTERVAL { Ok(()) } else { self.write() }
    }

    /// Strikes out image `row` and all after it.
    pub(super) fn remove_from(&mut self, row: usize) -> io::Result<()> {
        self.complete = self.complete.min(row);
        self.others.retain(|&other| other < row);
        self.write()
    }

    /// Notes that the set is whole.
    pub(super) fn note_placing(&mut self) -> io::Result<()> {
        self.placing = true;
        self.write()
    }

    /// Writes nothing any more: the journal has gone, or is going to.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Writes the object.
    pub(super) fn write(&mut self) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let mut text = format!("{}\n{BY}{}\n", self.of, self.by);
        if self.placing {
            text.push_str(&format!("{PLACING}\n"));
        }
        if self.complete > 0 {
            text.push_str(&format!("0-{}\n", self.complete - 1));
        }
        for row in &self.others {
            text.push_str(&format!("{row}\n"));
        }
        place::write(&self.path, text.as_bytes())?;
        (self.written, self.changed) = (Instant::now(), false);
        Ok(())
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if self.changed {
            // Else a later run does a little more.
            let _ = place::to_its_end(|| self.write());
        }
    }
}

/// The process that wrote the journal at `path` last; `None` where there is none.
pub(super) fn writer(path: &Path) -> Option<String> {
    let text = text(path).ok()??;
    text.lines().find_map(|line| line.strip_prefix(BY)).map(str::to_owned)
}

/// The text at `path`; `None` where nothing is.
fn text(path: &Path) -> io::Result<Option<String>> {
    match place::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        // Those who may list some folders alone are refused what is not there.
        Err(e) if e.kind() == ErrorKind::PermissionDenied && is_unlisted(path) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a listing says that nothing is at `path`.
fn is_unlisted(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    match place::list(folder) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|e| Some(&*e.name()) != path.file_name())),
        Err(e) => e.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_count_up_to_the_first_gap_and_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let read = |of: &str| Notes::read(&path, Path::new("set"), of, "me");
        let mut notes = read("a").unwrap();
        assert_eq!((notes.complete(), writer(&path), notes.is_new()), (0, None, true));
        for row in [1, 0, 2, 5, 7] {
            notes.add(row).unwrap();
        }
        drop(notes);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nby me\n0-2\n5\n7\n");
        assert_eq!(writer(&path).as_deref(), Some("me"));
        assert!(read("b").unwrap_err().to_string().contains("other images"));
        let mut notes = read("a").unwrap();
        assert_eq!((notes.complete(), notes.is_placing(), notes.is_new()), (3, false, false));
        notes.add(3).unwrap();
        notes.add(4).unwrap();
        assert_eq!(notes.complete(), 6);
        notes.remove_from(4).unwrap();
        notes.note_placing().unwrap();
        notes.add(9).unwrap();
        notes.close();
        drop(notes);
        let notes = read("a").unwrap();
        assert_eq!((notes.complete(), notes.is_placing(), notes.others.len()), (4, true, 0));
    }
}
