//! Block shuffle for blocks of different size: groups of rows, such as the cells of an image.
//!
//! ```text
//!  groups     | a a a | b | c c | d d d d | e |
//!  permuted   | d d d d | a a a | e | c c | b |
//!  windows    [ d d d d   a a a ] [ e   c c   b ]     the rows of a window come in any order
//! ```
//!
//! A reader that keeps the images of one window decodes each image once an epoch. The rows of a batch still come from up to
//! `window` images.

use super::Permutation;
use super::grouping::Groups;
use crate::draw::key;

/// One epoch's order of groups, whose rows are mixed within windows.
#[derive(Debug)]
pub(crate) struct MixedEpoch {
    permutation: Permutation,
    /// Positions at which the groups end, place by place.
    ends: Vec<usize>,
    /// How many windows there are: each has as many groups as another, or one more.
    windows: usize,
    key: u64,
}

impl MixedEpoch {
    pub(crate) fn new(groups: &Groups, window: usize, seed: u64, epoch: u64) -> Self {
        let key = key([seed, epoch, 0x006d_6978_6564]);
        let permutation = Permutation::keyed(groups.len(), key);
        let mut end = 0;
        let ends = (0..groups.len())
            .map(|place| {
                end += groups.get(permutation.at(place)).len();
                end
            })
            .collect();
        // No window is so small that an epoch would end with the rows of a single group.
        let windows = groups.len().div_ceil(window.clamp(1, groups.len().max(1)));
        Self { permutation, ends, windows, key }
    }

    /// The place of the group that a position lies in.
    fn group_at(&self, position: usize) -> usize {
        self.ends.partition_point(|&end| end <= position)
    }

    /// The first position of the group at a place.
    fn start(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    pub(crate) fn row(&self, groups: &Groups, position: usize) -> usize {
        let count = self.ends.len();
        // The window that holds place p is the smallest w with (p + 1) windows <= (w + 1) count.
        let window = ((self.group_at(position) + 1) * self.windows - 1) / count;
        let [start, end] = [window, window + 1].map(|window| self.start(window * count / self.windows));
        let shuffled = Permutation::keyed(end - start, key([self.key, window as u64, 1]));
        let chosen = start + shuffled.at(position - start);
        let place = self.group_at(chosen);
        groups.get(self.permutation.at(place))[chosen - self.start(place)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_row_comes_once_and_near_those_of_its_group(
            sizes in prop::collection::vec(1usize..20, 1..40), window in 1usize..9, seed: u64, epoch in 0u64..4,
        ) {
            let mut next = 0;
            let groups: Vec<Vec<usize>> = sizes
                .iter()
                .map(|&n| {
                    next += n;
                    (next - n..next).collect()
                })
                .collect();
            let group_of: Vec<usize> =
                groups.iter().enumerate().flat_map(|(i, rows)| std::iter::repeat_n(i, rows.len())).collect();
            let of = Groups::of(&groups);
            let mixed = MixedEpoch::new(&of, window, seed, epoch);
            let rows: Vec<usize> = (0..next).map(|position| mixed.row(&of, position)).collect();
            prop_assert_eq!(rows.iter().collect::<HashSet<_>>().len(), next);
            // From a group's first row to its last no more groups are met than its window has.
            for group in 0..groups.len() {
                let is_own = |row: &usize| group_of[*row] == group;
                let first = rows.iter().position(is_own).unwrap();
                let last = rows.iter().rposition(is_own).unwrap();
                let met: HashSet<usize> = rows[first..=last].iter().map(|row| group_of[*row]).collect();
                prop_assert!(met.len() <= window, "{} groups, a window of {window}", met.len());
            }
        }
    }

    #[test]
    fn a_window_over_everything_mixes_all_groups() {
        let groups: Vec<Vec<usize>> = (0..10).map(|i| (i * 100..(i + 1) * 100).collect()).collect();
        let of = Groups::of(&groups);
        let mixed = MixedEpoch::new(&of, 100, 1, 0);
        let met: HashSet<usize> = (0..100).map(|position| mixed.row(&of, position) / 100).collect();
        assert_eq!(met.len(), 10);
        let again = MixedEpoch::new(&of, 100, 1, 1);
        assert_ne!([0, 1, 2].map(|p| mixed.row(&of, p)), [0, 1, 2].map(|p| again.row(&of, p)));
    }
}
