//! Row numbers: a dataset's rows are those of its fragments, one after another, without the deleted ones.

use std::ops::Range;
use wellread_store::table::Rows;

/// Rows that are looked up together: bounds the memory that a scan of a large fragment takes.
const BLOCK: usize = 1 << 16;

/// The rows of one fragment.
#[derive(Debug)]
pub(crate) struct FragmentRows {
    /// Number of the first in the dataset.
    first: usize,
    /// How many are there.
    live: usize,
    /// Positions in the fragment of the deleted ones, in ascending order.
    deleted: Vec<u32>,
}

impl FragmentRows {
    /// Position in the fragment of its `n`-th row that is there.
    fn position(&self, n: usize) -> u32 {
        // Before the i-th deleted row, `deleted[i] - i` rows are there.
        let (mut low, mut high) = (0, self.deleted.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.deleted[middle] as usize - middle <= n { low = middle + 1 } else { high = middle }
        }
        (n + low) as u32
    }
}

/// The rows of all fragments.
#[derive(Debug, Default)]
pub(crate) struct DatasetRows {
    fragments: Vec<FragmentRows>,
    len: usize,
}

impl DatasetRows {
    /// Adds a fragment of `physical` rows, of which `deleted` (in ascending order) are gone.
    pub fn push(&mut self, physical: usize, deleted: Vec<u32>) {
        let live = physical.saturating_sub(deleted.len());
        self.fragments.push(FragmentRows { first: self.len, live, deleted });
        self.len += live;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Calls `each(fragment, positions in it)` for stretches of `rows`, in order. `positions` is room for them.
    pub fn stretches<E>(
        &self,
        rows: &Rows<'_>,
        positions: &mut Vec<u32>,
        mut each: impl FnMut(usize, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        while done < rows.len() {
            let row = rows.at(done);
            // The last fragment that starts at or before the row; empty ones start where the next does.
            let index = self.fragments.partition_point(|f| f.first <= row).saturating_sub(1);
            let Some(fragment) = self.fragments.get(index) else { break };
            let end = fragment.first + fragment.live;
            positions.clear();
            while done < rows.len() && positions.len() < BLOCK {
                let row = rows.at(done);
                if row >= end {
                    break;
                }
                positions.push(fragment.position(row - fragment.first));
                done += 1;
            }
            if positions.is_empty() {
                break;
            }
            each(index, positions)?;
        }
        Ok(())
    }
}

/// Ascending positions as ranges of neighbours, none longer than `most`.
pub(crate) fn runs(positions: &[u32], most: u32) -> impl Iterator<Item = Range<u32>> + '_ {
    let mut rest = positions;
    std::iter::from_fn(move || {
        let (&start, _) = rest.split_first()?;
        let length =
            rest.iter().zip(start..start.saturating_add(most)).take_while(|(p, want)| **p == *want).count();
        rest = &rest[length..];
        Some(start..start + length as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_rows_have_no_number() {
        let mut rows = DatasetRows::default();
        rows.push(3, vec![]);
        rows.push(2, vec![0, 1]);
        rows.push(6, vec![0, 2, 3]);
        assert_eq!(rows.len(), 6);
        let seen = |wanted: &Rows<'_>| {
            let mut seen = vec![];
            rows.stretches(wanted, &mut vec![], |fragment, positions| {
                seen.extend(positions.iter().map(|&p| (fragment, p)));
                Ok::<_, ()>(())
            })
            .unwrap();
            seen
        };
        let all = [(0, 0), (0, 1), (0, 2), (2, 1), (2, 4), (2, 5)];
        assert_eq!(seen(&Rows::Range(0..6)), all);
        assert_eq!(seen(&Rows::Range(2..5)), all[2..5]);
        assert_eq!(seen(&Rows::Chosen(&[1, 3, 5])), [all[1], all[3], all[5]]);
        assert_eq!(seen(&Rows::Chosen(&[])), []);
    }

    #[test]
    fn neighbours_are_read_together() {
        let found: Vec<_> = runs(&[0, 1, 2, 5, 7, 8], 2).collect();
        assert_eq!(found, [0..2, 2..3, 5..6, 7..9]);
        assert_eq!(runs(&[], 2).count(), 0);
    }
}
