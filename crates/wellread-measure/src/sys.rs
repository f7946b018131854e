//! The few operating-system calls that the standard library does not offer. All `unsafe` of the crate but the
//! mapping of files lives here; systems without a call get an error that says so.

use std::fs::File;
use std::io;
use std::path::Path;

/// The fields of `statfs` for the filesystem under a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilesystemStat {
    /// The filesystem's type, `f_type` of `statfs`.
    pub magic: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes an unprivileged user may still write.
    pub free_bytes: u64,
}

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod os {
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::FilesystemStat;

    /// Where `/proc`, `/sys` and `/etc` are found.
    pub(crate) const ROOT: &str = "/";

    /// The content of a file of `/proc`, such as `self/status`.
    pub(crate) fn proc_file(name: &str) -> io::Result<Vec<u8>> {
        fs::read(Path::new("/proc").join(name))
    }

    /// The numbers of all processes.
    pub(crate) fn processes() -> io::Result<Vec<u32>> {
        let entries = fs::read_dir("/proc")?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
    }

    /// Sets the high-water mark of this process's resident set back to what is resident now (proc_pid_clear_refs(5), Linux 4.0).
    pub(crate) fn reset_high_water_mark() -> io::Result<()> {
        fs::write("/proc/self/clear_refs", "5")
    }

    /// Has the kernel end this process before any other when memory runs out. Where it does not, it does not.
    pub(crate) fn prefer_as_oom_victim(pid: u32) {
        let _ = fs::write(format!("/proc/{pid}/oom_score_adj"), "1000");
    }

    pub(crate) fn page_size() -> u64 {
        // SAFETY: sysconf has no preconditions.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(size).unwrap_or(4096)
    }

    /// Asks the kernel to forget a file's clean pages.
    pub(crate) fn advise_dont_need(file: &File) -> io::Result<()> {
        // SAFETY: the descriptor is open for the duration of the call; length 0 means to the end.
        let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }

    /// For each page of the mapping at `offset`, whether it is in memory; offset a multiple of the page size.
    pub(crate) fn resident_pages(map: &memmap2::Mmap, offset: usize, pages: &mut [u8]) -> io::Result<()> {
        let page = page_size() as usize;
        let length = (map.len() - offset).min(pages.len() * page);
        // SAFETY: the range lies inside the mapping, and `pages` has a byte for each of its pages.
        let code =
            unsafe { libc::mincore(map.as_ptr().add(offset).cast_mut().cast(), length, pages.as_mut_ptr()) };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether this process may see which pages of the file are cached. Since Linux 5.2, only the owner and
    /// those who may write the file see it; to others every page looks cached.
    pub(crate) fn may_see_residency(file: &File, path: &Path) -> bool {
        // SAFETY: geteuid has no preconditions.
        let user = unsafe { libc::geteuid() };
        if user == 0 || file.metadata().is_ok_and(|metadata| metadata.uid() == user) {
            return true;
        }
        let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
        // SAFETY: the path is a valid C string.
        unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
    }

    /// Largest resident set of the process since it began, in bytes.
    pub(crate) fn max_rss() -> io::Result<u64> {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is valid for writes of an rusage.
        if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, and zeroed bytes are a valid rusage anyhow.
        let kibibytes = unsafe { usage.assume_init() }.ru_maxrss;
        Ok(u64::try_from(kibibytes).unwrap_or(0) * 1024)
    }

    /// Gives free pages of the heap back to the kernel; whether this C library can.
    pub(crate) fn trim_heap() -> bool {
        #[cfg(target_env = "gnu")]
        {
            // SAFETY: malloc_trim has no preconditions. Its result says whether anything was given back.
            unsafe { libc::malloc_trim(0) };
        }
        cfg!(target_env = "gnu")
    }

    /// Opens a counter of the instructions in user mode of this thread, and of what it starts.
    pub(crate) fn count_instructions() -> io::Result<File> {
        // Head of `struct perf_event_attr` as of its first version (linux/perf_event.h), 64 bytes: type, size,
        // config, period, sample type, read format, flags, wake-up, breakpoint type, config1.
        const HARDWARE: u32 = 0;
        const INSTRUCTIONS: u64 = 1;
        const INHERIT: u64 = 1 << 1;
        const USER_MODE_ONLY: u64 = 1 << 5 | 1 << 6;
        const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
        let mut attributes = [0u64; 8];
        attributes[0] = u64::from(HARDWARE) | 64 << 32;
        if cfg!(target_endian = "big") {
            attributes[0] = attributes[0].rotate_left(32);
        }
        attributes[1] = INSTRUCTIONS;
        // The flags are a bit field, which begins at the other end on big-endian machines.
        let flags = INHERIT | USER_MODE_ONLY;
        attributes[5] = if cfg!(target_endian = "big") { flags.reverse_bits() } else { flags };
        // SAFETY: `attributes` is a valid attribute of the size it names; this thread, any processor, no group.
        let descriptor = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, CLOSE_ON_EXEC)
        };
        let descriptor = libc::c_int::try_from(descriptor).unwrap_or(-1);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just opened it, and nobody else knows it.
        Ok(unsafe { File::from_raw_fd(descriptor) })
    }

    /// Opens a file past the page cache.
    pub(crate) fn open_direct(path: &Path) -> io::Result<File> {
        use std::os::unix::fs::OpenOptionsExt;
        std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
    }

    /// The processors that the calling thread may run on, in order.
    pub(crate) fn affinity() -> io::Result<Vec<usize>> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `set` is valid for writes of a set, whose size is given; 0 is the calling thread.
        if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, and zeroed bytes are an empty set anyhow.
        let set = unsafe { set.assume_init() };
        let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        // SAFETY: the processors asked for are below the size of the set.
        Ok((0..most).filter(|&processor| unsafe { libc::CPU_ISSET(processor, &set) }).collect())
    }

    /// Keeps the calling thread, and the threads it starts, to these processors.
    pub(crate) fn set_affinity(processors: &[usize]) -> io::Result<()> {
        // SAFETY: zeroed bytes are an empty set.
        let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
        let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        for &processor in processors.iter().filter(|&&processor| processor < most) {
            // SAFETY: the processor is below the size of the set.
            unsafe { libc::CPU_SET(processor, &mut set) };
        }
        // SAFETY: `set` is a set, whose size is given; 0 is the calling thread.
        let code = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn filesystem(path: &Path) -> io::Result<FilesystemStat> {
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path holds a zero byte"))?;
        let mut stat = MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: the path is a valid C string and `stat` is valid for writes.
        if unsafe { libc::statfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, and zeroed bytes are a valid statfs anyhow.
        let stat = unsafe { stat.assume_init() };
        // The field types differ between architectures.
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        let (magic, block) = (stat.f_type as u64 & 0xFFFF_FFFF, stat.f_bsize as u64);
        Ok(FilesystemStat {
            magic,
            total_bytes: stat.f_blocks.saturating_mul(block),
            free_bytes: stat.f_bavail.saturating_mul(block),
        })
    }
}

#[cfg(any(not(target_os = "linux"), feature = "portable"))]
mod os {
    use super::{File, FilesystemStat, Path, io};

    fn missing<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux is supported"))
    }

    /// Nothing lies below it.
    pub(crate) const ROOT: &str = "/dev/null";

    pub(crate) fn proc_file(_: &str) -> io::Result<Vec<u8>> {
        missing()
    }

    pub(crate) fn processes() -> io::Result<Vec<u32>> {
        missing()
    }

    pub(crate) fn reset_high_water_mark() -> io::Result<()> {
        missing()
    }

    pub(crate) fn prefer_as_oom_victim(_: u32) {}

    pub(crate) fn page_size() -> u64 {
        4096
    }

    pub(crate) fn count_instructions() -> io::Result<File> {
        missing()
    }

    pub(crate) fn open_direct(_path: &Path) -> io::Result<File> {
        missing()
    }

    pub(crate) fn advise_dont_need(_: &File) -> io::Result<()> {
        missing()
    }

    pub(crate) fn resident_pages(_: &memmap2::Mmap, _: usize, _: &mut [u8]) -> io::Result<()> {
        missing()
    }

    /// It is not for want of rights that nobody sees it.
    pub(crate) fn may_see_residency(_: &File, _: &Path) -> bool {
        true
    }

    pub(crate) fn max_rss() -> io::Result<u64> {
        missing()
    }

    pub(crate) fn affinity() -> io::Result<Vec<usize>> {
        missing()
    }

    pub(crate) fn set_affinity(_: &[usize]) -> io::Result<()> {
        missing()
    }

    pub(crate) fn trim_heap() -> bool {
        false
    }

    pub(crate) fn filesystem(_: &Path) -> io::Result<FilesystemStat> {
        missing()
    }
}

