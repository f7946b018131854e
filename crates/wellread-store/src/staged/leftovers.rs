//! What runs that were killed have left in a folder: found and named. A writer removes what was left of its own target; the rest
//! may be wanted, or be another machine's that writes there, so that the user decides.

use super::remove::remove_any;
use crate::entries::{OLD, PARTIAL, RESUME};
use crate::journal::Journal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long nobody has written to what is named: a process of another machine or container, which is not seen here, may write to it.
const QUIET: Duration = Duration::from_hours(1);

/// What a run has left, which says what can be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// Half of an output, of no use.
    Partial,
    /// Kept to be gone on with, by the same command.
    Resumable,
    /// What was at this place before, moved aside to be replaced: the run ended before anything was put there.
    MovedAside(PathBuf),
}

/// Something that a run has left which ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The file or folder.
    pub path: PathBuf,
    /// Bytes of it, with all that is in it.
    pub bytes: u64,
    /// What it is.
    pub kind: LeftoverKind,
}

/// What lies directly in `folder` of runs that no process seen here goes on with, by name; of outputs those that nobody has written to
/// for an hour. Nothing where that is no folder, or cannot be listed.
pub fn leftovers(folder: &Path) -> Vec<Leftover> {
    found_in(folder, leftover)
}

/// As [`leftovers`], of files and folders that are called otherwise: of a name `process` tells which process made it, if it is of that
/// kind. They are of no use without that process.
pub fn leftovers_of(folder: &Path, process: fn(&str) -> Option<&str>) -> Vec<Leftover> {
    found_in(folder, |path| {
        if !is_gone(process(path.file_name()?.to_str()?)?) {
            return None;
        }
        let (bytes, written) = size(path);
        let leftover = || Leftover { path: path.to_owned(), bytes, kind: LeftoverKind::Partial };
        is_quiet(written).then(leftover)
    })
}

fn found_in(folder: &Path, leftover: impl Fn(&Path) -> Option<Leftover>) -> Vec<Leftover> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut found: Vec<Leftover> = entries.flatten().filter_map(|entry| leftover(&entry.path())).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn leftover(path: &Path) -> Option<Leftover> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with(RESUME) {
        let is_left = path.is_dir() && !Journal::is_busy(path);
        let leftover =
            || Leftover { path: path.to_owned(), bytes: size(path).0, kind: LeftoverKind::Resumable };
        return is_left.then(leftover);
    }
    let (process, of) = written_by(name)?;
    if !is_gone(process) {
        return None;
    }
    let (bytes, written) = size(path);
    let target = of.strip_suffix(OLD).map(|target| path.with_file_name(target));
    let kind = match target.filter(|target| target.symlink_metadata().is_err()) {
        Some(target) => LeftoverKind::MovedAside(target),
        None if !is_quiet(written) => return None,
        None => LeftoverKind::Partial,
    };
    Some(Leftover { path: path.to_owned(), bytes, kind })
}

/// Whether it is an hour since something was written. A time to come is that of another machine, which may be writing.
fn is_quiet(written: SystemTime) -> bool {
    written.elapsed().is_ok_and(|since| since >= QUIET)
}

