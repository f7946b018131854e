//! Ticks, and their length in nanoseconds.
//!
//! A span looks at the clock twice, and that is most of what it costs. Ticks are those of the processor's time stamp
//! counter where the kernel itself keeps time by it. It does so only where that counts evenly and alike on all
//! cores. They then cost half of a call to the system. Two looks at both clocks, at the start and the end of a
//! recording, tell how long a tick is. Elsewhere ticks are nanoseconds of [`Instant`], the clock that all figures are
//! taken by.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether ticks are the processor's.
static COUNTER: AtomicBool = AtomicBool::new(false);

/// The zero of nanoseconds of [`Instant`].
static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Below this a tick's length is not known well enough.
const MIN_CALIBRATION_TIME: Duration = Duration::from_millis(2);

/// Now; never 0.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if COUNTER.load(Ordering::Relaxed) {
        // SAFETY: every processor of this architecture has it.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    nanoseconds()
}

fn nanoseconds() -> u64 {
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// Chooses the clock; before the first tick of a recording.
pub(crate) fn choose() {
    nanoseconds();
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let by_counter = cfg!(all(target_os = "linux", target_arch = "x86_64", not(feature = "portable")))
        && std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc");
    COUNTER.store(by_counter, Ordering::Relaxed);
}

/// The clock's name, for the file.
pub(crate) fn name() -> &'static str {
    if COUNTER.load(Ordering::Relaxed) { "time stamp counter" } else { "monotonic clock" }
}

/// Nanoseconds that a look at the clock takes: the least over some hundreds of looks, at the start of a recording.
pub(crate) fn cost() -> f64 {
    const CLOCK_READS: u32 = 64;
    let mut least = f64::INFINITY;
    for _ in 0..16 {
        let begin = Instant::now();
        for _ in 0..CLOCK_READS {
            std::hint::black_box(ticks());
        }
        least = least.min(begin.elapsed().as_nanos() as f64 / f64::from(CLOCK_READS));
    }
    least
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) ticks: u64,
    nanoseconds: u64,
}

impl Anchor {
    /// Looks at both clocks.
    pub(crate) fn now() -> Self {
        // The one of several tries that nothing came between.
        let tries = (0..5).map(|_| {
            let (before, nanoseconds, after) = (ticks(), nanoseconds(), ticks());
            (after - before, Self { ticks: before + (after - before) / 2, nanoseconds })
        });
        tries.min_by_key(|(took, _)| *took).expect("several").1
    }

    /// As [`Self::now`], long enough after `self` to tell a tick's length.
    pub(crate) fn later(self) -> Self {
        let since = Duration::from_nanos(nanoseconds().saturating_sub(self.nanoseconds));
        if let Some(left) = MIN_CALIBRATION_TIME.checked_sub(since) {
            std::thread::sleep(left);
        }
        Self::now()
    }

    /// The function that gives nanoseconds since `self`, once there is a later anchor. It keeps the order of
    /// ticks.
    pub(crate) fn scale(self, end: Self) -> impl Fn(u64) -> u64 {
        let ticks = end.ticks.saturating_sub(self.ticks).max(1);
        let length = end.nanoseconds.saturating_sub(self.nanoseconds) as f64 / ticks as f64;
        move |at| (at.saturating_sub(self.ticks) as f64 * length) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_by_either_clock() {
        let _alone = crate::buffers::ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for by_counter in [false, true] {
            choose();
            COUNTER.fetch_and(by_counter, Ordering::Relaxed);
            let begin = Anchor::now();
            let (before, first) = (Instant::now(), ticks());
            std::thread::sleep(Duration::from_millis(20));
            let (last, took) = (ticks(), before.elapsed().as_nanos() as u64);
            let to = begin.scale(begin.later());
            assert!(first > 0 && to(first) <= to(last));
            let measured = to(last) - to(first);
            // The span lies within what the other clock measured around it; 1 % for how well a tick's length is known.
            assert!((20_000_000 * 99 / 100..=took + took / 100).contains(&measured), "{measured} of {took}");
            assert_eq!(to(0), 0);
        }
        assert!(cost() > 0.0);
    }
}
