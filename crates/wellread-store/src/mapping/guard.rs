//! The handler of SIGBUS and what it knows of mappings.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mapping, as the handler finds it. Never freed, but used again.
pub(super) struct Slot {
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
    pub fn release(&'static self) {
        self.end.store(0, Ordering::Release);
        // One that nobody takes note of is lost: a few bytes.
        if let Some(mut free) = lock(&FREE) {
            free.push(self);
        }
    }
}

/// All slots, the newest first.
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());
/// Those of them that no mapping has: there may be thousands, too many to look for one.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

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
    let free = lock(&FREE).and_then(|mut free| free.pop());
    let slot = free.unwrap_or_else(|| {
        let new = Box::leak(Box::new(Slot {
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

/// A handler that ours was installed over, for signals that are not ours.
struct Previous {
    action: libc::sigaction,
    /// The one that ours was installed over before.
    next: *const Previous,
}

/// Those handlers, the latest first; never freed.
static PREVIOUS_HANDLERS: AtomicPtr<Previous> = AtomicPtr::new(ptr::null_mut());
/// The process in which the handler was last seen to be ours, and the millisecond.
static INSTALLED_IN: AtomicU32 = AtomicU32::new(0);
static LOOKED_AT: AtomicU32 = AtomicU32::new(0);
static INSTALLING: Mutex<()> = Mutex::new(());

/// Looks for the handler, once a millisecond: somebody may have installed another.
pub(super) fn keep_handler() {
    let now = milliseconds();
    if INSTALLED_IN.load(Ordering::Relaxed) != crate::process::id()
        || LOOKED_AT.load(Ordering::Relaxed) != now
    {
        LOOKED_AT.store(now, Ordering::Relaxed);
        // A failure is ignored: the handler was installed with the first mapping.
        let _ = install();
    }
}

/// A clock that is read without a system call, from any time on.
fn milliseconds() -> u32 {
    // SAFETY: zeros are a valid time.
    let mut now: libc::timespec = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: writes the time to `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u32).wrapping_mul(1000).wrapping_add((now.tv_nsec / 1_000_000) as u32)
}

fn install() -> io::Result<()> {
    // A thread that holds it in the parent of a forked process never lets go of it in the child. One try is enough,
    // for the thread that holds it in this process installs the handler.
    let Some(_only) = lock(&INSTALLING) else { return Ok(()) };
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
        let latest = PREVIOUS_HANDLERS.load(Ordering::Acquire).cast_const();
        // SAFETY: null, or a handler that is never freed.
        let is_known = unsafe { latest.as_ref() }.is_some_and(|latest| {
            (latest.action.sa_sigaction, latest.action.sa_flags) == (now.sa_sigaction, now.sa_flags)
        });
        if !is_known {
            let previous = Box::new(Previous { action: now, next: latest });
            PREVIOUS_HANDLERS.store(Box::into_raw(previous), Ordering::Release);
        }
        // SAFETY: the handler does nothing that a handler must not do.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    INSTALLED_IN.store(crate::process::id(), Ordering::Relaxed);
    Ok(())
}

/// Without waiting: in a forked process its holder may not be there.
fn lock<T>(mutex: &'static Mutex<T>) -> Option<MutexGuard<'static, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(PoisonError::into_inner(guard)),
        Err(TryLockError::WouldBlock) => None,
    }
}

thread_local! {
    /// The address whose signal this thread has handed on last, and to how many handlers.
    static HANDED_ON: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Calls nothing but what may be called in a handler: atomics, `mmap`, `sigaction`, `raise`.
extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid description.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Sent by the kernel for an access, not by a process.
    if code > 0 && slots().any(|slot| made_zeros(slot, address)) {
        return;
    }
    call_previous_handler(signal, code, address, info, context);
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
    let access = libc::PROT_READ | if slot.written.load(Ordering::Relaxed) { libc::PROT_WRITE } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the pages belong to a mapping that lives, for a thread is reading it. They stay readable, with other
    // content, which its readers know by the note.
    let place = unsafe { libc::mmap(from as *mut libc::c_void, end - from, access, flags, -1, 0) };
    place != libc::MAP_FAILED
}

/// Does what would be done without this handler.
fn call_previous_handler(
    signal: libc::c_int,
    code: libc::c_int,
    address: usize,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let (last, count) = HANDED_ON.try_with(Cell::get).unwrap_or((address, usize::MAX));
    let again = count > 0;
    // A handler that hands the same access back here, or that leaves it as it is, gets it once. Then the one before does.
    let skipped = if code > 0 && last == address { count } else { 0 };
    let _ = HANDED_ON.try_with(|handed_on| handed_on.set((address, skipped.saturating_add(1))));
    // SAFETY: null, or a handler that is never freed.
    let mut before = unsafe { PREVIOUS_HANDLERS.load(Ordering::Acquire).cast_const().as_ref() };
    for _ in 0..skipped {
        let Some(skipped) = before else { break };
        // SAFETY: as above.
        before = unsafe { skipped.next.as_ref() };
    }
    let before = before.map(|previous| &previous.action);
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
