//! Percentiles of the values of a channel.
//!
//! ```text
//!   values ──key──▶ least, greatest ──▶ counts by key, from the least on ──▶ bin of the rank sought
//!                                          whole numbers: a bin each           ──▶ it is the value
//!                                          floats: a few thousand bins         ──▶ values of the bin, selected
//! ```
//!
//! A key is an integer that ascends with the value. Bins are spread over the keys that there are. So those of a
//! narrow range are told apart as finely as those of a wide one.

#![allow(clippy::inline_always)]

use crate::simd::{Kernel, Level, dispatch};

/// Buffers that are reused from channel to channel.
#[derive(Debug, Default)]
pub(crate) struct Percentiles {
    counts: Vec<u64>,
    /// The values in the bin of a rank.
    candidates: Vec<f32>,
}

/// A share as a percentile, without digits that the factor or single precision alone brings.
pub(crate) fn percent(share: f64) -> f64 {
    (share * 1e7).round() / 1e5
}

/// Most bins: one for each 16-bit number.
const MAX_BINS: usize = 1 << 16;
/// Bins of floats.
const FLOAT_BINS: u32 = 12;
/// Tables that take turns where there are few bins: adding to the same bin again and again has to wait for itself.
const TABLES: usize = 4;
/// Bins of which there are several tables, that still fit the first cache but one.
const MAX_BINS_FOR_TABLES: usize = 1 << 12;

/// Bytes of the tables, at most.
pub(crate) const TABLE_BYTES: usize = MAX_BINS * size_of::<u64>();

/// An integer that ascends with a value.
trait SortKey {
    /// Whether each value has a bin of its own.
    const IS_EXACT: bool;
    fn of(value: f32) -> u32;
    fn value(key: u32) -> f32;
}

/// The key of whole numbers that 16 bits hold, with or without sign.
struct IntegerKey;

impl SortKey for IntegerKey {
    const IS_EXACT: bool = true;

    #[inline(always)]
    fn of(value: f32) -> u32 {
        // 2^23 + 2^15: a value added to that stands in the lowest bits. In range, as whoever chose this key knows;
        // anything else would be a wrong number, not a wrong place.
        (value + 8_421_376.0).to_bits() & 0x1_ffff
    }

    #[inline(always)]
    fn value(key: u32) -> f32 {
        (key as i32 - (1 << 15)) as f32
    }
}

/// The key of all finite floats, in their total order.
struct FloatKey;

impl SortKey for FloatKey {
    const IS_EXACT: bool = false;

    #[inline(always)]
    fn of(value: f32) -> u32 {
        let bits = value.to_bits();
        bits ^ (((bits as i32 >> 31) as u32) | 0x8000_0000)
    }

    #[inline(always)]
    fn value(key: u32) -> f32 {
        f32::from_bits(if key >> 31 == 1 { key & 0x7fff_ffff } else { !key })
    }
}

impl Percentiles {
    /// Percentiles of the finite values, interpolated between neighbours as NumPy does; 0 where there are none.
    /// `is_whole` promises whole numbers from -32768 to 65535.
    pub(crate) fn percentiles<'a, R: Iterator<Item = &'a [f32]>>(
        &mut self,
        level: Level,
        runs: impl Fn() -> R,
        percents: [f64; 2],
        is_whole: bool,
    ) -> [f64; 2] {
        if is_whole {
            self.by_sort_key::<IntegerKey, R>(level, runs, percents)
        } else {
            self.by_sort_key::<FloatKey, R>(level, runs, percents)
        }
    }

