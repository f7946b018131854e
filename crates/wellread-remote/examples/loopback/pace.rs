//! Latency of each request, and one bandwidth that all connections share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pace of a link. Both numbers are 0 where there is no limit.
#[derive(Default)]
pub(crate) struct Pace {
    latency_s: AtomicU64,
    bytes_per_s: AtomicU64,
    /// When the link has sent all that was given to it.
    free_at: Mutex<Option<Instant>>,
}

/// The longest time that is believed.
const LONGEST: f64 = 3600.0;

impl Pace {
    pub(crate) fn set_latency(&self, seconds: f64) {
        self.latency_s.store(seconds.clamp(0.0, LONGEST).to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn set_bandwidth(&self, bytes_per_s: f64) {
        self.bytes_per_s.store(bytes_per_s.max(0.0).to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn wait_for_latency(&self) {
        let seconds = f64::from_bits(self.latency_s.load(Ordering::Relaxed));
        if seconds > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(seconds));
        }
    }

    /// Waits until so many bytes are through.
    pub(crate) fn wait_for_bytes(&self, bytes: usize) {
        let rate = f64::from_bits(self.bytes_per_s.load(Ordering::Relaxed));
        if rate <= 0.0 {
            return;
        }
        let now = Instant::now();
        let until = {
            let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let takes = Duration::from_secs_f64((bytes as f64 / rate).min(LONGEST));
            let until = free_at.map_or(now, |free| free.max(now)) + takes;
            *free_at = Some(until);
            until
        };
        std::thread::sleep(until.saturating_duration_since(now));
    }
}
