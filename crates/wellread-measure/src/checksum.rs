//! Fast checksums that show a benchmark loaded what it claims to have loaded.
//!
//! A loader may deliver rows in any order and from any thread, so the rows' hashes (XXH3, keyed with the row
//! number) are combined by addition: any order and any split over threads gives the same sum, while a row
//! missing, doubled, swapped with another or changed by one bit gives another. It guards against mistakes,
//! not against forgery: use SHA-256 for that.
//!
//! Values are hashed by their bytes in memory. Little-endian machines, which is every one in common use, agree
//! with each other. `-0.0` and `0.0` differ, as do NaNs with different bits.

use bytemuck::NoUninit;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The checksum of a set of numbered rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowChecksum {
    /// Sum of the rows' hashes, modulo 2^64.
    pub sum: u64,
    /// Number of rows added.
    pub rows: u64,
}

/// Hash of one row (any plain numbers: bytes, `u16`, `f32` …) keyed with its number.
#[inline]
pub fn row_hash<T: NoUninit>(row: u64, values: &[T]) -> u64 {
    xxh3_64_with_seed(bytemuck::cast_slice(values), row)
}

impl RowChecksum {
    /// Of no rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row.
    #[inline]
    pub fn add<T: NoUninit>(&mut self, row: u64, values: &[T]) {
        self.sum = self.sum.wrapping_add(row_hash(row, values));
        self.rows += 1;
    }

    /// Adds a batch: `values` holds the rows named by `rows`, one after the other and equally long.
    ///
    /// # Panics
    /// When `values` does not divide evenly over `rows`.
    pub fn add_batch<T: NoUninit>(&mut self, rows: &[u64], values: &[T]) {
        if rows.is_empty() {
            assert!(values.is_empty(), "{} values for no rows", values.len());
            return;
        }
        assert!(values.len().is_multiple_of(rows.len()), "{} values over {} rows", values.len(), rows.len());
        let length = values.len() / rows.len();
        for (i, row) in rows.iter().enumerate() {
            self.add(*row, &values[i * length..(i + 1) * length]);
        }
    }

    /// Joins the checksums of two parts of the rows.
    pub fn merge(&mut self, other: Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.rows += other.rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hash_is_xxh3_and_never_changes() {
        // The published test value of XXH3-64 for an empty input and seed 0.
        assert_eq!(row_hash::<u8>(0, &[]), 0x2D06_8005_38D3_94C2);
        assert_eq!(row_hash(3, &[1.0_f32, 2.0]), row_hash(3, bytemuck::cast_slice::<f32, u8>(&[1.0, 2.0])));
    }

    #[test]
    fn swapped_missing_and_doubled_rows_show() {
        let rows = [[1.0_f32; 8], [2.0; 8], [3.0; 8]];
        let sum = |order: &[(u64, usize)]| {
            let mut checksum = RowChecksum::new();
            for &(number, content) in order {
                checksum.add(number, &rows[content]);
            }
            checksum
        };
        let right = sum(&[(0, 0), (1, 1), (2, 2)]);
        assert_eq!(right, sum(&[(2, 2), (0, 0), (1, 1)]));
        assert_ne!(right, sum(&[(0, 1), (1, 0), (2, 2)]));
        assert_ne!(right, sum(&[(0, 0), (1, 1)]));
        assert_ne!(right, sum(&[(0, 0), (1, 1), (2, 2), (2, 2)]));
        RowChecksum::new().add_batch::<f32>(&[], &[]);
    }

    #[test]
    #[should_panic(expected = "7 values over 2 rows")]
    fn uneven_batches_are_refused() {
        RowChecksum::new().add_batch(&[0, 1], &[0_u8; 7]);
    }

    proptest! {
        #[test]
        fn order_and_split_do_not_matter(
            rows in prop::collection::vec(prop::collection::vec(any::<u16>(), 5), 1..20), split: prop::sample::Index, bit: prop::sample::Index
        ) {
            let numbers: Vec<u64> = (0..rows.len() as u64).collect();
            let flat = rows.concat();
            let mut whole = RowChecksum::new();
            whole.add_batch(&numbers, &flat);

            let at = split.index(rows.len());
            let (mut first, mut second) = (RowChecksum::new(), RowChecksum::new());
            for (number, row) in rows.iter().enumerate().rev() {
                let part = if number < at { &mut first } else { &mut second };
                part.add(number as u64, row);
            }
            second.merge(first);
            prop_assert_eq!(whole, second);

            let mut flipped = flat;
            let bit = bit.index(flipped.len() * 16);
            flipped[bit / 16] ^= 1 << (bit % 16);
            let mut other = RowChecksum::new();
            other.add_batch(&numbers, &flipped);
            prop_assert_ne!(whole, other);
        }
    }
}
