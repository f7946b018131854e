//! Files mapped into memory, read without the signal that ends the process when somebody shortens them.
//!
//! ```text
//!  file ──Mapping──▶ bytes ──▶ a reader                          as fast as memory
//!    │ shortened by another program
//!    └─▶ SIGBUS ──handler──▶ zeros in place of what is gone, and a note ──Mapping::check──▶ an error
//! ```
//!
//! Of a page behind the file's end nothing can be read: the kernel sends SIGBUS, whose default ends the process. The
//! handler here looks whether the address lies in a [`Mapping`]; if so it puts zeros there, so that the reader comes to
//! its end, and notes that the mapping is no longer the file. Whoever reads a mapping calls [`before_reading`] before and
//! [`Mapping::check`] *after* reading, and uses nothing of what it read when that fails. What lies in no mapping goes to the handler that was there
//! before: that of Python's `faulthandler`, of torch's workers, or the system's default.
//!
//! Why files are mapped at all: `docs/decisions/0033-mapped-files.md`.

use crate::{Error, Result};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::path::Path;

/// A file, or a part of it, mapped into memory.
pub struct Mapping {
    map: MmapRaw,
    #[cfg(unix)]
    slot: &'static guard::Slot,
}

impl Mapping {
    /// Maps a whole file for reading.
    ///
    /// # Errors
    /// A file that cannot be mapped: no address space, or nothing that can be.
    pub fn of(file: &File) -> io::Result<Self> {
        Self::new(MmapOptions::new().map_raw_read_only(file)?, false)
    }

    /// Maps `len` bytes from `offset` on for reading. The file may end before them: what lies behind its end must not be read
    /// before it was written.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn part(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().offset(offset).len(len).map_raw_read_only(file)?, false)
    }

    /// Maps the first `len` bytes for reading and writing, shared with all processes that do the same.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn shared(file: &File, len: usize) -> io::Result<Self> {
        Self::new(MmapOptions::new().len(len).map_raw(file)?, true)
    }

    #[cfg(unix)]
    fn new(map: MmapRaw, written: bool) -> io::Result<Self> {
        let slot = guard::register(map.as_ptr() as usize, map.len(), written)?;
        Ok(Self { map, slot })
    }

    /// Other systems do not let a file be shortened while it is mapped.
    #[cfg(not(unix))]
    fn new(map: MmapRaw, _: bool) -> io::Result<Self> {
        Ok(Self { map })
    }

    /// Where it begins. Valid for [`Self::len`] bytes as long as the mapping lives.
    pub fn as_ptr(&self) -> *const u8 {
        self.map.as_ptr()
    }

    /// As [`Self::as_ptr`], for what is mapped for writing.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Bytes that are mapped.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fails where `file`, whose mapping this is, has fewer than `end` bytes now, or where something of it could not be read
    /// since it was mapped. To be called after reading, too: only then what was read is what the file held.
    ///
    /// A file cut within a page gives zeros without a signal; its length tells.
    ///
    /// # Errors
    /// One that names the file and says that it was shortened.
    pub fn check(&self, file: &File, path: &Path, end: u64) -> Result<()> {
        let length = file.metadata().map_err(|e| Error::io(path, "cannot look at", &e))?.len();
        if length < end {
            return Err(Error::new(
                path,
                format_args!("the file was shortened to {length} bytes while it was being read"),
            ));
        }
        if self.is_whole() {
            return Ok(());
        }
        Err(Error::new(path, "the file was shortened while it was being read, or its disk failed"))
    }

    /// Whether all that was touched so far could be read.
    pub fn is_whole(&self) -> bool {
        #[cfg(unix)]
        let lost = self.slot.is_lost();
        #[cfg(not(unix))]
        let lost = false;
        !lost
    }
}

/// Sees to it that shortened files end no process that was forked since they were mapped: workers of torch's `DataLoader`
/// install a handler of their own when they start. To be called before mappings are read.
pub fn before_reading() {
    #[cfg(unix)]
    guard::keep_handler();
}

impl AsRef<[u8]> for Mapping {
    /// The bytes. Another program that writes to the file changes them; readers take them as they take any corrupt file.
    fn as_ref(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, and readable to its end: what lies behind the file's end is made
        // zeros when it is first touched, see `guard`. Bytes of any value are valid.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr(), self.map.len()) }
    }
}

