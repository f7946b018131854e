//! The memory that a loader holds at most, in words.

use std::fmt;
use wellread_store::words::counted;

/// The memory that a loader holds at most: the parts of its bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// The bound that was set.
    pub limit: usize,
    /// Batches: those ahead, and the one delivered last.
    pub batches: usize,
    /// Bytes of a batch.
    pub bytes_per_batch: usize,
    /// Threads that read.
    pub threads: usize,
    /// Bytes that each thread may use for itself.
    pub bytes_per_thread: usize,
    /// The part of these for targets.
    pub(crate) target_bytes_per_thread: usize,
    /// Bytes that threads share for images larger than most.
    pub shared_bytes: usize,
    /// Bytes of the caches of the dataset.
    pub cache_bytes: usize,
    /// Bytes of decoded pages that the store may keep.
    pub page_cache_bytes: usize,
    /// Bytes of files that are fetched ahead from remote places.
    pub prefetch_bytes: usize,
    /// A sentence about the choices that were lowered to stay within the limit.
    pub lowered: Option<String>,
}

impl MemoryUse {
    /// Bytes that are held at most.
    pub const fn total(&self) -> usize {
        let caches = self.cache_bytes + self.page_cache_bytes + self.prefetch_bytes;
        self.batches * self.bytes_per_batch
            + self.threads * self.bytes_per_thread
            + self.shared_bytes
            + caches
    }
}

impl fmt::Display for MemoryUse {
    /// `up to 61.2 MiB of 64 MiB: 5 batches of 9.2 MiB, 2 threads with 3.5 MiB, caches 8 MiB`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "up to {} of {}: {} of {}, {} with {}",
            Bytes(self.total()),
            Bytes(self.limit),
            counted(self.batches, "batch"),
            Bytes(self.bytes_per_batch),
            counted(self.threads, "thread"),
            Bytes(self.bytes_per_thread),
        )?;
        for (bytes, what) in [
            (self.shared_bytes, "for larger images"),
            (self.cache_bytes, "for caches"),
            (self.page_cache_bytes, "for decoded pages"),
            (self.prefetch_bytes, "for what is fetched ahead"),
        ] {
            if bytes > 0 {
                write!(f, ", {} {what}", Bytes(bytes))?;
            }
        }
        self.lowered.as_ref().map_or(Ok(()), |lowered| write!(f, "; {lowered}"))
    }
}

/// An amount of memory as people read it.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        let unit = (self.0.max(1).ilog2() as usize / 10).min(units.len() - 1);
        let number = self.0 as f64 / (1u64 << (10 * unit)) as f64;
        let digits = usize::from(unit > 0 && number.fract() != 0.0);
        write!(f, "{number:.digits$} {}", units[unit])
    }
}

/// The same, not less than there is: an amount to be given. In KiB at least, with tenths.
pub(super) struct RoundedUpBytes(pub(super) usize);

impl fmt::Display for RoundedUpBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        let unit = (self.0.max(1).ilog2() as usize / 10).clamp(1, units.len());
        let tenths = (self.0 as u128 * 10).div_ceil(1 << (10 * unit));
        let (whole, tenth) = (tenths / 10, tenths % 10);
        let unit = units[unit - 1];
        if tenth == 0 { write!(f, "{whole} {unit}") } else { write!(f, "{whole}.{tenth} {unit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::parse_bytes;

    #[test]
    fn an_amount_to_be_given_is_not_less_than_what_is_needed() {
        let kib = 1 << 10;
        let more =
            [1, 700, kib, kib + 1, 53_800_000, (51 << 20) + kib * 512, (1 << 30) - 1, 1 << 40, 3 << 50];
        for bytes in more {
            let text = RoundedUpBytes(bytes).to_string();
            let given = usize::try_from(parse_bytes(&text).unwrap()).unwrap();
            assert!(given >= bytes && given <= bytes + bytes / 9 + kib, "{bytes}: {text}");
        }
        assert_eq!(RoundedUpBytes((51 << 20) + (300 << 10)).to_string(), "51.3 MiB");
        assert_eq!(RoundedUpBytes((51 << 20) + (310 << 10)).to_string(), "51.4 MiB");
    }
}
