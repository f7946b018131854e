//! The pixels that must be delivered: a hash per row and transform, to verify every run against.
//!
//! One pass over one copy of the set, each image decoded once. Its pixels are compared with the SHA-256 list of the
//! prepared set, then transformed. For the transform `none`, the hash is computed here from native pixels by the
//! documented formula, one pixel at a time, without the loader. Transforms that draw at random are taken from the
//! loader's single-item path, so that formats, workers and batch sizes are checked against each other.
//!
//! Timed runs compare a sample of each image's values (8, evenly spread), which costs about 1 % of the fastest
//! loading measured. The warm-up run of each variant compares every value.

use crate::choices::Preset;
use anyhow::{Result, bail};
use std::collections::{BTreeSet, HashMap};
use wellread_loader::{Cache, Dataset, ItemContext, Transform};
use wellread_measure::checksum::row_hash;
use wellread_store::checksum::{ImageChecksum, sha256_hex};
use wellread_store::store::RowsAhead;
use wellread_store::words::there_are;
use wellread_store::{RowInfo, Store};

/// Values of each image that a timed run compares.
const SAMPLED_VALUES: usize = 8;

/// Hashes of one delivered image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHash {
    /// Over every value.
    pub full: u64,
    /// Over [`SAMPLED_VALUES`] values.
    pub sampled: u64,
}

impl RowHash {
    /// The hash of an image as delivered.
    pub fn of(row: usize, values: &[f32]) -> Self {
        Self { full: row_hash(row as u64, values), sampled: sampled(row, values) }
    }
}

fn sampled(row: usize, values: &[f32]) -> u64 {
    let mut some = [0f32; SAMPLED_VALUES];
    if values.is_empty() {
        return 0;
    }
    for (i, v) in some.iter_mut().enumerate() {
        *v = values[i * (values.len() - 1) / (SAMPLED_VALUES - 1)];
    }
    row_hash(row as u64, &some)
}

/// Bytes of pixels that are kept while they are transformed in several ways; images beyond are decoded again.
const MAX_KEPT_BYTES: usize = 1 << 28;

/// The pixels that every run must deliver, as hashes.
#[derive(Debug, Default)]
pub struct ExpectedPixels {
    transformed: HashMap<Preset, Vec<RowHash>>,
    sha256: Vec<String>,
    /// [`sparse_hash`] of each row's native pixels.
    native: Vec<u64>,
    /// Pixel types of all rows.
    types: BTreeSet<&'static str>,
}

impl ExpectedPixels {
    /// Compares every row of `store` with `expected` and computes its hashes for each transform.
    ///
    /// # Errors
    /// A row that cannot be read or differs, or the loader disagreeing with the documented formula.
    pub fn compute(
        store: Box<dyn Store>,
        expected: &[ImageChecksum],
        transforms: &[(Preset, Transform)],
        seed: u64,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Self> {
        let ahead = store.hints().rows_per_read;
        let mut dataset = Dataset::from_store(store);
        if !transforms.is_empty() || ahead > 1 {
            dataset = dataset.with_cache(&Cache::Memory { limit: MAX_KEPT_BYTES })?;
        }
        if dataset.len() != expected.len() {
            bail!("{}, not {}", there_are(dataset.len(), "image"), expected.len());
        }
        let mut context = ItemContext::new();
        context.set_seed(seed, 0);
        let mut this = Self::default();
        let mut out = Vec::new();
        let mut asked = RowsAhead::new(dataset.store(), dataset.len());
        for (row, expected) in expected.iter().enumerate() {
            asked.before(row);
            if ahead > 1 && row % ahead == 0 {
                dataset.warm(row..(row + ahead).min(dataset.len()))?;
            }
            let (info, pixels) = dataset.read(row)?;
            let sha256 = sha256_hex(&pixels);
            if sha256 != expected.sha256 {
                bail!("row {row}: pixels differ from those that were written");
            }
            this.sha256.push(sha256);
            this.types.insert(info.dtype.name());
            this.native.push(sparse_hash(row, &pixels));
            for (preset, transform) in transforms {
                dataset.sample_into(row, transform, &mut out, &mut context)?;
                if *transform == Transform::default().scale_to_unit()
                    && !same(&out, &unit(&pixels, info, dataset.store().hints().is_last_mask))
                {
                    bail!(
                        "row {row}: the loader's floats differ from the documented formula; this is a bug in wellread"
                    );
                }
                this.transformed.entry(*preset).or_default().push(RowHash::of(row, &out));
            }
            progress(row + 1, dataset.len());
        }
        Ok(this)
    }

    /// The pixel type that all rows have, if they have one. It may be narrower than the file declares.
    pub fn pixel_type(&self) -> Option<&'static str> {
        self.types.first().copied().filter(|_| self.types.len() == 1)
    }

    /// Whether `values` is what `transform` must give for `row`; `full` compares all of it.
    pub fn agrees(&self, transform: Preset, row: usize, values: &[f32], full: bool) -> bool {
        let Some(expected) = self.transformed.get(&transform).and_then(|rows| rows.get(row)) else {
            return false;
        };
        if full {
            row_hash(row as u64, values) == expected.full
        } else {
            sampled(row, values) == expected.sampled
        }
    }