    fn by_sort_key<'a, K: SortKey, R: Iterator<Item = &'a [f32]>>(
        &mut self,
        level: Level,
        runs: impl Fn() -> R,
        percents: [f64; 2],
    ) -> [f64; 2] {
        let mut range = KeyRange { least: u32::MAX, most: 0, numbers: 0 };
        for run in runs() {
            dispatch(level, FindKeyRange::<K> { run, range: &mut range, key: std::marker::PhantomData });
        }
        let KeyRange { least, most, numbers } = range;
        let Some(last) = numbers.checked_sub(1) else { return [0.0; 2] };
        let bits = u32::BITS - (most - least).leading_zeros();
        let shift = if K::IS_EXACT { 0 } else { bits.saturating_sub(FLOAT_BINS) };
        let bins = ((most - least) >> shift) as usize + 1;
        let tables = if bins <= MAX_BINS_FOR_TABLES { TABLES } else { 1 };
        self.counts.clear();
        self.counts.reserve(MAX_BINS.max(bins));
        self.counts.resize(bins * tables, 0);
        for run in runs() {
            let counts = &mut self.counts[..];
            dispatch(
                level,
                CountBins::<K> { run, least, shift, bins, counts, key: std::marker::PhantomData },
            );
        }
        let (counts, others) = self.counts.split_at_mut(bins);
        for other in others.chunks_exact(bins) {
            counts.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
        }
        percents.map(|percent| {
            let at = percent / 100.0 * last as f64;
            let (mut rank, fraction) = (at as u64, at.fract());
            let mut bin = 0;
            while rank >= self.counts[bin] {
                rank -= self.counts[bin];
                bin += 1;
            }
            let mut next = bin;
            if fraction > 0.0 && rank + 1 == self.counts[bin] {
                // The neighbour is the least of the next bin that holds any.
                next = (bin + 1..bins).find(|&i| self.counts[i] > 0).unwrap_or(bin);
            }
            let (low, high) = if shift == 0 {
                (K::value(least + bin as u32), K::value(least + next as u32))
            } else {
                let start = |bin: usize| least + ((bin as u32) << shift);
                let range = [start(bin), start(next).saturating_add((1 << shift) - 1)];
                self.candidates.clear();
                for run in runs() {
                    dispatch(
                        level,
                        CollectInRange::<K> {
                            run,
                            range,
                            found: &mut self.candidates,
                            key: std::marker::PhantomData,
                        },
                    );
                }
                let (_, low, above) = self.candidates.select_nth_unstable_by(rank as usize, f32::total_cmp);
                (*low, above.iter().fold(f32::INFINITY, |a, b| a.min(*b)))
            };
            let low = f64::from(low);
            if fraction == 0.0 { low } else { low + (f64::from(high) - low) * fraction }
        })
    }
}

struct KeyRange {
    least: u32,
    most: u32,
    /// Finite values.
    numbers: u64,
}

/// Values that are looked at together.
const LANES: usize = 16;

/// The least and greatest key.
struct FindKeyRange<'a, K> {
    run: &'a [f32],
    range: &'a mut KeyRange,
    key: std::marker::PhantomData<K>,
}

impl<K: SortKey> Kernel for FindKeyRange<'_, K> {
    #[inline(always)]
    fn run(self) {
        let (mut least, mut most, mut others) = ([u32::MAX; LANES], [0u32; LANES], [0u64; LANES]);
        let mut add = |i: usize, v: f32| {
            let (key, is_finite) = (K::of(v), v.is_finite());
            least[i] = least[i].min(if is_finite { key } else { u32::MAX });
            most[i] = most[i].max(if is_finite { key } else { 0 });
            others[i] += u64::from(!is_finite);
        };
        let (blocks, rest) = self.run.as_chunks::<LANES>();
        for block in blocks {
            for (i, v) in block.iter().enumerate() {
                add(i, *v);
            }
        }
        for (i, v) in rest.iter().enumerate() {
            add(i, *v);
        }
        let KeyRange { least: all_least, most: all_most, numbers } = self.range;
        *all_least = least.into_iter().fold(*all_least, u32::min);
        *all_most = most.into_iter().fold(*all_most, u32::max);
        *numbers += self.run.len() as u64 - others.iter().sum::<u64>();
    }
}

/// Counts values by bin, in one table or in several by turns.
struct CountBins<'a, K> {
    run: &'a [f32],
    least: u32,
    shift: u32,
    bins: usize,
    counts: &'a mut [u64],
    key: std::marker::PhantomData<K>,
}

impl<K: SortKey> Kernel for CountBins<'_, K> {
    #[inline(always)]
    fn run(self) {
        let Self { run, least, shift, bins, counts, .. } = self;
        // Numbers that are not finite have a bin beyond the last.
        let bin = |v: f32| if v.is_finite() { K::of(v).wrapping_sub(least) >> shift } else { u32::MAX };
        let (blocks, rest) = run.as_chunks::<LANES>();
        let (first, others) = counts.split_at_mut(bins);
        let add = |table: &mut [u64], bin: u32| {
            if let Some(n) = table.get_mut(bin as usize) {
                *n += 1;
            }
        };
        let mut at = [0u32; LANES];
        if others.is_empty() {
            for block in blocks {
                for (at, v) in at.iter_mut().zip(block) {
                    *at = bin(*v);
                }
                for at in at {
                    add(first, at);
                }
            }
        } else {
            let (b, others) = others.split_at_mut(bins);
            let (c, d) = others.split_at_mut(bins);
            for block in blocks {
                for (at, v) in at.iter_mut().zip(block) {
                    *at = bin(*v);
                }
                for [w, x, y, z] in at.as_chunks::<TABLES>().0 {
                    add(first, *w);
                    add(b, *x);
                    add(c, *y);
                    add(d, *z);
                }
            }
        }
        for v in rest {
            add(first, bin(*v));
        }
    }
}

