//! What output may take the place of: files, empty folders, and folders that hold a set of images and nothing else.
//!
//! ```text
//!  target ──Probe──▶ the format that recognises it ──▶ does each entry belong to a set of that format?
//! ```

use super::remove::LOOKS;
use crate::format::formats;
use crate::probe::Probe;
use crate::{Error, Result};
use std::fs::FileType;
use std::path::Path;
use std::time::Duration;

/// Whether what is at `target`, if anything, may be replaced on request.
pub(super) fn may_be_replaced(target: &Path) -> Result<()> {
    let look = || target.symlink_metadata().map_or(Ok(()), |there| is_replaceable(target, there.file_type()));
    // What is refused may be half of one set and half of another that other processes put there: it is looked at again.
    for _ in 0..LOOKS {
        if look().is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    look()
}

fn is_replaceable(target: &Path, there: FileType) -> Result<()> {
    if there.is_file() || there.is_symlink() {
        return Ok(());
    }
    if !there.is_dir() {
        return Err(Error::new(target, "is neither a file nor a folder and is not replaced"));
    }
    let foreign = foreign_entry(target)?;
    match foreign {
        None => Ok(()),
        Some(entry) => Err(Error::new(
            target,
            format_args!("is a folder that holds more than a set of images ({entry}) and is not replaced"),
        )
        .hint("choose another name, or remove the folder yourself")),
    }
}

/// Something in a folder that does not look like a part of a set of images; `None` for an empty folder.
fn foreign_entry(folder: &Path) -> Result<Option<String>> {
    // Far below a folder of other things there may be an image: that does not make a set of it that may go.
    let probe = Probe { levels: 1, ..Probe::new(folder)? };
    let format = formats().iter().find(|f| (f.recognise)(&probe));
    let belongs = |name: &str| {
        format.is_some_and(|format| {
            format.has_ending(name)
                || format.parts.contains(&name)
                || Path::new(name).extension().is_some_and(|e| e == "json")
                || folder.join(name).is_dir()
                || name.starts_with('.')
        })
    };
    Ok(probe.entries.iter().find(|name| !belongs(name)).cloned())
}
