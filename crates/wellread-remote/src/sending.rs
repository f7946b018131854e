//! An object on its way to a server: for as long as the link takes more of it, it is waited for.
//!
//! ```text
//!  taken   ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│ all of it: the last bytes are in the system's buffers yet
//!          │ the stall, from each on  │ the stall, and as long again as the sending took
//! ```
//!
//! The client's own limit would count from the first byte that is sent. A slow link would never send a part of 16 MiB then.
//!
//! A copy that the server makes is waited for as long as its bytes take. Not all servers send anything before it is done.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Bytes a second that a server copies at least.
const COPIED_PER_SECOND: u64 = 10 << 20;

tokio::task_local! {
    /// Whether [`while_copied`] waits for what this task sends.
    static IS_COPYING: bool;
}

/// How long a server may take to copy so many bytes, where a silent one is given up after `stall`.
pub(crate) fn copy_limit(stall: Duration, bytes: u64) -> Duration {
    stall + Duration::from_secs_f64(bytes as f64 / COPIED_PER_SECOND as f64)
}

/// The outcome of a copy by the server; `None` where it takes longer than `limit`.
pub(crate) async fn while_copied<T>(limit: Duration, copy: impl Future<Output = T>) -> Option<T> {
    timeout(limit, IS_COPYING.scope(true, copy)).await.ok()
}

/// Whether this task's request is one that [`while_copied`] gives up, and nothing else has to.
pub(crate) fn is_copying() -> bool {
    IS_COPYING.try_with(|is_copying| *is_copying).unwrap_or_default()
}

/// How much of a body the connection has taken.
#[derive(Debug)]
pub(crate) struct Sending {
    stall: Duration,
    length: u64,
    begun: Instant,
    /// Bytes that were taken, and when the last of them were.
    taken: Mutex<(u64, Instant)>,
}

impl Sending {
    /// A body of `length` bytes, of which something has to be taken in each `stall`.
    pub(crate) fn new(stall: Duration, length: u64, begun: Instant) -> Self {
        Self { stall, length, begun, taken: Mutex::new((0, begun)) }
    }

    /// Notes that the connection took some of it.
    pub(crate) fn took(&self, bytes: u64, now: Instant) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = (taken.0 + bytes, now);
    }

    /// How much longer it is waited for.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        let (bytes, last) = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let took = if bytes >= self.length { last.duration_since(self.begun) } else { Duration::ZERO };
        (self.stall + took).saturating_sub(now.duration_since(last))
    }
}

/// The answer to what is sent; `None` where it is not waited for any longer.
pub(crate) async fn while_sent<T>(sending: &Sending, answer: impl Future<Output = T>) -> Option<T> {
    let mut answer = pin!(answer);
    loop {
        let left = sending.left(Instant::now());
        if let Ok(answer) = timeout(left, answer.as_mut()).await {
            return Some(answer);
        }
        if sending.left(Instant::now()).is_zero() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_waited_for_while_the_link_takes_it() {
        let begun = Instant::now();
        let at = |second| begun + Duration::from_secs(second);
        let sending = Sending::new(Duration::from_secs(30), 16, begun);
        let left = |second| sending.left(at(second)).as_secs();
        assert_eq!((left(0), left(29), left(30), left(99)), (30, 1, 0, 0));
        // A part that takes ten minutes.
        for second in 1..16 {
            sending.took(1, at(40 * second));
            assert_eq!((left(40 * second), left(40 * second + 29)), (30, 1));
        }
        assert_eq!(left(640), 0);
        // All of it is taken, and as much again may be on its way.
        sending.took(1, at(610));
        assert_eq!((left(610), left(1249), left(1250)), (640, 1, 0));
    }

    #[test]
    fn an_answer_that_does_not_come_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let none = Sending::new(Duration::from_millis(20), 1, Instant::now());
            assert_eq!(while_sent(&none, std::future::pending::<()>()).await, None);
            let long = Sending::new(Duration::from_mins(10), 1, Instant::now());
            assert_eq!(while_sent(&long, async { 7 }).await, Some(7));
        });
    }
}
