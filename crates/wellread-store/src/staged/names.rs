//! Names beside a target: of what is written now, and of what is kept to be gone on with.

use super::replace::through_links;
use crate::entries::{PARTIAL, RESUME};
use crate::place;
use crate::surface::option_as;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use wellread_trace::process::process_mark;

/// The folder with the part of `target` that an interrupted run has left, or that a run is writing. It can be gone on with.
pub fn part(target: &Path) -> Option<PathBuf> {
    let folder = resume_folder(&through_links(target).ok()?);
    place::look_anew(&folder);
    place::exists(&folder).then_some(folder)
}

/// Where a part of `target` is kept when writing is interrupted.
pub(super) fn resume_folder(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{RESUME}{name}"))
}

/// The advice where a name is taken.
pub(super) fn overwrite_hint() -> String {
    format!("choose another name, or replace it: {}", option_as("overwrite", "true"))
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
    target.with_file_name(format!("{PARTIAL}{}-{n}.{drawn:08x}-{name}", process_mark(std::process::id())))
}

#[cfg(test)]
mod tests {
    use super::super::Staged;
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
        let staged = Staged::new(&target, false).unwrap();
        std::fs::write(staged.create_dir().unwrap().join("new.tif"), b"II*\0").unwrap();
        staged.commit().unwrap();
        let names: Vec<_> =
            std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["new.tif"]);
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
