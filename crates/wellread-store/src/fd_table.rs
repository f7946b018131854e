//! The process's table of file descriptors: how many files are kept open, and room for them before they are opened.
//!
//! Linux makes the table larger when it is full, at 64, 256, 512, 1,024 files and so on. With several threads, it waits
//! each time 10 to 20 ms until no processor looks at the old one (`expand_fdtable`). Three quarters of a first epoch of
//! a thousand small files went by like that. [`reserve_descriptors`] makes it large enough once, before there are
//! threads or beside them.
//!
//! The number of files that a process may have open is a soft limit (`ulimit -n`, often 1,024). It may raise the
//! limit itself up to a hard one. A set of a few thousand tables, each of which stays open, needs that.

/// Share of the files a process may have open that are kept.
const KEPT_SHARE: usize = 4;
/// Most files that are kept, whatever the process may have.
const MAX_KEPT_FILES: usize = 1 << 16;
/// Files that the process may have open, up to which its soft limit is raised: as many as there is a use for.
#[cfg(unix)]
const ENOUGH_FILES: libc::rlim_t = (MAX_KEPT_FILES * KEPT_SHARE) as libc::rlim_t;

/// Raises the number of files that the process may have open, as far as it may. Once, it also makes its table of open
/// files large enough for all of them. It does so at once where there is no other thread to wait for, else in a thread that waits.
/// To be called before opening a set of many files, and before starting threads.
pub fn reserve_descriptors() {
    #[cfg(unix)]
    raise_limit();
    table::make_room(max_kept_files());
}

/// How many files are kept at most: a share of those that the process may have open (`ulimit -n`).
pub(crate) fn max_kept_files() -> usize {
    (max_open_files() / KEPT_SHARE).min(MAX_KEPT_FILES)
}

#[cfg(unix)]
fn max_open_files() -> usize {
    limit().map_or(0, |limit| usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

/// The soft and the hard limit on open files, where they are known.
#[cfg(unix)]
fn limit() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes of an rlimit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    known.then_some(limit)
}

/// Raises the soft limit on open files to the hard one, or to what is enough. Where the system allows less than the hard limit says, as
/// macOS does, it tries the half of it and so on. Where it allows nothing, the limit stays.
#[cfg(unix)]
fn raise_limit() {
    let Some(now) = limit() else { return };
    let mut most = now.rlim_max.min(ENOUGH_FILES);
    while most > now.rlim_cur {
        let raised = libc::rlimit { rlim_cur: most, rlim_max: now.rlim_max };
        // SAFETY: `raised` is valid for reads of an rlimit.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return;
        }
        most /= 2;
    }
}

/// Open files cannot be moved or removed there: none is kept.
#[cfg(not(unix))]
fn max_open_files() -> usize {
    0
}

/// The table of this process's open files.
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod table {
    use std::fs::{self, File};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The process whose table is large enough: a forked one has a table of its own, as large as it needs to be.
    static LARGE_ENOUGH: AtomicU32 = AtomicU32::new(0);

    /// Makes the table large enough for `files` files, once in a process. It does so at once where there is no other thread to wait for,
    /// else by a thread that waits.
    pub(super) fn make_room(files: usize) {
        let process = std::process::id();
        if LARGE_ENOUGH.swap(process, Ordering::Relaxed) == process {
            return;
        }
        let Ok(threads) = fs::read_dir("/proc/self/task") else { return };
        if threads.count() == 1 {
            enlarge(files);
        } else {
            // Without it all is read as well, later.
            let thread = std::thread::Builder::new().name("wellread-files".to_owned());
            drop(thread.spawn(move || enlarge(files)));
        }
    }

    /// Opens a file under the number `files`, and closes it.
    fn enlarge(files: usize) {
        let (Ok(any), Ok(number)) = (File::open("/dev/null"), libc::c_int::try_from(files)) else { return };
        // SAFETY: the file is open; a number comes back, or -1.
        let copy = unsafe { libc::fcntl(any.as_raw_fd(), libc::F_DUPFD_CLOEXEC, number) };
        if copy >= 0 {
            // SAFETY: nobody else has this file.
            drop(unsafe { OwnedFd::from_raw_fd(copy) });
        }
    }
}

/// Elsewhere no such wait is known.
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod table {
    pub(super) fn make_room(_: usize) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_a_share_of_the_files_it_may_have() {
        assert!(max_kept_files() <= MAX_KEPT_FILES && max_kept_files() <= max_open_files() / KEPT_SHARE);
    }

    #[test]
    fn the_soft_limit_on_open_files_is_raised() {
        reserve_descriptors();
        let limit = limit().unwrap();
        assert!(
            limit.rlim_cur >= limit.rlim_max.min(ENOUGH_FILES),
            "{} of {}",
            limit.rlim_cur,
            limit.rlim_max
        );
    }

    #[cfg(not(feature = "portable"))]
    #[test]
    fn the_table_of_open_files_is_made_large_enough_once() {
        let size = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
            line.trim().parse().unwrap()
        };
        reserve_descriptors();
        // A thread does it, since tests are run by several.
        for _ in 0..6000 {
            if size() > max_kept_files() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("a table of {} files, of {} that may be kept", size(), max_kept_files());
    }
}