#[cfg(unix)]
impl Drop for Mapping {
    fn drop(&mut self) {
        self.slot.release();
    }
}

/// The handler and what it knows.
#[cfg(unix)]
mod guard {
    use std::cell::Cell;
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};

    /// A mapping, as the handler finds it. Never freed, but used again.
    pub(super) struct Slot {
        taken: AtomicBool,
        start: AtomicUsize,
        /// 0 where nothing is mapped.
        end: AtomicUsize,
        written: AtomicBool,
        lost: AtomicBool,
        next: *const Slot,
    }

    // SAFETY: `next` is written before the slot is published and never again, and refers to a slot that is never freed.
    unsafe impl Sync for Slot {}

    impl Slot {
        pub fn is_lost(&self) -> bool {
            self.lost.load(Ordering::Acquire)
        }

        /// To be called before the memory is unmapped.
        pub fn release(&self) {
            self.end.store(0, Ordering::Release);
            self.taken.store(false, Ordering::Release);
        }
    }

    /// All slots, the newest first.
    static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

    fn slots() -> impl Iterator<Item = &'static Slot> {
        let mut next = SLOTS.load(Ordering::Acquire).cast_const();
        std::iter::from_fn(move || {
            // SAFETY: null, or a slot that is never freed.
            let slot = unsafe { next.as_ref() }?;
            next = slot.next;
            Some(slot)
        })
    }

    /// Tells the handler of a mapping, and sees to it that it is installed.
    pub(super) fn register(start: usize, len: usize, written: bool) -> io::Result<&'static Slot> {
        install()?;
        let free = |slot: &&Slot| {
            slot.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let slot = slots().find(free).unwrap_or_else(|| {
            let new = Box::leak(Box::new(Slot {
                taken: AtomicBool::new(true),
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                written: AtomicBool::new(false),
                lost: AtomicBool::new(false),
                next: ptr::null(),
            }));
            let place = ptr::from_mut(new);
            let mut head = SLOTS.load(Ordering::Acquire);
            loop {
                // SAFETY: not published yet, so nobody else looks at it.
                unsafe { (*place).next = head };
                match SLOTS.compare_exchange_weak(head, place, Ordering::AcqRel, Ordering::Acquire) {
                    // SAFETY: leaked above.
                    Ok(_) => break unsafe { &*place },
                    Err(now) => head = now,
                }
            }
        });
        slot.lost.store(false, Ordering::Relaxed);
        slot.written.store(written, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        slot.end.store(start + len, Ordering::Release);
        Ok(slot)
    }

    /// What was installed before, and is asked about signals that are not ours; never freed.
    static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
    /// The process in which the handler was last seen to be ours.
    static SEEN_IN: AtomicU32 = AtomicU32::new(0);
    static INSTALLING: Mutex<()> = Mutex::new(());

    /// Looks for the handler where a process was forked since.
    pub(super) fn keep_handler() {
        if SEEN_IN.load(Ordering::Relaxed) != crate::process::id() {
            // Whatever goes wrong, it went well before the fork.
            let _ = install();
        }
    }

    fn install() -> io::Result<()> {
        // Who holds it in the parent of a forked process never lets go of it in the child: one try is enough, for whoever
        // holds it in this process installs the handler.
        let Some(_only) = lock() else { return Ok(()) };
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the action, which is written to `now`.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), now.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: written above; zeros would be valid, too.
        let now = unsafe { now.assume_init() };
        let handler = on_signal as extern "C" fn(_, _, _) as libc::sighandler_t;
        if now.sa_sigaction != handler {
            // SAFETY: zeros are a valid action: the default one.
            let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            ours.sa_sigaction = handler;
            // On the thread's own stack for signals, where it has one.
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            BEFORE.store(Box::into_raw(Box::new(now)), Ordering::Release);
            // SAFETY: the handler does nothing that a handler must not do.
            if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        SEEN_IN.store(crate::process::id(), Ordering::Relaxed);
        Ok(())
    }

    fn lock() -> Option<std::sync::MutexGuard<'static, ()>> {
        match INSTALLING.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(guard)) => Some(PoisonError::into_inner(guard)),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    thread_local! {
        /// Whether this thread has handed on a signal: one that is then sent again comes from the handler before.
        static HANDED_ON: Cell<bool> = const { Cell::new(false) };
    }

    /// Calls nothing but what may be called in a handler: atomics, `mmap`, `sigaction`, `raise`.
    extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the kernel hands over a valid description.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
        // Sent by the kernel for an access, not by a process.
        if code > 0 && slots().any(|slot| made_zeros(slot, address)) {
            return;
        }
        hand_on(signal, code, info, context);
    }

    /// Puts zeros from the page of `address` to the mapping's end, where `address` lies in that.
    fn made_zeros(slot: &Slot, address: usize) -> bool {
        let end = slot.end.load(Ordering::Acquire);
        let start = slot.start.load(Ordering::Acquire);
        if !(start..end).contains(&address) {
            return false;
        }
        // First, so that no thread sees zeros that the note does not tell of.
        slot.lost.store(true, Ordering::Release);
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let from = address & !(page - 1);
        let access =
            libc::PROT_READ | if slot.written.load(Ordering::Relaxed) { libc::PROT_WRITE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the pages belong to a mapping that lives, for a thread is reading it; they stay readable, with other
        // content, which its readers know by the note.
        let place = unsafe { libc::mmap(from as *mut libc::c_void, end - from, access, flags, -1, 0) };
        place != libc::MAP_FAILED
    }

    /// Does what would be done without this handler.
    fn hand_on(
        signal: libc::c_int,
        code: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        // SAFETY: null, or an action that is never freed.
        let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
        let again = HANDED_ON.try_with(|handed_on| handed_on.replace(true)).unwrap_or(true);
        let action = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
        if action == libc::SIG_IGN && code <= 0 {
            return;
        }
        // Handlers such as Python's put back the one before them, which may be this, and send the signal once more.
        if action == libc::SIG_DFL || action == libc::SIG_IGN || (again && code <= 0) {
            // SAFETY: zeros are the default action, under which the access that is repeated ends the process.
            unsafe {
                let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
                libc::sigaction(signal, &raw const default, ptr::null_mut());
                if code <= 0 {
                    libc::raise(signal);
                }
            }
            return;
        }
        if before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: a handler that was installed with three arguments.
            let handler = unsafe { std::mem::transmute::<libc::sighandler_t, Handler>(action) };
            handler(signal, info, context);
        } else {
            // SAFETY: a handler that was installed with one argument.
            let handler =
                unsafe { std::mem::transmute::<libc::sighandler_t, extern "C" fn(libc::c_int)>(action) };
            handler(signal);
        }
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::Command;

    const PAGES: usize = 8;
    const PAGE: usize = 16 << 10;

    fn file(byte: u8) -> (tempfile::TempDir, std::path::PathBuf, File) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mapped.bin");
        std::fs::write(&path, vec![byte; PAGES * PAGE]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        (dir, path, file)
    }

    /// Runs a test of this module in a process of its own, with a word that tells it that it is the inner one.
    fn within(test: &str) -> std::process::Output {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("mapping::tests::{test}"), "--nocapture"])
            .env("WELLREAD_TEST_MAPPING", test)
            .output()
            .unwrap()
    }

    fn is_within(test: &str) -> bool {
        std::env::var("WELLREAD_TEST_MAPPING").is_ok_and(|inner| inner == test)
    }

    #[test]
    fn what_was_cut_off_is_an_error_and_no_signal() {
        let this = "what_was_cut_off_is_an_error_and_no_signal";
        if !is_within(this) {
            let output = within(this);
            assert!(
                output.status.success(),
                "{:?}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
            return;
        }
        let (_dir, path, file) = file(7);
        let whole = (PAGES * PAGE) as u64;
        let (cut, other) = (Mapping::of(&file).unwrap(), self::file(9));
        let untouched = Mapping::of(&other.2).unwrap();
        let sum = |map: &Mapping| map.as_ref().iter().map(|b| u64::from(*b)).sum::<u64>();
        assert_eq!(sum(&cut), 7 * whole);
        cut.check(&file, &path, whole).unwrap();
        // Within a page no signal comes: the length tells.
        file.set_len(whole - 100).unwrap();
        let error = cut.check(&file, &path, whole).unwrap_err().to_string();
        assert!(error.contains("mapped.bin") && error.contains("was shortened to 130972 bytes"), "{error}");
        cut.check(&file, &path, whole - 100).unwrap();
        // Behind the end zeros are read, by all threads.
        file.set_len(PAGE as u64).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(sum(&cut), 7 * PAGE as u64));
            }
        });
        assert!(cut.check(&file, &path, whole).is_err());
        // Also when it has grown again.
        file.set_len(whole).unwrap();
        let error = cut.check(&file, &path, whole).unwrap_err().to_string();
        assert!(error.contains("mapped.bin") && error.contains("was shortened"), "{error}");
        // Another mapping of the file is good, and so is one of another file.
        let anew = Mapping::part(&file, PAGE as u64, PAGE).unwrap();
        anew.check(&file, &path, whole).unwrap();
        assert_eq!(sum(&untouched), 9 * whole);
        untouched.check(&other.2, &other.1, whole).unwrap();
        // One that is written to.
        let written = Mapping::shared(&file, PAGES * PAGE).unwrap();
        file.set_len(PAGE as u64).unwrap();
        // SAFETY: within the mapping, and nobody else looks at it.
        unsafe { written.as_mut_ptr().add(3 * PAGE).write_volatile(5) };
        assert_eq!(written.as_ref()[3 * PAGE], 5);
        assert!(written.check(&file, &path, 0).is_err());
        // Slots are used again, and begin anew.
        drop((cut, anew, written));
        let again = Mapping::of(&file).unwrap();
        again.check(&file, &path, PAGE as u64).unwrap();
    }

    /// A page of a file mapped without [`Mapping`], behind the file's end.
    fn plain_behind_the_end() -> MmapRaw {
        let (_dir, _, file) = file(1);
        let map = MmapOptions::new().map_raw_read_only(&file).unwrap();
        file.set_len(0).unwrap();
        map
    }

    #[test]
    fn other_signals_end_the_process_as_before() {
        use std::os::unix::process::ExitStatusExt as _;
        let this = "other_signals_end_the_process_as_before";
        if !is_within(this) {
            let output = within(this);
            assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{:?}", output.status);
            return;
        }
        let (_dir, _, file) = file(1);
        let _guarded = Mapping::of(&file).unwrap();
        let map = plain_behind_the_end();
        // SAFETY: the process ends here.
        let byte = unsafe { map.as_ptr().read_volatile() };
        unreachable!("read {byte}");
    }

    #[test]
    fn a_handler_that_was_there_before_gets_what_is_not_ours() {
        let this = "a_handler_that_was_there_before_gets_what_is_not_ours";
        if !is_within(this) {
            let output = within(this);
            assert_eq!(output.status.code(), Some(42), "{:?}", output.status);
            return;
        }
        extern "C" fn theirs(_: libc::c_int) {
            // SAFETY: may be called in a handler.
            unsafe { libc::_exit(42) }
        }
        // SAFETY: `theirs` may be a handler.
        unsafe { libc::signal(libc::SIGBUS, theirs as extern "C" fn(_) as libc::sighandler_t) };
        let (_dir, _, file) = file(1);
        let ours = Mapping::of(&file).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(ours.as_ref()[0], 0);
        let _ = std::io::stdout().flush();
        let map = plain_behind_the_end();
        // SAFETY: the process ends here.
        let byte = unsafe { map.as_ptr().read_volatile() };
        unreachable!("read {byte}");
    }

    #[test]
    fn one_that_sends_the_signal_again_ends_the_process() {
        use std::os::unix::process::ExitStatusExt as _;
        let this = "one_that_sends_the_signal_again_ends_the_process";
        if !is_within(this) {
            let output = within(this);
            assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{:?}", output.status);
            return;
        }
        // As Python's faulthandler: never puts itself out of the way, for ours was there before it.
        extern "C" fn theirs(signal: libc::c_int) {
            // SAFETY: may be called in a handler.
            unsafe { libc::raise(signal) };
        }
        // SAFETY: `theirs` may be a handler.
        unsafe { libc::signal(libc::SIGBUS, theirs as extern "C" fn(_) as libc::sighandler_t) };
        let (_dir, _, file) = file(1);
        let _ours = Mapping::of(&file).unwrap();
        let map = plain_behind_the_end();
        // SAFETY: the process ends here.
        let byte = unsafe { map.as_ptr().read_volatile() };
        unreachable!("read {byte}");
    }
}
