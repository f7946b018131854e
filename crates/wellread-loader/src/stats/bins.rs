//! Counts of values: of every value of 8- and 16-bit types, else of bins that widen with the value.

use super::document::{Histogram, Percentile};
use wellread_image::PixelType;

/// Bits of a wide value's key: sign, exponent and nine bits of the fraction.
const WIDE_BITS: u32 = 18;
/// Largest error of a wide value taken for the middle of its bin.
pub(super) const WIDE_ERROR: f64 = 1.0 / 1024.0;
/// Bins of the histogram that is handed out.
const HISTOGRAM: usize = 256;

/// Number of bins for a pixel type.
pub(super) const fn bins(dtype: PixelType) -> usize {
    match dtype.size() {
        1 => 1 << 8,
        2 => 1 << 16,
        _ => 1 << WIDE_BITS,
    }
}

/// Whether each bin is one value.
pub(super) const fn is_exact(dtype: PixelType) -> bool {
    dtype.size() <= 2
}

/// The bin of a finite value: bins ascend with values.
#[inline]
pub(super) fn wide_bin(value: f64) -> usize {
    // Adding zero makes -0.0 a 0.0.
    let bits = (value as f32 + 0.0).to_bits();
    let key = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    (key >> (32 - WIDE_BITS)) as usize
}

/// The middle of a wide bin.
fn wide_middle(bin: usize) -> f64 {
    let value = |key: u32| f64::from(f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key }));
    let first = (bin as u32) << (32 - WIDE_BITS);
    let last = first | ((1 << (32 - WIDE_BITS)) - 1);
    let (first, last) = (value(first), value(last));
    // The ends beyond all finite numbers count for the largest of these.
    let within = |v: f64| if v.is_finite() { v } else { f64::from(f32::MAX).copysign(first) };
    f64::midpoint(within(first), within(last))
}

/// Counts of one channel.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    dtype: PixelType,
    counts: Box<[u64]>,
}

impl Counts {
    pub(super) fn new(dtype: PixelType) -> Self {
        Self { dtype, counts: vec![0; bins(dtype)].into() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
    }

    /// Counts one value of a wide type.
    #[inline]
    pub(super) fn count_wide(&mut self, value: f64) {
        self.counts[wide_bin(value)] += 1;
    }

    /// Counts pixels of an 8- or 16-bit type.
    pub(super) fn count_narrow(&mut self, data: &[u8]) {
        // Signed values in order: the lowest first.
        let flip = if matches!(self.dtype, PixelType::I8 | PixelType::I16) {
            1 << (self.dtype.size() * 8 - 1)
        } else {
            0
        };
        if self.dtype.size() == 1 {
            // Four tables: neighbours are often equal, and would wait for each other's count.
            let mut tables = [[0u64; 256]; 4];
            let (quads, rest) = data.as_chunks::<4>();
            for quad in quads {
                for (table, byte) in tables.iter_mut().zip(quad) {
                    table[usize::from(*byte)] += 1;
                }
            }
            for byte in rest {
                tables[0][usize::from(*byte)] += 1;
            }
            for (value, i) in (0..256).zip(0usize..) {
                self.counts[value ^ flip] += tables.iter().map(|table| table[i]).sum::<u64>();
            }
        } else {
            for pixel in data.as_chunks::<2>().0 {
                self.counts[usize::from(u16::from_le_bytes(*pixel)) ^ flip] += 1;
            }
        }
    }

    /// The value that a bin stands for.
    fn value(&self, bin: usize) -> f64 {
        if is_exact(self.dtype) {
            bin as f64 + if self.dtype.is_float() { 0.0 } else { self.dtype.range().0 }
        } else {
            wide_middle(bin)
        }
    }

    /// Values that were counted, ascending, with their counts.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = (f64, u64)> {
        let there = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        there.map(|(bin, n)| (self.value(bin), *n))
    }

    /// Percentiles, between the extremes `ends`.
    pub(super) fn percentiles(&self, percents: &[f64], ends: (f64, f64)) -> Vec<Percentile> {
        let total: u64 = self.counts.iter().sum();
        let Some(last) = total.checked_sub(1) else { return vec![] };
        // Value number `i` in ascending order.
        let nth = |i: u64| {
            let mut before = 0;
            let found = self.values().find(|(_, n)| {
                before += n;
                before > i
            });
            found.map_or(ends.1, |(value, _)| value.clamp(ends.0, ends.1))
        };
        let mut percentiles: Vec<Percentile> = percents
            .iter()
            .map(|&percent| {
                let at = percent / 100.0 * last as f64;
                let (low, fraction) = (nth(at as u64), at.fract());
                let value = if fraction == 0.0 { low } else { low + (nth(at as u64 + 1) - low) * fraction };
                Percentile { percent, value }
            })
            .collect();
        percentiles.sort_by(|a, b| a.percent.total_cmp(&b.percent));
        percentiles
    }

    /// Counts in bins of equal width between the extremes: of whole numbers so few that each has a bin, one each.
    pub(super) fn histogram(&self, (low, high): (f64, f64)) -> Histogram {
        let whole = !self.dtype.is_float();
        let (low, high, bins) = if whole {
            // Bins hold equally many whole numbers, and their middle is one or between two.
            let width = ((high - low + 1.0) / HISTOGRAM as f64).ceil().max(1.0);
            let bins = ((high - low + 1.0) / width).ceil();
            (low - 0.5, low - 0.5 + bins * width, bins as usize)
        } else {
            (low, high, HISTOGRAM)
        };
        let mut counts = vec![0; bins];
        for (value, n) in self.values() {
            let at = ((value - low) / (high - low) * bins as f64) as usize;
            counts[at.min(bins - 1)] += n;
        }
        Histogram { low, high, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wide_bins_ascend_and_are_narrow(a: f32, b: f32) {
            prop_assume!(a.is_finite() && b.is_finite());
            let (low, high) = (f64::from(a.min(b)), f64::from(a.max(b)));
            prop_assert!(wide_bin(low) <= wide_bin(high));
            let middle = wide_middle(wide_bin(low));
            // Below the smallest normal number bins are as wide as just above.
            prop_assert!((middle - low).abs() <= WIDE_ERROR * low.abs().max(1.2e-38), "{low} {middle}");
        }
    }

    #[test]
    fn whole_numbers_have_bins_of_their_own_where_there_is_room() {
        let mut counts = Counts::new(PixelType::I8);
        counts.count_narrow(&[0x80, 0xff, 0, 0, 1, 0x7f]);
        assert_eq!(
            counts.values().collect::<Vec<_>>(),
            [(-128.0, 1), (-1.0, 1), (0.0, 2), (1.0, 1), (127.0, 1)]
        );
        let histogram = counts.histogram((-128.0, 127.0));
        assert_eq!((histogram.low, histogram.high, histogram.counts.len()), (-128.5, 127.5, 256));
        assert_eq!((histogram.counts[0], histogram.counts[128], histogram.counts[255]), (1, 2, 1));
        assert_eq!(counts.histogram((3.0, 3.0)).counts.len(), 1);
    }
}
