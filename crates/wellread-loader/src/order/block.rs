//! Block shuffle: near-random batches from near-sequential reads.
//!
//! ```text
//!  rows       | block 0 | block 1 | block 2 | block 3 | block 4 | bl. 5 |      the last may be short
//!  permuted   | 3 | 5. | 0 | 4 | 1 | 2 |
//!  windows    [ 3   5.   0 ] [ 4   1   2 ]     the rows of a window come in any order
//! ```
//!
//! A reader may keep the blocks of one window (pages, row groups, chunks) in memory. It then reads each block
//! of the file once, and the images of a batch still come from up to `window` places of the set. Which row a
//! position has is arithmetic on two keyed permutations; there is no array.

use super::Permutation;
use crate::draw::key;

/// A permutation of `0..n` that keeps neighbours near each other in time. Blocks of `rows` neighbours are
/// permuted, and rows are shuffled among the blocks of a window.
///
/// ```
/// use wellread_loader::order::BlockPermutation;
/// let p = BlockPermutation::new(1000, 10, 4, 42, 0);
/// // The first window holds four blocks of ten rows.
/// let mut blocks: Vec<usize> = (0..40).map(|i| p.at(i) / 10).collect();
/// blocks.sort_unstable();
/// blocks.dedup();
/// assert_eq!(blocks.len(), 4);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BlockPermutation {
    n: usize,
    /// Rows of a block, and by how many the last block is short of that.
    rows: usize,
    short_by: usize,
    /// Which block stands at which place.
    blocks: Permutation,
    /// Every window has this many blocks, and the first `larger` windows one more. No window is so small that
    /// an epoch would end with the rows of a single block.
    per_window: usize,
    larger: usize,
    /// The place of the short block and its window; positions after that window are shifted.
    short_place: usize,
    short_window: usize,
    key: u64,
}

impl BlockPermutation {
    /// The permutation of `0..n` in blocks of `rows` and windows of up to `window` blocks, both at least 1, for
    /// a seed and an epoch.
    pub fn new(n: usize, rows: usize, window: usize, seed: u64, epoch: u64) -> Self {
        let rows = rows.clamp(1, n.max(1));
        let count = n.div_ceil(rows).max(1);
        let windows = count.div_ceil(window.clamp(1, count));
        let key = key([seed, epoch, 0x0062_6c6f_636b]);
        let blocks = Permutation::keyed(count, key);
        let mut this = Self {
            n,
            rows,
            short_by: count * rows - n,
            blocks,
            per_window: count / windows,
            larger: count % windows,
            short_place: blocks.position_of(count - 1),
            short_window: 0,
            key,
        };
        this.short_window = this.window_of(this.short_place);
        this
    }

    /// The window that a place of a block belongs to.
    fn window_of(&self, place: usize) -> usize {
        let in_larger = self.larger * (self.per_window + 1);
        if place < in_larger {
            place / (self.per_window + 1)
        } else {
            self.larger + (place - in_larger) / self.per_window
        }
    }

    /// The first place of a window.
    fn first_block(&self, window: usize) -> usize {
        window * self.per_window + window.min(self.larger)
    }

    /// The first position of a window.
    fn start(&self, window: usize) -> usize {
        let shift = if window > self.short_window { self.short_by } else { 0 };
        self.first_block(window) * self.rows - shift
    }

    /// Where position `i` goes.
    ///
    /// # Panics
    /// When `i` is not below `n`.
    pub fn at(&self, i: usize) -> usize {
        assert!(i < self.n, "position {i} of a permutation of {}", self.n);
        let shift = if i >= self.start(self.short_window + 1) { self.short_by } else { 0 };
        let window = self.window_of((i + shift) / self.rows);
        let (start, end) = (self.start(window), self.start(window + 1));
        let shuffled = Permutation::keyed(end - start, key([self.key, window as u64, 1]));
        let mut inside = shuffled.at(i - start);
        let first = self.first_block(window);
        // Within the short block's window, the blocks after it are shifted as well.
        if window == self.short_window && inside >= (self.short_place - first + 1) * self.rows - self.short_by
        {
            inside += self.short_by;
        }
        self.blocks.at(first + inside / self.rows) * self.rows + inside % self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_row_comes_once_and_near_its_block(
            n in 1usize..2000, rows in 1usize..70, window in 1usize..12, seed: u64, epoch in 0u64..9,
        ) {
            let p = BlockPermutation::new(n, rows, window, seed, epoch);
            let mut seen = vec![false; n];
            // Positions between the first and the last row of a block: no more than its window has.
            let mut first = vec![usize::MAX; n.div_ceil(rows)];
            for i in 0..n {
                let row = p.at(i);
                prop_assert!(!seen[row]);
                seen[row] = true;
                let block = row / rows;
                first[block] = first[block].min(i);
                prop_assert!(i - first[block] < rows * window);
            }
        }
    }

    #[test]
    fn the_short_block_wanders_and_windows_are_even() {
        // 11 blocks of 10, the last of 3 rows; windows of 4, 4 and 3 blocks.
        let places: HashSet<_> =
            (0..100).map(|e| BlockPermutation::new(103, 10, 4, 1, e).short_place).collect();
        assert_eq!(places.len(), 11);
        let p = BlockPermutation::new(103, 10, 4, 1, 0);
        assert_eq!((0..=3).map(|w| p.first_block(w)).collect::<Vec<_>>(), [0, 4, 8, 11]);
        assert_eq!(p.start(3), 103);
    }

    #[test]
    fn a_window_over_everything_is_a_full_shuffle_and_huge_sets_cost_nothing() {
        let p = BlockPermutation::new(1000, 10, 1000, 1, 0);
        let near = (0..999).filter(|&i| p.at(i).abs_diff(p.at(i + 1)) < 100).count();
        assert!((100..280).contains(&near), "{near} of 999; 190 are to be expected");
        let p = BlockPermutation::new(1_000_000_007, 1000, 64, 1, 0);
        assert!(p.at(1_000_000_006) < 1_000_000_007);
        BlockPermutation::new(5, usize::MAX, usize::MAX, 1, 0).at(4);
    }
}
