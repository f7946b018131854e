//! Cold and warm files: the part of them that is in the kernel's page cache, and ways to change that.
//!
//! A file read a second time comes from memory, so a benchmark must say which it measured. [`drop_pages`] asks
//! the kernel to forget a file's pages (`posix_fadvise` with `DONTNEED`, which needs no privilege and touches
//! no other file). It then *counts* with `mincore` the pages that are still there: [`DropReport::complete`] is
//! a fact, not a hope. Only where pages stay are they written out, and asked for once more: of a file that was
//! only read, none is dirty. [`warm`] reads files into the cache.
//!
//! Some caches are out of reach. Names and inodes of the files stay cached, as do caches inside the disk or
//! the host of a virtual machine.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sys;

/// How much of some files is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of them in the page cache (whole pages, the last one cut at the file's end).
    pub resident_bytes: u64,
}

impl Residency {
    /// Share in memory, 0 to 1; of empty files 1.
    pub fn fraction(&self) -> f64 {
        if self.bytes == 0 { 1.0 } else { self.resident_bytes as f64 / self.bytes as f64 }
    }

    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.resident_bytes += other.resident_bytes;
    }
}

/// The result of dropping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropReport {
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes in the page cache before; `None` when the system does not tell.
    pub resident_before: Option<u64>,
    /// Bytes in the page cache after; `None` when the system does not tell.
    pub resident_after: Option<u64>,
    /// Whether it was verified that nothing is left: only then may a run be called cold.
    pub complete: bool,
    /// Why it is not complete.
    pub reason: Option<String>,
}

/// Every file at or below the paths, folders searched recursively, links followed, each file once.
///
/// # Errors
/// When a path does not exist or a folder cannot be read.
pub fn files_under<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>> {
    let mut search = Search::default();
    paths.iter().try_for_each(|path| search.below(path.as_ref()))?;
    Ok(search.files)
}

/// A search for files that may begin at several paths.
#[derive(Default)]
struct Search {
    files: Vec<PathBuf>,
    /// Real paths, so that links neither count a file twice nor lead in circles.
    seen: HashSet<PathBuf>,
}

impl Search {
    fn below(&mut self, path: &Path) -> Result<()> {
        let mut todo = vec![path.to_path_buf()];
        while let Some(path) = todo.pop() {
            let real = fs::canonicalize(&path).map_err(Error::io("find", &path))?;
            let kind = fs::metadata(&real).map_err(Error::io("look at", &path))?;
            if !self.seen.insert(real) {
                continue;
            }
            if kind.is_file() {
                self.files.push(path);
            } else if kind.is_dir() {
                let mut entries = Vec::new();
                for entry in fs::read_dir(&path).map_err(Error::io("list", &path))? {
                    let entry = entry.map_err(Error::io("list", &path))?.path();
                    // A link to nothing inside a folder is not the caller's request, and holds no pages.
                    if fs::metadata(&entry).is_ok() {
                        entries.push(entry);
                    }
                }
                // Last first: the list is worked off from its end.
                entries.sort_unstable_by(|a, b| b.cmp(a));
                todo.append(&mut entries);
            }
        }
        Ok(())
    }
}

/// How much of the files, folders searched recursively, is in the page cache.
///
/// # Errors
/// When a file cannot be opened, or the system does not tell (other than Linux; files that one neither owns
/// nor may write).
pub fn residency<P: AsRef<Path>>(paths: &[P]) -> Result<Residency> {
    let mut sum = Residency::default();
    for path in files_under(paths)? {
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        sum.add(residency_of(&file, &path)?);
    }
    Ok(sum)
}

/// Drops the pages of the files, folders searched recursively, and verifies it. Never fails: the fault is in
/// [`DropReport::reason`], and the remaining files are dropped nevertheless.
pub fn drop_pages<P: AsRef<Path>>(paths: &[P]) -> DropReport {
    let mut problems: Vec<String> = Vec::new();
    let mut search = Search::default();
    for path in paths {
        problems.extend(search.below(path.as_ref()).err().map(|error| error.to_string()));
    }
    let (mut before, mut after) = (Residency::default(), Residency::default());
    let mut seen = true;
    for path in &search.files {
        match drop_file(path) {
            Ok(dropped) => {
                before.add(dropped.before);
                after.add(dropped.after);
                if let Some(problem) = dropped.problem {
                    seen &= dropped.verified;
                    problems.push(problem);
                }
            }
            Err(error) => {
                seen = false;
                before.files += 1;
                before.bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
                problems.push(error.to_string());
            }
        }
    }
    let reason = match problems.len() {
        0 => None,
        1 => problems.pop(),
        more => Some(format!("{} (and {} more)", problems[0], more - 1)),
    };
    DropReport {
        files: before.files,
        bytes: before.bytes,
        resident_before: seen.then_some(before.resident_bytes),
        resident_after: seen.then_some(after.resident_bytes),
        complete: reason.is_none(),
        reason,
    }
}

/// Reads the files, folders searched recursively, so that they are in the page cache; gives the bytes read.
///
/// # Errors
/// When a file cannot be read.
pub fn warm<P: AsRef<Path>>(paths: &[P]) -> Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    for path in files_under(paths)? {
        let mut file = File::open(&path).map_err(Error::io("open", &path))?;
        loop {
            match file.read(&mut buffer).map_err(Error::io("read", &path))? {
                0 => break,
                read => bytes += read as u64,
            }
        }
    }
    Ok(bytes)
}