#[cfg(unix)]
mod signals {
    /// Kills a process group. Whether there was one is nobody's concern.
    pub(crate) fn kill_group(leader: u32) {
        if let Ok(leader @ 2..) = i32::try_from(leader) {
            // SAFETY: kill has no preconditions; a negative number names a group.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }

    /// Kills a process. Whether there was one is nobody's concern.
    pub(crate) fn kill(pid: u32) {
        if let Ok(pid @ 2..) = i32::try_from(pid) {
            // SAFETY: kill has no preconditions.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

#[cfg(not(unix))]
mod signals {
    pub(crate) fn kill_group(_: u32) {}

    pub(crate) fn kill(_: u32) {}
}

pub(crate) use os::{
    ROOT, advise_dont_need, affinity, count_instructions, filesystem, max_rss, may_see_residency,
    open_direct, page_size, prefer_as_oom_victim, proc_file, processes, reset_high_water_mark,
    resident_pages, set_affinity, trim_heap,
};
pub(crate) use signals::{kill, kill_group};

/// Maps a file for reading. An empty file cannot be mapped: `None`.
pub(crate) fn map(file: &File) -> io::Result<Option<memmap2::Mmap>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the pages are only asked about (mincore), never read, so that it makes no difference whether another process
    // shortens the file meanwhile.
    unsafe { memmap2::Mmap::map(file) }.map(Some)
}

/// The operating system's words for an error that is known to be one.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// The filesystems that keep their files in memory only.
pub(crate) fn lives_in_memory(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    filesystem(path).is_ok_and(|stat| matches!(stat.magic, TMPFS | RAMFS))
}