/// Collects the values whose keys are in a range.
struct CollectInRange<'a, K> {
    run: &'a [f32],
    /// The first and the last.
    range: [u32; 2],
    found: &'a mut Vec<f32>,
    key: std::marker::PhantomData<K>,
}

impl<K: SortKey> Kernel for CollectInRange<'_, K> {
    #[inline(always)]
    fn run(self) {
        let [first, last] = self.range;
        let is_near = |v: f32| K::of(v).wrapping_sub(first) <= last - first && v.is_finite();
        let (blocks, rest) = self.run.as_chunks::<LANES>();
        for block in blocks {
            // Most blocks have none.
            if block.iter().fold(false, |any, v| any | is_near(*v)) {
                self.found.extend(block.iter().copied().filter(|v| is_near(*v)));
            }
        }
        self.found.extend(rest.iter().copied().filter(|v| is_near(*v)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All values sorted, and two neighbours interpolated.
    fn expected(values: &[f32], percent: f64) -> f64 {
        let mut numbers: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
        numbers.sort_unstable_by(f32::total_cmp);
        let Some(last) = numbers.len().checked_sub(1) else { return 0.0 };
        let at = percent / 100.0 * last as f64;
        let (low, high) =
            (f64::from(numbers[at as usize]), f64::from(numbers[(at.ceil() as usize).min(last)]));
        if at.fract() == 0.0 { low } else { low + (high - low) * at.fract() }
    }

    fn check(percentiles: &mut Percentiles, values: &[f32], percents: [f64; 2], is_whole: bool) {
        let runs = || values.chunks(values.len().div_ceil(3).max(1));
        for level in Level::available() {
            let got = percentiles.percentiles(level, runs, percents, is_whole);
            for (got, percent) in got.into_iter().zip(percents) {
                let expected = expected(values, percent);
                assert!(
                    got == expected || got.is_nan() && expected.is_nan(),
                    "{got} {expected} {percent} {level:?}"
                );
            }
        }
    }

    fn percents() -> impl Strategy<Value = [f64; 2]> {
        let one = || prop_oneof![0.0f64..100.0, Just(0.0), Just(100.0), Just(50.0)];
        [one(), one()]
    }

    proptest! {
        #[test]
        fn whole_numbers_are_ranked_exactly(
            values in prop_oneof![
                prop::collection::vec(0i32..=65535, 0..600),
                prop::collection::vec(-32768i32..=32767, 0..600),
                prop::collection::vec(0i32..=255, 0..600),
                prop::collection::vec(1000i32..1003, 1..90),
            ],
            percents in percents(),
        ) {
            let values: Vec<f32> = values.into_iter().map(|v| v as f32).collect();
            let mut percentiles = Percentiles::default();
            check(&mut percentiles, &values, percents, true);
            check(&mut percentiles, &values, percents, false);
        }

        #[test]
        fn floats_are_ranked_exactly(
            values in prop_oneof![
                prop::collection::vec(any::<f32>(), 0..600),
                prop::collection::vec(0f32..1.0, 0..3000),
                prop::collection::vec(-1f32..1.0, 0..600),
                prop::collection::vec(prop_oneof![Just(0.0f32), Just(-0.0), Just(f32::NAN), Just(f32::INFINITY), Just(1e-40)], 0..60),
            ],
            percents in percents(),
        ) {
            check(&mut Percentiles::default(), &values, percents, false);
        }
    }

    #[test]
    fn keys_ascend_and_come_back() {
        let values = [f32::NEG_INFINITY, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        assert!(values.is_sorted_by_key(|v| FloatKey::of(*v)));
        assert!(values.iter().all(|v| FloatKey::value(FloatKey::of(*v)).to_bits() == v.to_bits()));
        for v in -32768i32..=65535 {
            assert_eq!(IntegerKey::value(IntegerKey::of(v as f32)), v as f32);
        }
    }
}
