//! How many bytes are on their way at once. They are enough to keep the link busy, and hardly more, so that what was asked for
//! first comes first.
//!
//! ```text
//!  bytes on their way   16 MiB ─▶ 32 MiB ─▶ 64 MiB …   doubled as long as more bytes a second come then
//!                          ▲         │
//!                          └─────────┘                 else halved again, and tried anew after a while
//! ```
//!
//! Requests share a link. With all requests ahead on their way at once, the first batch of an epoch comes when nearly all
//! others have come. That is after 2 s at 1 Gbit/s for large images. Nobody knows the delay and rate of the link before.
//! So the window grows as in the startup of BBR (Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5),
//! 2016).
//!
//! Only requests ahead wait here. A reader's own requests go past them.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use wellread_store::place::PIECE;

/// Bytes are counted in so many.
const COUNTED_BYTES: u64 = 1 << 10;
/// The window at first, and at least: two of the longest requests.
const MIN_WINDOW: u64 = 2 * PIECE;
/// The window at most.
const MAX_WINDOW: u64 = 1 << 30;
/// A window twice as wide is kept if it brings so much more.
const WIDER_MUST_GAIN: f64 = 1.2;
/// A rate is measured for so long at least.
const SHORTEST: Duration = Duration::from_millis(50);
/// After so long a wider window is tried again.
const WIDEN_AGAIN_AFTER: Duration = Duration::from_secs(20);
/// A request that takes longer counts no more: one that hangs must not hold up others.
const LONGEST: Duration = Duration::from_secs(2);

/// The bytes on their way of a process.
#[derive(Debug)]
pub(crate) struct ByteLimit {
    free: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: Window,
    /// Units that are to be taken out as they come back.
    owed: usize,
}

impl Default for ByteLimit {
    fn default() -> Self {
        let window = Window::default();
        let free = Semaphore::new(units(window.bytes) as usize);
        Self { free, state: Mutex::new(State { window, owed: 0 }) }
    }
}

/// Bytes in units, one at least.
pub(crate) fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(COUNTED_BYTES)).unwrap_or(u32::MAX).max(1)
}

impl ByteLimit {
    /// Waits until so many bytes may be on their way, in turn.
    pub(crate) async fn enter(&self, bytes: u64) -> Option<InFlightPermit<'_>> {
        // The window may have fewer than the longest request.
        let permit = self.free.acquire_many(units(bytes.min(PIECE))).await.ok()?;
        Some(InFlightPermit { limit: self, permit: Some(permit) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes that came, and lets more or fewer be on their way.
    fn count_arrived(&self, bytes: u64, now: Instant) {
        let mut state = self.lock();
        let before = units(state.window.bytes) as usize;
        state.window.count_arrived(bytes, now, self.free.available_permits() <= before / 2);
        let after = units(state.window.bytes) as usize;
        if after > before {
            let spared = state.owed.min(after - before);
            state.owed -= spared;
            self.free.add_permits(after - before - spared);
        } else if after < before {
            state.owed += before - after - self.free.forget_permits(before - after);
        }
    }
}

/// The right to have bytes on their way.
#[derive(Debug)]
pub(crate) struct InFlightPermit<'a> {
    limit: &'a ByteLimit,
    permit: Option<SemaphorePermit<'a>>,
}

impl InFlightPermit<'_> {
    /// Waits for the answer to a request, and is given back unless that took too long.
    pub(crate) async fn held_for<T>(self, request: impl Future<Output = T>) -> (T, Option<Self>) {
        let mut request = pin!(request);
        if let Ok(answer) = timeout(LONGEST, request.as_mut()).await {
            return (answer, Some(self));
        }
        drop(self);
        (request.await, None)
    }

    /// Notes that the bytes came.
    pub(crate) fn arrived(self, bytes: u64) {
        self.limit.count_arrived(bytes, Instant::now());
    }
}

impl Drop for InFlightPermit<'_> {
    fn drop(&mut self) {
        let Some(mut permit) = self.permit.take() else { return };
        let mut state = self.limit.lock();
        let paid = state.owed.min(permit.num_permits());
        if let Some(gone) = permit.split(paid) {
            gone.forget();
            state.owed -= paid;
        }
    }
}

/// The bytes that may be on their way, by the rate at which they come.
#[derive(Debug)]
struct Window {
    bytes: u64,
    /// Bytes that came since the window is as wide as it is, or since the measuring began.
    came: u64,
    /// When the measuring began: when as many bytes as the window has had come.
    since: Option<Instant>,
    /// Bytes a second with a window half as wide, while this one is tried.
    narrower: Option<f64>,
    /// When a wider one brought no more.
    settled: Option<Instant>,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: MIN_WINDOW, came: 0, since: None, narrower: None, settled: None }
    }
}