/// Bytes of a file, or of all files in a folder, and when one of them was last written; what cannot be looked at has none.
fn size(path: &Path) -> (u64, SystemTime) {
    let (mut bytes, mut written) = (0, SystemTime::UNIX_EPOCH);
    let mut places = vec![path.to_owned()];
    while let Some(place) = places.pop() {
        let Ok(meta) = place.symlink_metadata() else { continue };
        written = written.max(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        if meta.is_dir() {
            places.extend(std::fs::read_dir(&place).into_iter().flatten().flatten().map(|e| e.path()));
        } else {
            bytes += meta.len();
        }
    }
    (bytes, written)
}

/// Removes partial outputs of the same target whose writing process no longer lives. What such a process moved aside
/// goes when something is in its place.
pub(super) fn remove_leftovers(parent: &Path, name: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let replaced = parent.join(name).symlink_metadata().is_ok();
    for entry in entries.flatten() {
        let file = entry.file_name();
        let Some((process, of)) = file.to_str().and_then(written_by) else { continue };
        let ours = of == name || replaced && of.strip_suffix(OLD) == Some(name);
        if ours && is_gone(process) {
            remove_any(&entry.path());
        }
    }
}

/// The process in the temporary name of an output, and the name of its target.
fn written_by(file: &str) -> Option<(&str, &str)> {
    let mut parts = file.strip_prefix(PARTIAL)?.splitn(3, '-');
    let (process, _, of) = (parts.next()?, parts.next()?, parts.next()?);
    Some((process, of))
}

/// Whether a process no longer lives; `false` where the system does not say.
fn is_gone(process: &str) -> bool {
    let lives = process.parse::<u32>().is_ok_and(|id| Path::new("/proc").join(id.to_string()).exists());
    !lives && Path::new("/proc/self").exists()
}

#[cfg(test)]
mod tests {
    use super::super::Staged;
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_called_otherwise_is_named_once_its_process_is_gone_and_an_hour_has_passed() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id().to_string();
        let long_ago = SystemTime::now() - 2 * QUIET;
        for name in ["x-4294967294", &format!("x-{own}"), "other-4294967294"] {
            std::fs::write(dir.path().join(name), [0; 3]).unwrap();
        }
        let found = || leftovers_of(dir.path(), |name| name.strip_prefix("x-"));
        assert!(found().is_empty());
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            std::fs::File::open(entry.unwrap().path()).unwrap().set_modified(long_ago).unwrap();
        }
        let path = dir.path().join("x-4294967294");
        assert_eq!(found(), [Leftover { path, bytes: 3, kind: LeftoverKind::Partial }]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_no_process_writes_is_named_with_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let partial = dir.path().join(".wellread-partial-4294967294-0-set");
        std::fs::create_dir_all(partial.join("inner")).unwrap();
        std::fs::write(partial.join("inner/a.tif"), [0; 5]).unwrap();
        std::fs::write(partial.join("b.tif"), [0; 2]).unwrap();
        let resumable = dir.path().join(".wellread-resume-other");
        std::fs::create_dir(&resumable).unwrap();
        std::fs::write(resumable.join("a.tif"), [0; 3]).unwrap();
        // What is being written, and what is none of wellread's.
        let [one, other] = ["one", "two"].map(|name| dir.path().join(name));
        let staged = Staged::new(&one, false).unwrap();
        std::fs::write(staged.path(), b"half").unwrap();
        let busy = Staged::resumable(&other, false, "a to b").unwrap();
        std::fs::write(dir.path().join(".hidden"), b"").unwrap();
        let of = |path: &Path, bytes, kind| Leftover { path: path.to_owned(), bytes, kind };
        let kept = of(&resumable, 3, LeftoverKind::Resumable);
        // Somebody who is not seen here may still write to it.
        assert_eq!(leftovers(dir.path()), std::slice::from_ref(&kept));
        let long_ago = SystemTime::now() - 2 * QUIET;
        for place in
            [partial.join("inner/a.tif"), partial.join("b.tif"), partial.join("inner"), partial.clone()]
        {
            std::fs::File::open(place).unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(leftovers(dir.path()), [of(&partial, 7, LeftoverKind::Partial), kept.clone()]);
        // A set that was moved aside is the only one while nothing is at its place.
        let aside = dir.path().join(".wellread-partial-4294967294-1-plate.old");
        std::fs::write(&aside, [0; 4]).unwrap();
        let plate = dir.path().join("plate");
        let moved = of(&aside, 4, LeftoverKind::MovedAside(plate.clone()));
        assert_eq!(leftovers(dir.path()), [of(&partial, 7, LeftoverKind::Partial), moved, kept.clone()]);
        std::fs::write(&plate, b"new").unwrap();
        std::fs::File::open(&aside).unwrap().set_modified(long_ago).unwrap();
        let old = of(&aside, 4, LeftoverKind::Partial);
        assert_eq!(leftovers(dir.path()), [of(&partial, 7, LeftoverKind::Partial), old, kept]);
        drop((staged, busy));
        assert!(leftovers(&dir.path().join("none")).is_empty());
    }
}
