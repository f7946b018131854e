//! Waits in unit tests: whether one is seen in a trace, and whether one ends.
//!
//! ```text
//!  start ─▶ work ─▶ stop ─▶ the file of the trace ─▶ is there a span of this name?
//! ```

use std::sync::{Mutex, PoisonError};
use std::thread::{ScopedJoinHandle, sleep};
use std::time::{Duration, Instant};

/// There is one recording per process, and tests are threads of it.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether a trace of `work` has a span called `name`. Without one it is done again, up to 200 times: a thread that begins late has
/// nothing to wait for.
pub(crate) fn is_seen(name: &str, mut work: impl FnMut()) -> bool {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (0..200).any(|_| {
        assert!(wellread_trace::start());
        work();
        let mut json = vec![];
        wellread_trace::stop().unwrap().write(&mut json, &[]).unwrap();
        String::from_utf8(json).unwrap().contains(&format!("\"name\":\"{name}\""))
    })
}

/// Whether a thread that waits ends. It has minutes, which a machine that is busy may need.
pub(crate) fn ends<T>(waiting: &ScopedJoinHandle<'_, T>) -> bool {
    let begun = Instant::now();
    while !waiting.is_finished() && begun.elapsed() < Duration::from_mins(5) {
        sleep(Duration::from_millis(2));
    }
    waiting.is_finished()
}