impl Window {
    /// Takes note of bytes that came; `is_full` says whether it is the window that bounds the bytes on their way.
    fn count_arrived(&mut self, bytes: u64, now: Instant, is_full: bool) {
        if !is_full {
            (self.came, self.since) = (0, None);
            return;
        }
        self.came += bytes;
        let Some(since) = self.since else {
            // Those that were asked for before, in another window.
            if self.came >= self.bytes {
                (self.came, self.since) = (0, Some(now));
            }
            return;
        };
        let took = now.duration_since(since);
        if self.came < self.bytes || took < SHORTEST {
            return;
        }
        let rate = self.came as f64 / took.as_secs_f64();
        (self.came, self.since) = (0, None);
        match self.narrower.take() {
            Some(narrower) if rate < WIDER_MUST_GAIN * narrower => {
                self.bytes /= 2;
                self.settled = Some(now);
            }
            None if self.settled.is_some_and(|at| now.duration_since(at) < WIDEN_AGAIN_AFTER) => {}
            _ if self.bytes >= MAX_WINDOW => {}
            _ => {
                self.narrower = Some(rate);
                self.bytes *= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    const MIB: u64 = 1 << 20;

    /// Windows, MiB, over so many seconds on a link of so many MiB a second, whose requests take `delay` at least.
    fn windows(window: &mut Window, begin: Instant, seconds: f64, rate: f64, delay: f64) -> Vec<u64> {
        let (mut at, mut seen) = (0.0, vec![window.bytes / MIB]);
        while at < seconds {
            // The bytes on their way come within the delay, or as fast as the link is.
            at += 1.0 / rate.min(window.bytes as f64 / MIB as f64 / delay);
            window.count_arrived(MIB, begin + Duration::from_secs_f64(at), true);
            if seen.last() != Some(&(window.bytes / MIB)) {
                seen.push(window.bytes / MIB);
            }
        }
        seen
    }

    #[test]
    fn bytes_are_counted_from_above() {
        assert_eq!([0, 1, COUNTED_BYTES, COUNTED_BYTES + 1, u64::MAX].map(units), [1, 1, 1, 2, u32::MAX]);
    }

    #[test]
    fn a_window_grows_as_long_as_the_link_then_gives_more() {
        let begin = Instant::now();
        for (rate, delay, expected) in [
            (120.0, 0.02, vec![16, 32, 16]),
            // 10 Gbit/s, 80 ms: 96 MiB are on their way. With 64 of them it gives two thirds.
            (1200.0, 0.08, vec![16, 32, 64, 128, 256, 128]),
            (10.0, 0.02, vec![16, 32, 16]),
        ] {
            let mut window = Window::default();
            assert_eq!(windows(&mut window, begin, 15.0, rate, delay), expected, "{rate} {delay}");
        }
    }

    #[test]
    fn a_wider_window_is_tried_again_when_the_link_may_have_changed() {
        let begin = Instant::now();
        let mut window = Window::default();
        assert_eq!(windows(&mut window, begin, 5.0, 120.0, 0.02), [16, 32, 16]);
        let later = begin + Duration::from_secs(5);
        assert_eq!(windows(&mut window, later, 60.0, 10_000.0, 0.08)[..5], [16, 32, 64, 128, 256]);
        assert!(window.bytes <= MAX_WINDOW);
    }

    #[test]
    fn a_window_that_does_not_bound_stays_as_it_is() {
        let begin = Instant::now();
        let mut window = Window::default();
        for second in 1..1000 {
            window.count_arrived(MIN_WINDOW, begin + Duration::from_secs(second), second % 2 == 0);
        }
        assert_eq!(window.bytes, MIN_WINDOW);
    }

    fn entered(limit: &ByteLimit, bytes: u64) -> Option<InFlightPermit<'_>> {
        match pin!(limit.enter(bytes)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(passage) => passage,
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_request_that_hangs_holds_up_nobody_for_long() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let limit = ByteLimit::default();
        runtime.block_on(async {
            let passage = limit.enter(MIB).await.unwrap();
            let (answer, passage) = passage.held_for(async { 1 }).await;
            assert!(answer == 1 && passage.is_some());
            drop(passage);
            let hanging = limit.enter(MIB).await.unwrap();
            // Ends once it no longer counts.
            let all = async {
                while limit.free.available_permits() < units(MIN_WINDOW) as usize {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            assert!(hanging.held_for(all).await.1.is_none());
        });
    }

    #[test]
    fn no_more_is_on_its_way_than_the_window_also_when_it_became_narrower() {
        let limit = ByteLimit::default();
        let all: Vec<_> = (0..16).map(|_| entered(&limit, MIB).unwrap()).collect();
        assert!(entered(&limit, 1).is_none());
        limit.lock().window.bytes = 2 * MIN_WINDOW;
        limit.free.add_permits(units(MIN_WINDOW) as usize);
        let more: Vec<_> = (0..16).map(|_| entered(&limit, MIB).unwrap()).collect();
        assert!(entered(&limit, 1).is_none());
        // A wider window brought no more: what comes back is taken out.
        let begin = Instant::now();
        {
            let mut state = limit.lock();
            state.window.narrower = Some(f64::MAX);
            state.window.since = Some(begin);
            state.window.came = 2 * MIN_WINDOW;
        }
        limit.count_arrived(1, begin + Duration::from_secs(1));
        assert_eq!(limit.lock().window.bytes, MIN_WINDOW);
        assert_eq!(limit.lock().owed, units(MIN_WINDOW) as usize);
        drop(more);
        assert!(entered(&limit, 1).is_none());
        assert_eq!(limit.lock().owed, 0);
        drop(all);
        assert_eq!(limit.free.available_permits(), units(MIN_WINDOW) as usize);
        // The longest range counts as a piece, so that it can always be asked for.
        assert!(entered(&limit, u64::MAX).is_some());
    }
}
