//! How much is read of files for the pixels that batches hold.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read, and bytes of stored pixels that went into batches.
///
/// What is read is counted where files are read ([`wellread_store::place`]): compressed bytes where pixels are
/// compressed, all of a chunk or page of which a part was needed, nothing for what a cache still had; of Vortex's mapped files the
/// share of a chunk's bytes that the rows have of it. What DuckDB reads in threads of its own, because it is not read
/// directly, counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of files.
    pub read: u64,
    /// Bytes of pixels, in the stored type, that were asked for: the crop, not the image.
    pub used: u64,
}

impl Traffic {
    /// Read amplification: bytes read for each byte used. Below 1 where pixels are compressed, or crops overlap; `None`
    /// where nothing was counted.
    pub fn amplification(&self) -> Option<f64> {
        (self.read > 0 && self.used > 0).then(|| self.read as f64 / self.used as f64)
    }
}

/// The sum over a loader's threads.
#[derive(Debug, Default)]
pub(crate) struct Counters([AtomicU64; 2]);

impl Counters {
    pub(crate) fn add(&self, traffic: Traffic) {
        self.0[0].fetch_add(traffic.read, Ordering::Relaxed);
        self.0[1].fetch_add(traffic.used, Ordering::Relaxed);
    }

    pub(crate) fn sum(&self) -> Traffic {
        let [read, used] = [0, 1].map(|i: usize| self.0[i].load(Ordering::Relaxed));
        Traffic { read, used }
    }
}
