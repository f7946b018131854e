//! Counts of values: of every value of 8- and 16-bit types, else of bins that widen with the value.
//!
//! ```text
//!   8, 16 bits ───────────────▶ a count of each value
//!   wider ─┬─ 0, normal f32 ──▶ a table of bins, 2^-9 of the value wide
//!          └─ beyond, below ──▶ a map of bins as wide: few images have such values
//! ```

use super::document::{Histogram, Percentile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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

/// Bits of the fraction that tell bins beyond the table apart.
const FAR_FRACTION_BITS: u32 = 9;
/// Powers of two by which numbers too small to be normal are taken larger.
const FAR_LIFT: u32 = 64;

/// The bin of zero, which has no other value.
const ZERO_BIN: usize = 1 << (WIDE_BITS - 1);

/// Whether the table of bins has a place for a finite value: zero and what `f32` holds with all its bits.
#[inline]
fn is_near(value: f64) -> bool {
    let size = value.abs();
    (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&size) || size == 0.0
}

/// The bin of a finite value that the table has no place for: ascending, negative for negative ones.
fn far_bin(value: f64) -> i64 {
    let size = value.abs();
    // Below the smallest normal number the fraction has fewer bits: made larger, it has all.
    let is_small = size < f64::MIN_POSITIVE;
    let (size, lift) = if is_small { (size * 2f64.powi(FAR_LIFT as i32), 0) } else { (size, FAR_LIFT) };
    let key = (size.to_bits() >> (52 - FAR_FRACTION_BITS)) + u64::from(lift << FAR_FRACTION_BITS);
    if value < 0.0 { -(key as i64) } else { key as i64 }
}

/// The middle of a bin of [`far_bin`].
fn far_middle(bin: i64) -> f64 {
    let key = bin.unsigned_abs();
    let lift = u64::from(FAR_LIFT << FAR_FRACTION_BITS);
    let middle = |key: u64| {
        let first = key << (52 - FAR_FRACTION_BITS);
        let last = first | ((1 << (52 - FAR_FRACTION_BITS)) - 1);
        f64::midpoint(f64::from_bits(first), f64::from_bits(last))
    };
    let is_normal = key >= lift + (1 << FAR_FRACTION_BITS);
    let size = if is_normal { middle(key - lift) } else { middle(key) / 2f64.powi(FAR_LIFT as i32) };
    if bin < 0 { -size } else { size }
}

/// The bin in the table of a value that has a place there: bins ascend with values.
#[inline]
pub(super) fn wide_bin(value: f64) -> usize {
    // Adding zero makes -0.0 a 0.0.
    let bits = (value as f32 + 0.0).to_bits();
    let key = if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    (key >> (32 - WIDE_BITS)) as usize
}

/// The middle of a wide bin.
fn wide_middle(bin: usize) -> f64 {
    if bin == ZERO_BIN {
        return 0.0;
    }
    let value = |key: u32| f64::from(f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key }));
    let first = (bin as u32) << (32 - WIDE_BITS);
    let last = first | ((1 << (32 - WIDE_BITS)) - 1);
    let (first, last) = (value(first), value(last));
    // The ends beyond all finite numbers count for the largest of these.
    let within = |v: f64| if v.is_finite() { v } else { f64::from(f32::MAX).copysign(first) };
    f64::midpoint(within(first), within(last))
}

/// Counts of one channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Kept", try_from = "Kept")]
pub(super) struct Counts {
    dtype: PixelType,
    /// By bin.
    near: Box<[u64]>,
    /// By [`far_bin`], of values that the table has no place for.
    far: BTreeMap<i64, u64>,
}

/// Counts as text: those of bins that hold a value.
#[derive(Serialize, Deserialize)]
struct Kept {
    dtype: PixelType,
    near: Vec<(usize, u64)>,
    far: Vec<(i64, u64)>,
}

impl From<Counts> for Kept {
    fn from(of: Counts) -> Self {
        let near = of.near.iter().copied().enumerate().filter(|(_, n)| *n > 0).collect();
        Self { dtype: of.dtype, near, far: of.far.into_iter().collect() }
    }
}