/// Reads the files, folders searched recursively, past the page cache (`O_DIRECT`). That is the speed of the disk
/// itself, whether pages are cached or not, and pushes nothing out of the cache. Gives the bytes read.
///
/// # Errors
/// When a file cannot be read so: file systems in memory and some of networks have no direct reading.
pub fn read_direct<P: AsRef<Path>>(paths: &[P]) -> Result<u64> {
    // The kernel takes whole sectors to aligned addresses; pages are multiples of every sector's size.
    const BLOCK: usize = 4 << 20;
    let page = usize::try_from(sys::page_size()).unwrap_or(4096);
    let mut memory = vec![0; BLOCK + page];
    let aligned = memory.as_ptr().align_offset(page);
    let block = &mut memory[aligned..aligned + BLOCK];
    let mut bytes = 0;
    for path in files_under(paths)? {
        let mut file = sys::open_direct(&path).map_err(Error::io("open for direct reading", &path))?;
        loop {
            let read = file.read(block).map_err(Error::io("read directly", &path))?;
            bytes += read as u64;
            // Only the end of a file gives fewer, and there the position is no multiple of a sector any more.
            if read < BLOCK {
                break;
            }
        }
    }
    Ok(bytes)
}

struct Dropped {
    before: Residency,
    after: Residency,
    verified: bool,
    problem: Option<String>,
}

/// Dropping is a request: pages that another CPU holds in a batch for a moment are skipped, so ask again. The first time
/// nothing is written out before.
const ATTEMPTS: u32 = 5;

/// Asks for a file's pages to be dropped until none is left. Only clean pages can be forgotten: pages that stay the
/// first time are written out before the next one. An inner error is that the pages cannot be counted: they are written
/// out and asked for once more all the same.
fn evict_file_pages(
    attempts: u32,
    mut ask: impl FnMut() -> Result<Result<Residency>>,
    mut write_out: impl FnMut() -> Result<()>,
) -> Result<Result<Residency>> {
    let mut left = ask()?;
    for attempt in 1..attempts {
        if left.as_ref().is_ok_and(|left| left.resident_bytes == 0) {
            break;
        }
        if attempt > 1 {
            std::thread::sleep(std::time::Duration::from_millis(1 << (attempt - 1)));
        }
        write_out()?;
        left = ask()?;
        if left.is_err() {
            break;
        }
    }
    Ok(left)
}

fn drop_file(path: &Path) -> Result<Dropped> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let unknown = Residency {
        files: 1,
        bytes: file.metadata().map_or(0, |metadata| metadata.len()),
        resident_bytes: 0,
    };
    let before = residency_of(&file, path);
    // Nothing can be dropped of a file that is nowhere else: waiting would not help.
    let attempts = if sys::lives_in_memory(path) { 1 } else { ATTEMPTS };
    let ask = || -> Result<Result<Residency>> {
        sys::advise_dont_need(&file).map_err(Error::io("drop the cached pages of", path))?;
        Ok(residency_of(&file, path))
    };
    let after = evict_file_pages(attempts, ask, || file.sync_all().map_err(Error::io("write out", path)))?;
    Ok(match (before, after) {
        (Ok(before), Ok(after)) => {
            let problem = (after.resident_bytes > 0).then(|| {
                let why = if sys::lives_in_memory(path) {
                    "its filesystem keeps files in memory"
                } else {
                    "another process has it mapped or is reading it"
                };
                format!(
                    "{} of {} bytes of {} stay cached: {why}",
                    after.resident_bytes,
                    after.bytes,
                    path.display()
                )
            });
            Dropped { before, after, verified: true, problem }
        }
        (Err(error), _) | (_, Err(error)) => Dropped {
            before: unknown,
            after: unknown,
            verified: false,
            problem: Some(format!("dropped, but not verified: {error}")),
        },
    })
}

/// Pages asked about in one call: 256 MiB of file for 64 KiB of answers.
const WINDOW_PAGES: usize = 1 << 16;

fn residency_of(file: &File, path: &Path) -> Result<Residency> {
    let bytes = file.metadata().map_err(Error::io("look at", path))?.len();
    let Some(map) = sys::map(file).map_err(Error::io("map", path))? else {
        return Ok(Residency { files: 1, bytes: 0, resident_bytes: 0 });
    };
    if !sys::may_see_residency(file, path) {
        return Err(Error::Unsupported {
            what: "page cache residency",
            reason: format!(
                "the kernel shows it only to the owner of {} or those who may write it",
                path.display()
            ),
        });
    }
    let page = sys::page_size();
    let mut resident_bytes = 0;
    let mut answers = vec![0; WINDOW_PAGES.min(map.len().div_ceil(page as usize))];
    let mut offset = 0;
    while offset < map.len() {
        let pages = (map.len() - offset).div_ceil(page as usize).min(answers.len());
        sys::resident_pages(&map, offset, &mut answers[..pages]).map_err(|error| {
            if sys::is_unsupported(&error) {
                Error::Unsupported { what: "page cache residency", reason: error.to_string() }
            } else {
                Error::io("ask for the cached pages of", path)(error)
            }
        })?;
        for (i, answer) in answers[..pages].iter().enumerate() {
            if answer & 1 == 1 {
                let begin = offset as u64 + i as u64 * page;
                resident_bytes += page.min(map.len() as u64 - begin);
            }
        }
        offset += pages * page as usize;
    }
    Ok(Residency { files: 1, bytes, resident_bytes })
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
