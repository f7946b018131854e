//! The test for paths that output may replace: files, empty folders, and folders that hold a set of images that
//! wellread wrote and nothing else. Files of images are looked at one by one, a read or two of each, because one of
//! another program may be the only copy.
//!
//! ```text
//!  target ──Probe──▶ the format that recognises it ──▶ does that format write whatever lies in the folder?
//! ```

use super::remove::MAX_LOOKS;
use crate::entries::{self, Entry};
use crate::format::formats;
use crate::probe::Probe;
use crate::{Error, Result, part_list};
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Whether what is at `target`, if anything, may be replaced on request.
pub(super) fn may_be_replaced(target: &Path) -> Result<()> {
    let look = || target.symlink_metadata().map_or(Ok(()), |there| is_replaceable(target, there.file_type()));
    // A refused folder may be half of one set and half of another that other processes put there: it is looked at
    // again.
    for _ in 0..MAX_LOOKS {
        if look().is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    look()
}

fn is_replaceable(target: &Path, there: FileType) -> Result<()> {
    if there.is_file() {
        return Ok(());
    }
    if !there.is_dir() {
        return Err(Error::new(target, "is neither a file nor a folder and is not replaced"));
    }
    folder_may_be_replaced(target)
}

/// Whether the folder at `target`, of whatever place, holds a set of images and nothing else.
pub(super) fn folder_may_be_replaced(target: &Path) -> Result<()> {
    let Some(entry) = foreign_entry(target)? else { return Ok(()) };
    let cause =
        format_args!("is a folder that holds more than a set of images ({entry}) and is not replaced");
    let error = Error::new(target, cause);
    Err(match entry.strip_suffix(entries::UNMARKED) {
        Some(_) => error.hint(format_args!(
            "choose another name. Sets of PNG and OME-Zarr that the first versions of wellread wrote have no mark, and look like those \
             of others. If this is one, remove the folder {} yourself",
            target.display()
        )),
        None => error.hint(format_args!(
            "choose another name, or move {} elsewhere, or remove the folder yourself",
            target.join(&entry).display()
        )),
    })
}

/// Something in a folder that does not look like a part of a set of images; `None` for an empty folder.
fn foreign_entry(folder: &Path) -> Result<Option<String>> {
    // Far below a folder of other things there may be an image: that does not make a set of it that may go.
    let probe = Probe { levels: 1, ..Probe::new(folder)? };
    let Some(format) = formats().iter().find(|f| (f.recognise)(&probe)) else {
        if let Some(foreign) = part_list::foreign_entries(folder)? {
            return Ok(foreign.into_iter().next());
        }
        // Images may lie deeper than that: a folder that is no set by itself may go only where there is
        // nothing in it.
        let is_hidden = |entry: &Entry| entry.name.starts_with('.');
        let foreign = |entry: &Entry| !entry.is_folder || is_hidden(entry) || !is_empty(&entry.path);
        return Ok(entries::list(folder)?.into_iter().find(foreign).map(|entry| entry.name));
    };
    (format.foreign_entry)(folder)
}

/// Whether nothing lies in a folder, or only folders of which that is so.
fn is_empty(folder: &Path) -> bool {
    let empty = |entry: &Entry| entry.is_folder && is_empty(&entry.path);
    entries::list(folder).is_ok_and(|entries| entries.iter().all(empty))
}

/// The target of `target` if it is a link: output goes there, so that all who have the link's target see it.
///
/// # Errors
/// A link that leads nowhere.
pub(super) fn through_links(target: &Path) -> Result<PathBuf> {
    if !target.symlink_metadata().is_ok_and(|there| there.is_symlink()) {
        return Ok(target.to_owned());
    }
    target.canonicalize().map_err(|_| {
        let to = target.read_link().unwrap_or_default();
        Error::new(target, format_args!("is a link to {}, which leads to no file or folder", to.display()))
            .hint("name the place itself, or remove the link")
    })
}
