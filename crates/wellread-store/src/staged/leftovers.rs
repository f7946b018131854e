//! Finds and names output that killed runs have left in a folder. A writer removes output of its own target by
//! processes that have ended. The user decides on the rest: it may be needed, or another machine or container may be
//! writing it.

use super::names::in_short;
use super::remove::remove_any;
use crate::entries::{OLD, PARTIAL, RESUME};
use crate::journal::Journal;
use crate::place;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wellread_trace::process::{ProcessState, state_of_id, state_of_mark};

/// How long nobody has written to what is named: a process that is not seen here may write to it.
const MIN_IDLE_TIME: Duration = Duration::from_hours(1);

/// The kind of left output, which decides what can be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// Half of an output, of no use.
    Partial,
    /// Half of an output, of a process on another machine, in another container or before the machine was started anew. Whether it
    /// still writes cannot be told here.
    Unseen,
    /// Kept to be gone on with, by the same command.
    Resumable,
    /// The former entry at this place, moved aside to be replaced: the run ended before it put anything there.
    MovedAside(PathBuf),
}

/// Something that a run has left which ended before it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The file or folder.
    pub path: PathBuf,
    /// Bytes of it, with all that is in it.
    pub bytes: u64,
    /// Its kind.
    pub kind: LeftoverKind,
}

/// Output that lies directly in `folder` from runs that no process seen here goes on with, by name. Among outputs, it is
/// those that nobody has written to for an hour. Nothing where that is no folder, or cannot be listed.
pub fn leftovers(folder: &Path) -> Vec<Leftover> {
    found_in(folder, |path| leftover(path, None))
}

/// As [`leftovers`], for the folder that `target` lies in. It also has what a process elsewhere may be writing to the target itself
/// now, which no writer of the same target removes.
pub fn leftovers_beside(target: &Path) -> Vec<Leftover> {
    let name = target.file_name().and_then(|name| name.to_str()).map(in_short);
    target.parent().map_or_else(Vec::new, |folder| found_in(folder, |path| leftover(path, name.as_deref())))
}

