//! Balanced classes: every class as often as any other, in every batch.
//!
//! Images come in rounds of one image per class, so the share of a class in any run of images is even. This holds whatever the
//! batch size and the number of ranks. A class keeps its place in the round for an epoch. With sixteen classes or
//! more, those of an eighth of the round change places with each other from round to round. So small batches do not
//! always hold the same classes together.
//!
//! The images of a class come in passes over the class, each pass in an order of its own. Passes go on from
//! epoch to epoch: no image of a large class waits forever.

use super::grouping::Groups;
use super::permutation::Permutation;
use crate::draw::key;

/// Classes with their rows, and the number of images of an epoch.
#[derive(Debug)]
pub(crate) struct Balanced {
    pub(crate) classes: Groups,
    pub(crate) images: usize,
}

/// The order of classes in an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalancedEpoch {
    class_order: Permutation,
    seed: u64,
    epoch: u64,
}

impl Balanced {
    pub(crate) fn epoch(&self, seed: u64, epoch: u64) -> BalancedEpoch {
        BalancedEpoch { class_order: Permutation::new(self.classes.len(), seed, epoch), seed, epoch }
    }

    /// Neighbouring places of a round among which classes change from round to round.
    fn segment(classes: usize) -> usize {
        (classes / 8).max(1)
    }

    pub(crate) fn row(&self, epoch: &BalancedEpoch, position: usize) -> usize {
        let count = self.classes.len();
        let (round, mut place) = (position / count, position % count);
        let segment = Self::segment(count);
        if segment > 1 {
            let first = place - place % segment;
            let among = segment.min(count - first);
            let shuffled = Permutation::keyed(
                among,
                key([key([epoch.seed, epoch.epoch, 0x0072_6f75_6e64]), round as u64, first as u64]),
            );
            place = first + shuffled.at(place - first);
        }
        let class = epoch.class_order.at(place);
        let rows = self.classes.get(class);
        // How many images of the class came before, also in earlier epochs.
        let before = u128::from(epoch.epoch) * self.images.div_ceil(count) as u128 + round as u128;
        let (pass, within) = (before / rows.len() as u128, (before % rows.len() as u128) as usize);
        let order = Permutation::keyed(
            rows.len(),
            key([key([epoch.seed, 0x7061_7373, class as u64]), pass as u64, 0]),
        );
        rows[order.at(within)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn balanced(sizes: &[usize], images: usize) -> (Balanced, Vec<usize>) {
        let mut next = 0..;
        let groups: Vec<Vec<usize>> = sizes.iter().map(|&n| next.by_ref().take(n).collect()).collect();
        let class_of =
            sizes.iter().enumerate().flat_map(|(class, &n)| std::iter::repeat_n(class, n)).collect();
        (Balanced { classes: Groups::of(&groups), images }, class_of)
    }

    proptest! {
        /// In any run of images, aligned or not, no class comes more than once more often than another.
        #[test]
        fn shares_are_even(
            sizes in prop::collection::vec(1usize..40, 1..16), batch in 1usize..40, seed: u64, epoch in 0u64..5,
        ) {
            let (balanced, class_of) = balanced(&sizes, 300);
            let epoch = balanced.epoch(seed, epoch);
            let classes: Vec<usize> = (0..300).map(|p| class_of[balanced.row(&epoch, p)]).collect();
            for run in classes.windows(batch) {
                let mut counts = vec![0usize; sizes.len()];
                for &class in run {
                    counts[class] += 1;
                }
                let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
                prop_assert!(most - least <= 1, "{counts:?}");
            }
        }

        /// Each pass over a class has each of its rows once, also across epochs.
        #[test]
        fn passes_are_complete(sizes in prop::collection::vec(1usize..30, 1..8), rounds in 1usize..20, seed: u64) {
            let images = rounds * sizes.len();
            let (balanced, class_of) = balanced(&sizes, images);
            let mut of_class = vec![vec![]; sizes.len()];
            for number in 0..6 {
                let epoch = balanced.epoch(seed, number);
                for position in 0..images {
                    let row = balanced.row(&epoch, position);
                    of_class[class_of[row]].push(row);
                }
            }
            for rows in of_class {
                for pass in rows.chunks(sizes[class_of[rows[0]]]) {
                    let mut distinct = pass.to_vec();
                    distinct.sort_unstable();
                    distinct.dedup();
                    prop_assert_eq!(distinct.len(), pass.len());
                }
            }
        }
    }

    #[test]
    fn many_classes_meet_in_changing_company() {
        let sizes = [3; 96];
        let (balanced, class_of) = balanced(&sizes, 96 * 10);
        let epoch = balanced.epoch(1, 0);
        let rounds: Vec<Vec<usize>> =
            (0..10).map(|r| (0..96).map(|i| class_of[balanced.row(&epoch, r * 96 + i)]).collect()).collect();
        for round in &rounds {
            let mut all = round.clone();
            all.sort_unstable();
            assert_eq!(all, (0..96).collect::<Vec<_>>());
        }
        assert!(rounds.windows(2).all(|r| r[0] != r[1]));
        // A class stays within its segment of 12, so batches of up to 84 never hold one twice.
        let of: Vec<usize> = rounds.concat();
        for run in of.windows(84) {
            let mut distinct = run.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 84);
        }
    }

    #[test]
    fn passes_are_shuffled_anew() {
        let (balanced, _) = balanced(&[30], 90);
        let epoch = balanced.epoch(1, 0);
        let rows: Vec<usize> = (0..90).map(|p| balanced.row(&epoch, p)).collect();
        assert!(rows[..30] != rows[30..60] && rows[30..60] != rows[60..]);
        assert_ne!(rows[..30], (0..30).collect::<Vec<_>>());
        let later = balanced.epoch(1, u64::MAX);
        assert!(balanced.row(&later, 89) < 30);
    }
}
