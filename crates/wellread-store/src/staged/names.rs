//! Names beside a target: of what is written now, and of what is kept to be gone on with.

use super::replace::through_links;
use crate::entries::{PARTIAL, RESUME};
use crate::surface::{option, option_as};
use crate::{Error, Result, place};
use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use wellread_trace::process::process_mark;
use xxhash_rust::xxh3::xxh3_64;

/// Longest name of a target, in bytes, that names beside it have whole. Most file systems allow 255 bytes: what stands before and
/// behind it in these names takes fewer than the others.
const LONGEST: usize = 180;

/// A target's name as names beside it have it. A longer one is cut to its end, which tells the format, behind a number for all of it.
pub(super) fn in_short(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    let number = format!("{:016x}~", xxh3_64(name.as_bytes()));
    let end = &name[name.ceil_char_boundary(name.len() + number.len() - LONGEST)..];
    Cow::Owned(number + end)
}

/// Refuses a target whose name the file system does not take. Output is written under another one before.
///
/// # Errors
/// Such a name.
pub(super) fn check_length(target: &Path) -> Result<()> {
    match target.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::InvalidFilename => {
            Err(Error::io(target, "cannot be written", &e).hint("choose a shorter name"))
        }
        _ => Ok(()),
    }
}

/// The folder with the part of `target` that an interrupted run has left, or that a run is writing. It can be gone on with.
pub fn part(target: &Path) -> Option<PathBuf> {
    let folder = resume_folder(&through_links(target).ok()?);
    place::look_anew(&folder);
    place::exists(&folder).then_some(folder)
}

/// Where a part of `target` is kept when writing is interrupted.
pub(super) fn resume_folder(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{RESUME}{}", in_short(&name)))
}

/// The advice where a name is taken.
pub(super) fn overwrite_hint() -> String {
    format!("choose another name, or replace it: {}", option_as("overwrite", "true"))
}

/// The advice where one file is to be resumed.
pub(super) fn folder_hint() -> String {
    let (resume, format) = (option("resume"), option("format"));
    format!("leave {resume} out, or write a folder of images: a name without an ending, and {format}")
}

/// Counts the names of this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A name beside `target` that no other writer has, and none had. A number of a process is not enough. Another machine or container may
/// have a process of the same number, and so may a killed process of the past.
pub(super) fn partial_name(target: &Path) -> PathBuf {
    let n = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    // Hashers begin with numbers that the system has drawn for this process.
    let drawn = RandomState::new().hash_one((std::process::id(), n, SystemTime::now())) as u32;
    let (mark, name) = (process_mark(std::process::id()), in_short(&name));
    target.with_file_name(format!("{PARTIAL}{mark}-{n}.{drawn:08x}-{name}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, Staged};
    use super::*;

    /// As a killed process of this number has left them: of a container that was started anew, or of another machine.
    #[test]
    fn what_a_process_of_the_same_number_left_is_no_part_of_an_output() {
        let dir = tempfile::tempdir().unwrap();
        let (target, mark) = (dir.path().join("set"), process_mark(std::process::id()));
        let next = COUNTER.load(Ordering::Relaxed);
        for n in next..next + 200 {
            let left = dir.path().join(format!("{PARTIAL}{mark}-{n}-set"));
            std::fs::create_dir(&left).unwrap();
            std::fs::write(left.join("stale.tif"), b"II*\0").unwrap();
        }
        let staged = Staged::new(&target, Existing::Kept).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("new.tif"), b"II*\0").unwrap();
        staged.commit().unwrap();
        let names: Vec<_> =
            std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["new.tif"]);
    }

    #[test]
    fn long_names_are_told_apart_and_keep_their_ending() {
        let names = ["a", "b"].map(|first| format!("{first}{}.ome.tiff", "ä".repeat(100)));
        let short = names.each_ref().map(|name| in_short(name).into_owned());
        assert!(short.iter().all(|name| (LONGEST - 1..=LONGEST).contains(&name.len())), "{short:?}");
        assert!(short.iter().all(|name| name.ends_with("ä.ome.tiff")) && short[0] != short[1], "{short:?}");
        assert_eq!(in_short(&short[0]), short[0].as_str());
    }

    /// A name may be as long as the file system takes.
    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn targets_of_the_longest_names_are_written_replaced_and_gone_on_with() {
        use super::super::{Leftover, LeftoverKind, leftovers, write};
        use crate::entries::OLD;
        let dir = tempfile::tempdir().unwrap();
        for length in [181, 247, 248, 255] {
            let target = dir.path().join(format!("{}.tif", "x".repeat(length - 4)));
            for bytes in [b"old", b"new"] {
                write(&target, bytes).unwrap();
                assert_eq!(std::fs::read(&target).unwrap(), bytes);
            }
            std::fs::remove_file(&target).unwrap();
            for content in ["old", "new"] {
                let staged = Staged::resumable(&target, Existing::Replaced, "a to b").unwrap();
                assert_eq!(part(&target).as_deref(), Some(staged.path()));
                std::fs::write(staged.path().join("a.tif"), content).unwrap();
                staged.commit().unwrap();
                assert_eq!(std::fs::read_to_string(target.join("a.tif")).unwrap(), content);
            }
            std::fs::remove_dir_all(&target).unwrap();
            let short = in_short(target.file_name().unwrap().to_str().unwrap()).into_owned();
            let mark = process_mark(4_294_967_294);
            let [half, aside] =
                ["", OLD].map(|end| dir.path().join(format!("{PARTIAL}{mark}-0-{short}{end}")));
            std::fs::write(&half, b"").unwrap();
            std::fs::write(&aside, b"old").unwrap();
            let kind = LeftoverKind::MovedAside(dir.path().join(&short));
            assert_eq!(leftovers(dir.path()), [Leftover { path: aside.clone(), bytes: 3, kind }]);
            write(&target, b"new").unwrap();
            assert!(!half.exists() && aside.exists(), "the only copy there was");
            assert!(leftovers(dir.path()).is_empty(), "something is in its place");
            write(&target, b"newer").unwrap();
            std::fs::remove_file(&target).unwrap();
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{length}");
        }
        let target = dir.path().join("x".repeat(256));
        for existing in [Existing::Kept, Existing::Replaced] {
            let error = Staged::new(&target, existing).unwrap_err().to_string();
            assert!(error.contains("too long") && error.contains("choose a shorter name"), "{error}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_writers_with_one_mark_and_number_have_two_names() {
        let target = Path::new("set");
        let name = || partial_name(target).to_string_lossy().into_owned();
        let drawn =
            |name: &str| name.split('-').nth(3).and_then(|n| n.split_once('.')).map(|(_, n)| n.to_owned());
        let [one, other] = [name(), name()].map(|name| drawn(&name).unwrap());
        assert_eq!((one.len(), other.len()), (8, 8));
        assert_ne!(one, other);
    }
}
