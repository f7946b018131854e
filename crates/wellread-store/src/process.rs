//! Which process this is, without asking the kernel each time, and threads that belong to it.
//!
//! A holder of locks or threads checks for a fork at every batch. A system call takes 130 ns in some virtual machines.
//! Three of them are then a twentieth of the time of a batch of small images.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle, ThreadId};

/// This process; 0 where it must be asked for.
static ID: AtomicU32 = AtomicU32::new(0);

/// Whether forked processes forget it: 0 not yet, 1 not (yet), for it is being arranged or could not be, 2 yes.
static FORK_HANDLER_STATE: AtomicU8 = AtomicU8::new(0);

/// The process's number. A process that the system's library forked has its own number. One that was made past the
/// library (a bare `clone`) has that of its parent, as with all that the library keeps of a process.
#[inline]
pub fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => query_id(),
        id => id,
    }
}

#[cold]
fn query_id() -> u32 {
    let id = std::process::id();
    // No lock, which another thread might hold where this process is forked.
    if FORK_HANDLER_STATE.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        && register_fork_handler()
    {
        FORK_HANDLER_STATE.store(2, Ordering::Relaxed);
    }
    if FORK_HANDLER_STATE.load(Ordering::Relaxed) == 2 {
        ID.store(id, Ordering::Relaxed);
    }
    id
}

#[cfg(unix)]
fn register_fork_handler() -> bool {
    extern "C" fn forked() {
        ID.store(0, Ordering::Relaxed);
    }
    // SAFETY: the function that is called in the forked process writes to an atomic and does nothing else.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) == 0 }
}

#[cfg(not(unix))]
fn register_fork_handler() -> bool {
    true
}

/// A value that only the process which made it drops.
///
/// A forked process inherits the value, but not the threads behind it. Engines and handles of threads wait for their
/// threads when they are dropped, which would end the process by a segmentation fault. There the value is forgotten.
#[derive(Debug)]
pub struct ProcessOwned<T> {
    value: ManuallyDrop<T>,
    process: u32,
}

impl<T> ProcessOwned<T> {
    /// A value of this process.
    pub fn new(value: T) -> Self {
        Self { process: id(), value: ManuallyDrop::new(value) }
    }

    /// Whether this process made it.
    pub fn is_own(&self) -> bool {
        self.process == id()
    }

    /// The value to change, where this process made it.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if !self.is_own() {
            return None;
        }
        let value: &mut T = &mut self.value;
        Some(value)
    }

    /// The value, where this process made it; else it is forgotten.
    pub fn take(mut self) -> Option<T> {
        if !self.is_own() {
            return None;
        }
        // SAFETY: the value is taken once, since `self` is forgotten.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        std::mem::forget(self);
        Some(value)
    }
}

impl<T> std::ops::Deref for ProcessOwned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: nothing uses the value after this.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

/// A thread of the process that started it. In a forked process it has ended, and its handle is forgotten.
#[derive(Debug)]
pub struct Thread(ProcessOwned<JoinHandle<()>>);

impl Thread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system cannot start one.
    pub fn start(builder: Builder, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Ok(Self(ProcessOwned::new(builder.spawn(work)?)))
    }

    /// The thread's own identity.
    pub fn id(&self) -> ThreadId {
        self.0.thread().id()
    }

    /// Whether this process started it.
    pub fn is_own(&self) -> bool {
        self.0.is_own()
    }

    /// Whether it has ended; in a forked process it has.
    pub fn is_finished(&self) -> bool {
        !self.is_own() || self.0.is_finished()
    }

    /// Waits until it has ended, also in a panic. A forked process does not wait.
    pub fn join(self) {
        if let Some(handle) = self.0.take() {
            let _ = handle.join();
        }
    }
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