/// As [`leftovers`], of files and folders that are called otherwise: of a name `process` tells which process made it, if it is of that
/// kind. They are of no use without that process.
pub fn leftovers_of(folder: &Path, process: fn(&str) -> Option<&str>) -> Vec<Leftover> {
    found_in(folder, |path| {
        if state_of_id(process(path.file_name()?.to_str()?)?) != ProcessState::Ended {
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

fn leftover(path: &Path, wanted: Option<&str>) -> Option<Leftover> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with(RESUME) {
        let is_left = path.is_dir() && !Journal::is_busy(path);
        let leftover =
            || Leftover { path: path.to_owned(), bytes: size(path).0, kind: LeftoverKind::Resumable };
        return is_left.then(leftover);
    }
    let (process, of) = written_by(name)?;
    let kind = match state_of_mark(process) {
        ProcessState::Running => return None,
        ProcessState::Ended => LeftoverKind::Partial,
        ProcessState::Unknown => LeftoverKind::Unseen,
    };
    let (bytes, written) = size(path);
    let is_named = is_quiet(written) || kind == LeftoverKind::Unseen && wanted == Some(of);
    let target = of.strip_suffix(OLD).map(|target| target_of(path, target));
    let kind = match target.filter(|target| target.symlink_metadata().is_err()) {
        Some(target) => LeftoverKind::MovedAside(target),
        None if !is_named => return None,
        None => kind,
    };
    Some(Leftover { path: path.to_owned(), bytes, kind })
}

/// The target beside `path` that is called `short` in names of its output; the path of this name where there is none.
fn target_of(path: &Path, short: &str) -> PathBuf {
    let place = path.with_file_name(short);
    if place.symlink_metadata().is_ok() {
        return place;
    }
    let is_it = |other: &Path| {
        other.file_name().and_then(|name| name.to_str()).map(in_short).as_deref() == Some(short)
    };
    let beside = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
    beside.flatten().map(|entry| entry.path()).find(|other| is_it(other)).unwrap_or(place)
}

/// Whether it is an hour since something was written. A time to come is that of another machine, which may be writing.
fn is_quiet(written: SystemTime) -> bool {
    written.elapsed().is_ok_and(|since| since >= MIN_IDLE_TIME)
}

/// Bytes of a file, or of all files in a folder, and when one of them was last written. A file that cannot be looked at
/// has none.
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

/// Removes partial outputs of the same target whose writing process is known to have ended. Output that such a process
/// moved aside is removed when something is in its place.
pub(super) fn remove_leftovers(parent: &Path, name: &str) {
    let Ok(entries) = place::list(parent) else { return };
    let replaced = parent.join(name).symlink_metadata().is_ok();
    let name = &*in_short(name);
    for entry in entries.flatten() {
        let file = entry.name();
        let Some((process, of)) = file.to_str().and_then(written_by) else { continue };
        let ours = of == name || replaced && of.strip_suffix(OLD) == Some(name);
        if ours && state_of_mark(process) == ProcessState::Ended {
            remove_any(&parent.join(&file));
        }
    }
}

/// The mark of the process in the temporary name of an output, and the name of its target.
fn written_by(file: &str) -> Option<(&str, &str)> {
    let mut parts = file.strip_prefix(PARTIAL)?.splitn(3, '-');
    let (process, _, of) = (parts.next()?, parts.next()?, parts.next()?);
    Some((process, of))
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, Staged, process_mark};
    use super::*;

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn what_is_called_otherwise_is_named_once_its_process_is_gone_and_an_hour_has_passed() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id().to_string();
        let long_ago = SystemTime::now() - 2 * MIN_IDLE_TIME;
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
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn what_no_process_writes_is_named_with_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let gone = process_mark(4_294_967_294);
        let partial = dir.path().join(format!(".wellread-partial-{gone}-0-set"));
        std::fs::create_dir_all(partial.join("inner")).unwrap();
        std::fs::write(partial.join("inner/a.tif"), [0; 5]).unwrap();
        std::fs::write(partial.join("b.tif"), [0; 2]).unwrap();
        let resumable = dir.path().join(".wellread-resume-other");
        std::fs::create_dir(&resumable).unwrap();
        std::fs::write(resumable.join("a.tif"), [0; 3]).unwrap();
        // Output that is being written, and files that are not wellread's.
        let [one, other] = ["one", "two"].map(|name| dir.path().join(name));
        let staged = Staged::new(&one, Existing::Kept).unwrap();
        std::fs::write(staged.path(), b"half").unwrap();
        let busy = Staged::resumable(&other, Existing::Kept, "a to b").unwrap();
        std::fs::write(dir.path().join(".hidden"), b"").unwrap();
        let of = |path: &Path, bytes, kind| Leftover { path: path.to_owned(), bytes, kind };
        let kept = of(&resumable, 3, LeftoverKind::Resumable);
        // Somebody who is not seen here may still write to it.
        assert_eq!(leftovers(dir.path()), std::slice::from_ref(&kept));
        let long_ago = SystemTime::now() - 2 * MIN_IDLE_TIME;
        for place in
            [partial.join("inner/a.tif"), partial.join("b.tif"), partial.join("inner"), partial.clone()]
        {
            std::fs::File::open(place).unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(leftovers(dir.path()), [of(&partial, 7, LeftoverKind::Partial), kept.clone()]);
        // A set that was moved aside is the only one while nothing is at its place.
        let aside = dir.path().join(format!(".wellread-partial-{gone}-1-plate.old"));
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

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn what_a_process_elsewhere_writes_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        // From another container, from a release whose names had no place, and from a process here that has
        // ended.
        let mut places = ["4294967294.none", "4294967294"]
            .map(|mark| dir.path().join(format!(".wellread-partial-{mark}-0-set")))
            .to_vec();
        places.sort();
        let gone = dir.path().join(format!(".wellread-partial-{}-0-set", process_mark(4_294_967_294)));
        for place in places.iter().chain([&gone]) {
            std::fs::write(place, [0; 6]).unwrap();
        }
        drop(Staged::new(&target, Existing::Kept).unwrap());
        assert!(places.iter().all(|place| place.exists()) && !gone.exists());
        let of = |path: &PathBuf| Leftover { path: path.clone(), bytes: 6, kind: LeftoverKind::Unseen };
        let both: Vec<Leftover> = places.iter().map(of).collect();
        assert_eq!(leftovers_beside(&target), both);
        // Somebody may be writing another target; this one ignores it.
        assert!(leftovers(dir.path()).is_empty() && leftovers_beside(&dir.path().join("other")).is_empty());
        for place in &places {
            let long_ago = SystemTime::now() - 2 * MIN_IDLE_TIME;
            std::fs::File::open(place).unwrap().set_modified(long_ago).unwrap();
        }
        assert_eq!(leftovers(dir.path()), both);
        super::super::write(&target, b"whole").unwrap();
        assert!(places.iter().all(|place| place.exists()));
    }

    /// Its process may still write it.
    #[test]
    #[cfg(any(not(target_os = "linux"), feature = "portable"))]
    fn where_processes_are_not_listed_unfinished_output_is_named_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("set");
        let left = dir.path().join(format!(".wellread-partial-{}-0-set", process_mark(4_294_967_294)));
        std::fs::write(&left, [0; 6]).unwrap();
        drop(Staged::new(&target, Existing::Kept).unwrap());
        let named = || [Leftover { path: left.clone(), bytes: 6, kind: LeftoverKind::Unseen }];
        assert_eq!(leftovers_beside(&target), named());
        assert!(leftovers(dir.path()).is_empty());
        let long_ago = SystemTime::now() - 2 * MIN_IDLE_TIME;
        std::fs::File::open(&left).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(leftovers(dir.path()), named());
        super::super::write(&target, b"whole").unwrap();
        assert!(left.exists());
        let own = leftovers_of(dir.path(), |_| Some("4294967294"));
        assert!(own.is_empty(), "{own:?}");
    }
}