    /// Whether `pixels` are row `row`'s native pixels: by SHA-256 when `full`, else by [`sparse_hash`].
    pub fn agrees_native(&self, row: usize, pixels: &[u8], full: bool) -> bool {
        if full {
            self.sha256.get(row).is_some_and(|sha256| *sha256 == sha256_hex(pixels))
        } else {
            self.native.get(row) == Some(&sparse_hash(row, pixels))
        }
    }

    /// One number for the whole set as delivered by `transform`: the sum of the rows' hashes.
    pub fn checksum(&self, transform: Preset) -> Option<u64> {
        Some(self.transformed.get(&transform)?.iter().fold(0u64, |sum, row| sum.wrapping_add(row.full)))
    }
}

/// How often each row of a set came, where all of them are to come.
#[derive(Debug)]
pub(crate) struct SeenRows(Vec<usize>);

impl SeenRows {
    /// For a set of so many rows; of none nothing is counted.
    pub(crate) fn of(count: usize) -> Self {
        Self(vec![0; count])
    }

    /// Counts the rows of a batch.
    pub(crate) fn add(&mut self, rows: &[usize]) {
        for &row in rows {
            if let Some(times) = self.0.get_mut(row) {
                *times += 1;
            }
        }
    }

    /// Whether each came so often: a row that takes the place of another has the pixels that it must have.
    pub(crate) fn is_each(&self, often: usize) -> bool {
        self.0.iter().all(|times| *times == often)
    }
}

/// Hash of native pixels for comparisons that must cost nothing: 64 bytes of every 16 KiB, and the length.
fn sparse_hash(row: usize, pixels: &[u8]) -> u64 {
    let mut hash = row_hash(row as u64, &[pixels.len() as u64]);
    for piece in pixels.chunks(16_384) {
        hash = hash.wrapping_mul(31).wrapping_add(row_hash(row as u64, &piece[..piece.len().min(64)]));
    }
    hash
}

/// The documented scale to [0, 1]: `v * k + b` in single precision with `k = 1 / (max - min)`. A mask in the last channel stays as it
/// is.
fn unit(pixels: &[u8], info: RowInfo, is_last_mask: bool) -> Vec<f32> {
    let RowInfo { shape, dtype } = info;
    let value = |i| dtype.value_at(pixels, i) as f32;
    let all = 0..pixels.len() / dtype.size();
    if dtype.is_float() {
        return all.map(value).collect();
    }
    let (min, max) = dtype.range();
    let k = (1.0 / (max - min)) as f32;
    let b = (-min / (max - min)) as f32;
    let [_, channels, z, y, x] = shape.0;
    let is_mask = |i: usize| is_last_mask && i / (z * y * x) % channels == channels - 1;
    all.map(|i| if is_mask(i) { value(i) } else { value(i) * k + b }).collect()
}

/// Equal bit by bit, except that any NaN equals any NaN and zeros of both signs are equal.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::{PixelType, Shape};

    #[test]
    fn a_changed_value_changes_the_hash() {
        let values: Vec<f32> = (0..500).map(|v| v as f32).collect();
        let mut other = values.clone();
        other[123] += 1.0;
        assert_ne!(RowHash::of(1, &values).full, RowHash::of(1, &other).full);
        assert_ne!(RowHash::of(1, &values).sampled, RowHash::of(2, &values).sampled);
        other = values.clone();
        other[499] += 1.0;
        assert_ne!(RowHash::of(1, &values).sampled, RowHash::of(1, &other).sampled);
    }

    #[test]
    fn a_mask_in_the_last_channel_is_not_scaled() {
        // Two time points of two channels and two pixels.
        let info = RowInfo { shape: Shape([2, 2, 1, 1, 2]), dtype: PixelType::U8 };
        let pixels = [255, 0, 1, 0, 51, 255, 0, 1];
        let [masked, scaled] = [true, false].map(|is_last_mask| unit(&pixels, info, is_last_mask));
        assert_eq!([2, 3, 6, 7].map(|i| masked[i]), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!([0, 1, 4, 5].map(|i| masked[i]), [0, 1, 4, 5].map(|i| scaled[i]));
        assert!(scaled[7] < 0.01 && scaled[0] > 0.99);
    }

    #[test]
    fn a_row_that_takes_the_place_of_another_is_seen() {
        let is_each = |rows: &[usize], often| {
            let mut seen = SeenRows::of(3);
            seen.add(rows);
            seen.is_each(often)
        };
        assert!(is_each(&[2, 0, 1], 1) && is_each(&[0, 0, 2, 2, 1, 1], 2));
        assert!(!is_each(&[2, 0, 0], 1) && !is_each(&[0, 0, 2, 1, 1, 1], 2) && !is_each(&[], 1));
        let mut none = SeenRows::of(0);
        none.add(&[7]);
        assert!(none.is_each(1));
    }
}
