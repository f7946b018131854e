//! Which process this is, without asking the kernel each time.
//!
//! Whoever holds locks or threads looks whether it has been forked, for every batch: where a system call takes 130 ns, as in
//! some virtual machines, three of them are a twentieth of what a batch of small images takes.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// This process; 0 where it must be asked for.
static ID: AtomicU32 = AtomicU32::new(0);

/// Whether forked processes forget it: 0 not yet, 1 not (yet), for it is being arranged or could not be, 2 yes.
static FORKS: AtomicU8 = AtomicU8::new(0);

/// The process's number. A process that was forked by the system's library has its own; one that was made past the library
/// (a bare `clone`) has that of its parent, as with all that the library keeps of a process.
#[inline]
pub fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => asked(),
        id => id,
    }
}

#[cold]
fn asked() -> u32 {
    let id = std::process::id();
    // No lock, which another thread might hold where this process is forked.
    if FORKS.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() && heeds_forks() {
        FORKS.store(2, Ordering::Relaxed);
    }
    if FORKS.load(Ordering::Relaxed) == 2 {
        ID.store(id, Ordering::Relaxed);
    }
    id
}

#[cfg(unix)]
fn heeds_forks() -> bool {
    extern "C" fn forked() {
        ID.store(0, Ordering::Relaxed);
    }
    // SAFETY: what is called in the forked process writes to an atomic and does nothing else.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) == 0 }
}

#[cfg(not(unix))]
fn heeds_forks() -> bool {
    true
}

#[cfg(test)]
mod tests {
    #[cfg(not(miri))]
    #[test]
    fn it_is_that_of_the_system() {
        assert_eq!([super::id(), super::id()], [std::process::id(); 2]);
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_forked_process_has_its_own() {
        super::id();
        // SAFETY: the child calls nothing but what may be called there, and leaves at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_own = super::id() == std::process::id() && super::id() == std::process::id();
            // SAFETY: it ends the process without what the parent has registered.
            unsafe { libc::_exit(i32::from(!is_own)) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: the child is this process's, and the status may be written to.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!(super::id(), std::process::id());
    }
}