impl TryFrom<Kept> for Counts {
    type Error = String;

    fn try_from(kept: Kept) -> Result<Self, String> {
        let mut counts = Self::new(kept.dtype);
        for (bin, n) in kept.near {
            let at = counts.near.get_mut(bin).ok_or_else(|| format!("there is no bin {bin}"))?;
            *at = n;
        }
        counts.far = kept.far.into_iter().collect();
        Ok(counts)
    }
}

impl Counts {
    pub(super) fn new(dtype: PixelType) -> Self {
        Self { dtype, near: vec![0; bins(dtype)].into(), far: BTreeMap::new() }
    }

    /// Whether they are of values of this type.
    pub(super) fn is_of(&self, dtype: PixelType) -> bool {
        self.dtype == dtype
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.near.iter_mut().zip(&other.near).for_each(|(a, b)| *a += b);
        for (bin, n) in &other.far {
            *self.far.entry(*bin).or_default() += n;
        }
    }

    /// Counts one finite value of a wide type.
    #[inline]
    pub(super) fn count_wide(&mut self, value: f64) {
        if is_near(value) {
            self.near[wide_bin(value)] += 1;
        } else {
            self.count_far(value);
        }
    }

    #[cold]
    fn count_far(&mut self, value: f64) {
        *self.far.entry(far_bin(value)).or_default() += 1;
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
                self.near[value ^ flip] += tables.iter().map(|table| table[i]).sum::<u64>();
            }
        } else {
            for pixel in data.as_chunks::<2>().0 {
                self.near[usize::from(u16::from_le_bytes(*pixel)) ^ flip] += 1;
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
    pub(super) fn values(&self) -> Vec<(f64, u64)> {
        let there = self.near.iter().enumerate().filter(|(_, n)| **n > 0);
        let mut all: Vec<_> = there.map(|(bin, n)| (self.value(bin), *n)).collect();
        if !self.far.is_empty() {
            all.extend(self.far.iter().map(|(bin, n)| (far_middle(*bin), *n)));
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        all
    }

    /// Percentiles, between the extremes `ends`.
    pub(super) fn percentiles(&self, percents: &[f64], ends: (f64, f64)) -> Vec<Percentile> {
        let values = self.values();
        let total: u64 = values.iter().map(|(_, n)| n).sum();
        let Some(last) = total.checked_sub(1) else { return vec![] };
        // Value number `i` in ascending order.
        let nth = |i: u64| {
            let mut before = 0;
            let found = values.iter().find(|(_, n)| {
                before += n;
                before > i
            });
            found.map_or(ends.1, |&(value, _)| value.clamp(ends.0, ends.1))
        };
        let mut percentiles: Vec<Percentile> = percents
            .iter()
            .map(|&percent| {
                let at = percent / 100.0 * last as f64;
                let (low, fraction) = (nth(at as u64), at.fract());
                let value = if fraction == 0.0 { low } else { between(low, nth(at as u64 + 1), fraction) };
                Percentile { percent, value }
            })
            .collect();
        percentiles.sort_by(|a, b| a.percent.total_cmp(&b.percent));
        percentiles
    }

    /// Counts in bins of equal width between the extremes: of whole numbers so few that each has a bin, one each. None is
    /// narrower than the bins that values were counted in, which would be all that it shows.
    pub(super) fn histogram(&self, (low, high): (f64, f64)) -> Histogram {
        let whole = !self.dtype.is_float();
        let finest = if is_exact(self.dtype) { 0.0 } else { 2.0 * WIDE_ERROR * low.abs().max(high.abs()) };
        let (low, high, bins) = if whole {
            // Bins hold equally many whole numbers, and their middle is one or between two.
            let width = ((high - low + 1.0) / HISTOGRAM as f64).ceil().max(finest.floor()).max(1.0);
            let bins = ((high - low + 1.0) / width).ceil();
            (low - 0.5, low - 0.5 + bins * width, bins as usize)
        } else if finest > 0.0 {
            (low, high, (((high - low) / finest) as usize).clamp(1, HISTOGRAM))
        } else {
            (low, high, HISTOGRAM)
        };
        let mut counts = vec![0; bins];
        // Halves where the whole range is no number.
        let by = if (high - low).is_finite() { 1.0 } else { 0.5 };
        for (value, n) in self.values() {
            let at = ((value * by - low * by) / (high * by - low * by) * bins as f64) as usize;
            counts[at.min(bins - 1)] += n;
        }
        Histogram { low, high, counts }
    }
}

/// A number that far from the first to the second: 0 to 1.
fn between(low: f64, high: f64, fraction: f64) -> f64 {
    let apart = high - low;
    if apart.is_finite() { low + apart * fraction } else { low * (1.0 - fraction) + high * fraction }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wide_bins_ascend_and_are_narrow(a: f32, b: f32) {
            prop_assume!([a, b].iter().all(|v| v.is_normal() || *v == 0.0));
            let (low, high) = (f64::from(a.min(b)), f64::from(a.max(b)));
            prop_assert!(wide_bin(low) <= wide_bin(high));
            let middle = wide_middle(wide_bin(low));
            prop_assert!((middle - low).abs() <= WIDE_ERROR * low.abs(), "{low} {middle}");
        }

        #[test]
        fn values_beyond_the_table_have_bins_as_narrow(a: f64, b: f64, small: u64) {
            let small = f64::from_bits(small >> 12);
            for (a, b) in [(a, b), (a, small), (small, -small)] {
                prop_assume!([a, b].iter().all(|v| v.is_finite() && *v != 0.0));
                let (low, high) = (a.min(b), a.max(b));
                prop_assert!(far_bin(low) <= far_bin(high), "{low} {high}");
                for value in [low, high] {
                    let middle = far_middle(far_bin(value));
                    // The middle is rounded to a number.
                    let error = WIDE_ERROR * value.abs() + 5e-324;
                    prop_assert!((middle - value).abs() <= error, "{value} {middle}");
                }
            }
        }
    }

    #[test]
    fn whole_numbers_have_bins_of_their_own_where_there_is_room() {
        let mut counts = Counts::new(PixelType::I8);
        counts.count_narrow(&[0x80, 0xff, 0, 0, 1, 0x7f]);
        assert_eq!(counts.values(), [(-128.0, 1), (-1.0, 1), (0.0, 2), (1.0, 1), (127.0, 1)]);
        let histogram = counts.histogram((-128.0, 127.0));
        assert_eq!((histogram.low, histogram.high, histogram.counts.len()), (-128.5, 127.5, 256));
        assert_eq!((histogram.counts[0], histogram.counts[128], histogram.counts[255]), (1, 2, 1));
        assert_eq!(counts.histogram((3.0, 3.0)).counts.len(), 1);
    }

    /// They stood in one of 201 bins, at one end.
    #[test]
    fn wide_values_close_to_each_other_have_bins_that_hold_them() {
        let histogram = |dtype: PixelType, values: &[f64]| {
            let mut counts = Counts::new(dtype);
            for value in values {
                counts.count_wide(*value);
            }
            counts.histogram((values[0], values[values.len() - 1])).counts
        };
        let close: Vec<f64> = (0..201).map(|i| 1e6 + f64::from(i)).collect();
        assert_eq!(histogram(PixelType::U32, &close), [201]);
        assert_eq!(histogram(PixelType::F32, &close), [201]);
        assert_eq!(histogram(PixelType::F32, &[0.0, 0.0]).iter().sum::<u64>(), 2);
        // Whole numbers below 1024 have bins of their own, and a wide range has as many bins as ever.
        let few: Vec<f64> = (800..=1000).map(f64::from).collect();
        assert_eq!(histogram(PixelType::I32, &few), [1; 201]);
        let spread: Vec<f64> = (0..=512).map(f64::from).collect();
        assert_eq!(histogram(PixelType::F64, &spread).len(), 256);
    }
}
