//! Cache files as such: found, made while other processes do the same, removed when their set has changed. `mapped` has
//! what is in them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use wellread_store::staged::{Leftover, leftovers_of};

const MAGIC: &[u8; 16] = b"wellread pixels\x02";
const ROWS_OFFSET: usize = 16;
pub(super) const ENTRIES_OFFSET: usize = 64;
pub(super) const ENTRY_BYTES: usize = 24;
const PAGE: usize = 4096;

/// Where data begin.
pub(super) fn data_offset(rows: usize) -> u64 {
    (ENTRIES_OFFSET + rows * ENTRY_BYTES).next_multiple_of(PAGE) as u64
}

/// A cache file for so many rows; `None` where the file is not there or not one.
pub(super) fn opened(path: &Path, rows: usize) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let mut head = [0; ENTRIES_OFFSET];
    (&file).read_exact(&mut head).ok()?;
    let stored = u64::from_ne_bytes(head[ROWS_OFFSET..ROWS_OFFSET + 8].try_into().ok()?);
    let is_one = &head[..16] == MAGIC && stored == rows as u64;
    (is_one && file.metadata().ok()?.len() >= data_offset(rows)).then_some(file)
}

/// A new file, and where it is while a cache file is made. Other threads have files of their own, and so have processes of
/// the same number in other containers.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0;
    loop {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(format!("{stem}-{number:x}.{}.new", std::process::id()));
        match File::create_new(&beside) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|file| (beside, file)),
        }
    }
}

/// Makes an empty cache file beside and puts it in place, unless another process was first: that may be in use already.
pub(super) fn make(path: &Path, rows: usize) -> io::Result<()> {
    let (beside, mut file) = create_beside(path)?;
    let mut write = || {
        let mut head = [0; ENTRIES_OFFSET];
        head[..16].copy_from_slice(MAGIC);
        head[ROWS_OFFSET..ROWS_OFFSET + 8].copy_from_slice(&(rows as u64).to_ne_bytes());
        file.write_all(&head)?;
        // Written, not only declared: a map of blocks that do not exist yet is a signal on a full disk.
        let zeros = data_offset(rows) - ENTRIES_OFFSET as u64;
        io::copy(&mut io::Read::take(io::repeat(0), zeros), &mut file)?;
        match std::fs::hard_link(&beside, path) {
            Err(_) if opened(path, rows).is_none() => std::fs::rename(&beside, path),
            _ => Ok(()),
        }
    };
    let result = write();
    let _ = std::fs::remove_file(&beside);
    result
}

/// Removes cache files whose names begin with `set` but the one at `path`, which another process may just have made.
pub(super) fn remove_others(folder: &Path, set: &str, path: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_of_set =
            name.strip_prefix(set).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".pixels"));
        if is_of_set && entry.path() != path {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Cache files that killed processes left half-written, in `folder` or in the user's cache folder; those only that nobody has written to
/// for an hour.
pub fn leftovers(folder: Option<&Path>) -> Vec<Leftover> {
    let folder = folder.map(Path::to_owned).or_else(default_folder);
    folder.map_or_else(Vec::new, |folder| leftovers_of(&folder, writer_process))
}

/// The process in the name of a half-written cache file, which [`create_beside`] gives it: `SET-STATE-NUMBER.PROCESS.new`.
/// Those of earlier versions have no number.
fn writer_process(name: &str) -> Option<&str> {
    let (cache, process) = name.strip_suffix(".new")?.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    (cache.contains('-') && cache.split('-').all(is_number)).then_some(process)
}

/// `$XDG_CACHE_HOME/wellread/pixels`, or `~/.cache/…`.
pub(super) fn default_folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("wellread/pixels"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_written_cache_files_tell_their_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0f3a-77b1.pixels");
        let own = std::process::id().to_string();
        let [first, second] = [0, 1].map(|_| create_beside(&path).unwrap().0);
        assert_ne!(first, second, "threads do not write to the same file");
        for beside in [first, second] {
            assert_eq!(writer_process(beside.file_name().unwrap().to_str().unwrap()), Some(own.as_str()));
        }
        assert_eq!(writer_process("0f3a-77b1.12.new"), Some("12"), "of an earlier version");
        for name in ["0f3a-77b1.pixels", "0f3a-77b1.new", "notes-2.12.new", "0f3a.12.new"] {
            assert_eq!(writer_process(name), None, "{name}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", not(feature = "portable")))]
    fn half_written_cache_files_of_killed_processes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0f3a-77b1.4294967294.new");
        std::fs::write(&path, [0; 7]).unwrap();
        assert!(leftovers(Some(folder.path())).is_empty(), "somebody may be writing to it");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
        File::open(&path).unwrap().set_modified(long_ago).unwrap();
        let found = leftovers(Some(folder.path()));
        assert_eq!(found.iter().map(|one| (&one.path, one.bytes)).collect::<Vec<_>>(), [(&path, 7)]);
    }

    /// Processes that begin together look for the file before one of them has made it.
    #[test]
    fn a_file_that_another_process_has_just_made_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [path, before, of_other] =
            ["0f3a-77b1.pixels", "0f3a-66a0.pixels", "0f3b-66a0.pixels"].map(|name| folder.path().join(name));
        std::fs::write(&of_other, "").unwrap();
        std::fs::write(&before, "").unwrap();
        let entries = |path: &Path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.drain(..ENTRIES_OFFSET);
            bytes
        };
        // Another file is replaced.
        std::fs::write(&path, "other").unwrap();
        make(&path, 3).unwrap();
        assert!(entries(&path).iter().all(|&byte| byte == 0));
        let mut written = std::fs::read(&path).unwrap();
        written[ENTRIES_OFFSET] = 7;
        std::fs::write(&path, &written).unwrap();
        remove_others(folder.path(), "0f3a", &path);
        make(&path, 3).unwrap();
        assert_eq!(entries(&path)[0], 7, "it is in use already");
        assert!(of_other.exists() && !before.exists());
        make(&path, 4).unwrap();
        assert_eq!(entries(&path)[0], 0, "of other rows");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside");
    }
}
