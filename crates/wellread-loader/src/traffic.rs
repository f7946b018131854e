//! How much is read of files for the pixels that batches hold.

use std::sync::atomic::{AtomicU64, Ordering};
use wellread_store::place::LinkUse;

/// Bytes read, and bytes of stored pixels that went into batches.
///
/// The count is taken where files are read ([`wellread_store::place`]). It has compressed bytes where pixels are
/// compressed. It has all of a chunk or page of which a part was needed, and nothing for pixels that a cache still had. For
/// Vortex's mapped files it has the rows' share of a chunk's bytes. Bytes that DuckDB reads in threads of its own,
/// because it is not read directly, are not counted.
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

/// The bytes that a loader has read, and their link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoaderStats {
    /// Bytes read of files, and bytes of pixels used.
    pub traffic: Traffic,
    /// Requests, bytes received and seconds waited since the loader was built, of a set behind a network; `None` of sets on this
    /// machine. They are the process's: of loaders that read at the same time each has the sum.
    pub link: Option<LinkUse>,
}

impl LoaderStats {
    /// Bytes read for each byte of pixels used: over the link where there is one, otherwise of files. `None` where nothing was
    /// counted.
    pub fn bytes_read_per_used(&self) -> Option<f64> {
        let read = self.link.map_or(self.traffic.read, |link| link.bytes);
        Traffic { read, ..self.traffic }.amplification()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_over_a_link_count_where_there_is_one() {
        let traffic = Traffic { read: 30, used: 20 };
        let local = LoaderStats { traffic, link: None };
        assert_eq!(local.bytes_read_per_used(), Some(1.5));
        let link = Some(LinkUse { requests: 2, bytes: 60, waited_s: 0.5 });
        assert_eq!(LoaderStats { traffic, link }.bytes_read_per_used(), Some(3.0));
        assert_eq!(LoaderStats::default().bytes_read_per_used(), None);
    }
}
