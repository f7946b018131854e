//! What must be delivered: a hash per row and transform, to verify every run against.
//!
//! The pixels behind it are first compared, format by format, with the SHA-256 list of the prepared set. For
//! the transform `none` the hash is computed here from native pixels by the documented formula, one pixel at a
//! time, without the loader; transforms that draw at random are taken from the loader's single-item path, so
//! that formats, workers and batch sizes are checked against each other.
//!
//! Timed runs compare a sample of each image's values (8, evenly spread), which costs about 1 % of the fastest
//! loading measured; the warm-up run of each variant compares every value.

use anyhow::{Result, bail};
use std::collections::HashMap;
use wellread_image::PixelType;
use wellread_loader::{Dataset, ItemContext, Transform};
use wellread_measure::checksum::row_hash;
use wellread_store::Store;

/// Values of each image that a timed run compares.
const SAMPLED: usize = 8;

/// Hashes of one delivered image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHash {
    /// Over every value.
    pub full: u64,
    /// Over [`SAMPLED`] values.
    pub sampled: u64,
}

impl RowHash {
    /// Of an image as delivered.
    pub fn of(row: usize, values: &[f32]) -> Self {
        Self { full: row_hash(row as u64, values), sampled: sampled(row, values) }
    }
}

fn sampled(row: usize, values: &[f32]) -> u64 {
    let mut some = [0f32; SAMPLED];
    if values.is_empty() {
        return 0;
    }
    for (i, v) in some.iter_mut().enumerate() {
        *v = values[i * (values.len() - 1) / (SAMPLED - 1)];
    }
    row_hash(row as u64, &some)
}

/// Expected hashes of all rows by transform name.
#[derive(Debug, Default)]
pub struct Reference {
    rows: HashMap<String, Vec<RowHash>>,
}

impl Reference {
    /// Computes the hashes of all rows of `store` for each named transform.
    ///
    /// # Errors
    /// A row that cannot be read, or the loader disagreeing with the documented formula.
    pub fn compute(
        store: Box<dyn Store>,
        transforms: &[(String, Transform)],
        seed: u64,
        progress: &dyn Fn(usize, usize),
    ) -> Result<Self> {
        let dataset = Dataset::from_store(store);
        let mut context = ItemContext::new();
        context.set_seed(seed, 0);
        let mut rows: HashMap<String, Vec<RowHash>> = HashMap::new();
        let mut out = Vec::new();
        for row in 0..dataset.len() {
            let (info, pixels) = dataset.read(row)?;
            for (name, transform) in transforms {
                dataset.sample_into(row, transform, &mut out, &mut context)?;
                if *transform == Transform::default().scale_to_unit()
                    && !same(&out, &unit(&pixels, info.dtype))
                {
                    bail!(
                        "row {row}: the loader's floats differ from the documented formula; this is a bug in wellread"
                    );
                }
                rows.entry(name.clone()).or_default().push(RowHash::of(row, &out));
            }
            progress(row + 1, dataset.len());
        }
        Ok(Self { rows })
    }

    /// Whether `values` is what `transform` must give for `row`; `full` compares all of it.
    pub fn agrees(&self, transform: &str, row: usize, values: &[f32], full: bool) -> bool {
        let Some(expected) = self.rows.get(transform).and_then(|rows| rows.get(row)) else { return false };
        if full {
            row_hash(row as u64, values) == expected.full
        } else {
            sampled(row, values) == expected.sampled
        }
    }

    /// One number for the whole set as delivered by `transform`: the sum of the rows' hashes.
    pub fn checksum(&self, transform: &str) -> Option<u64> {
        Some(self.rows.get(transform)?.iter().fold(0u64, |sum, row| sum.wrapping_add(row.full)))
    }
}

/// The documented scale to [0, 1]: `v * k + b` in single precision with `k = 1 / (max - min)`.
fn unit(pixels: &[u8], dtype: PixelType) -> Vec<f32> {
    let (min, max) = dtype.range();
    let n = pixels.len() / dtype.size();
    if dtype.is_float() {
        return (0..n).map(|i| dtype.value_at(pixels, i) as f32).collect();
    }
    let k = (1.0 / (max - min)) as f32;
    let b = (-min / (max - min)) as f32;
    (0..n).map(|i| dtype.value_at(pixels, i) as f32 * k + b).collect()
}

/// Equal bit by bit, except that any NaN equals any NaN and zeros of both signs are equal.
fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
