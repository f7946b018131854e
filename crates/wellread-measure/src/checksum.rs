//! Fast checksums that show a benchmark loaded what it claims to have loaded.
//!
//! A loader may deliver rows in any order and from any thread. So the rows' hashes (XXH3, keyed with the row
//! number) are combined by addition. Any order and any split over threads gives the same sum. A row missing,
//! doubled, swapped with another or changed by one bit gives another. It guards against mistakes, not against
//! forgery: use SHA-256 for that.
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
    /// The checksum of no rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row.
    #[inline]
    pub fn add<T: NoUninit>(&mut self, row: u64, values: &[T]) {
        self.sum = self.sum.wrapping_add(row_hash(row, values));
        self.rows += 1;
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
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_every_bit_does(
            rows in prop::collection::vec(prop::collection::vec(any::<u16>(), 5), 1..20), bit: prop::sample::Index
        ) {
            let sum = |rows: &[Vec<u16>], order: &mut dyn Iterator<Item = usize>| {
                let mut checksum = RowChecksum::new();
                for number in order {
                    checksum.add(number as u64, &rows[number]);
                }
                checksum
            };
            let forwards = sum(&rows, &mut (0..rows.len()));
            prop_assert_eq!(forwards, sum(&rows, &mut (0..rows.len()).rev()));

            let mut flipped = rows.clone();
            let bit = bit.index(rows.len() * 5 * 16);
            flipped[bit / 80][bit % 80 / 16] ^= 1 << (bit % 16);
            prop_assert_ne!(forwards, sum(&flipped, &mut (0..rows.len())));
        }
    }
}
