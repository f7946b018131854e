//! Which positions of an epoch each batch of each rank holds.
//!
//! ```text
//!  positions   0 ........ B ........ 2B ....... 3B ....... 4B ...... n      two ranks, batches of B
//!  step 0      [ rank 0   ][ rank 1   ]
//!  step 1                              [ rank 0  ][ rank 1  ]
//!  last step                                                [r 0][r 1]      what is left, in equal parts
//! ```
//!
//! All ranks take the same steps, so one number gives the place in an epoch: the position that all of them
//! have reached. Another number of ranks or another batch size goes on from there.
//!
//! The batches of one rank may be delivered by several processes in turns (torch's worker processes). Each has every
//! so-many-th of them, and counts its own.

use std::ops::Range;

/// The treatment of the images that do not divide evenly among the ranks: fewer than there are ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uneven {
    /// They are left out of the epoch (of a shuffled order, others in each epoch).
    #[default]
    DropLast,
    /// The first images of the order come again, so that every rank has one of them.
    Pad,
}

/// The batches of one rank, or of one of the processes that take turns with them, from some position of an epoch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankBatches {
    /// Images of the epoch.
    pub(crate) images: usize,
    /// Position of the first.
    pub(crate) first: usize,
    /// Images of a full batch.
    pub(crate) batch_size: usize,
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) uneven: Uneven,
    /// Whether the last step is left out where it is not full.
    pub(crate) drop_last: bool,
    /// Which of the processes that take turns it is, and their number.
    pub(crate) turn: usize,
    pub(crate) turns: usize,
}

impl RankBatches {
    /// Images of a full step of all ranks.
    fn stride(&self) -> usize {
        self.batch_size.saturating_mul(self.world)
    }

    /// Number of full steps, of all turns, and how many images each rank has in the last one that is not full.
    fn parts(&self) -> (usize, usize) {
        let left = self.images - self.first;
        let (full, tail) = (left / self.stride(), left % self.stride());
        let share = match (self.drop_last, self.uneven) {
            (true, _) => 0,
            (false, Uneven::DropLast) => tail / self.world,
            (false, Uneven::Pad) => tail.div_ceil(self.world),
        };
        (full, share)
    }

    /// How many of so many batches are this turn's.
    fn batches_of_turn(&self, batches: usize) -> usize {
        batches.saturating_sub(self.turn).div_ceil(self.turns)
    }

    /// Batches of this rank and turn; those of all ranks are as many.
    pub(crate) fn len(&self) -> usize {
        let (full, share) = self.parts();
        self.batches_of_turn(full + usize::from(share > 0))
    }

    /// Images of this rank and turn.
    pub(crate) fn total(&self) -> usize {
        let (full, share) = self.parts();
        let has_last = full % self.turns == self.turn;
        self.batches_of_turn(full) * self.batch_size + if has_last { share } else { 0 }
    }

    /// Positions of batch `batch` of this rank and turn. Where the last step is padded, positions from [`Self::images`]
    /// on stand for those from 0 on.
    pub(crate) fn positions(&self, batch: usize) -> Range<usize> {
        let (full, share) = self.parts();
        let step = batch * self.turns + self.turn;
        let size = if step < full { self.batch_size } else { share };
        let start = self.reached(step) + self.rank * size;
        start..start + size
    }

    /// The position that the ranks have reached together after so many steps.
    fn reached(&self, steps: usize) -> usize {
        self.first + steps.saturating_mul(self.stride()).min(self.images - self.first)
    }

    /// The position that the ranks have reached together after `batches` batches of each turn.
    pub(crate) fn after(&self, batches: usize) -> usize {
        self.reached(batches.saturating_mul(self.turns))
    }

    /// The number of this turn's batches before [`Self::first`], so that those of a resumed epoch are counted as they
    /// would have been.
    pub(crate) fn before(&self) -> usize {
        self.first.div_ceil(self.stride().saturating_mul(self.turns))
    }

    /// The number in the rank's epoch of this turn's batch `batch`.
    pub(crate) fn number(&self, batch: usize) -> usize {
        self.first.div_ceil(self.stride()) + batch * self.turns + self.turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rank_batches() -> impl Strategy<Value = RankBatches> {
        (1usize..200, 1usize..20, 1usize..7, any::<bool>(), any::<bool>()).prop_map(
            |(images, batch_size, world, pad, drop_last)| RankBatches {
                images,
                first: 0,
                batch_size,
                rank: 0,
                world,
                uneven: if pad { Uneven::Pad } else { Uneven::DropLast },
                drop_last,
                turn: 0,
                turns: 1,
            },
        )
    }

    /// Positions of all ranks from a step on.
    fn all(batches: RankBatches) -> Vec<usize> {
        let ranks = (0..batches.world).map(|rank| RankBatches { rank, ..batches });
        let mut all: Vec<usize> =
            ranks.flat_map(|s| (0..s.len()).flat_map(move |b| s.positions(b))).collect();
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn ranks_have_equal_parts_that_make_the_whole(batches in rank_batches()) {
            for rank in 0..batches.world {
                let s = RankBatches { rank, ..batches };
                let sizes: Vec<usize> = (0..s.len()).map(|b| s.positions(b).len()).collect();
                prop_assert_eq!(sizes.iter().sum::<usize>(), s.total());
                prop_assert_eq!(s.total(), batches.total());
                prop_assert!(sizes.iter().rev().skip(1).all(|&n| n == s.batch_size));
                prop_assert!(sizes.last().is_none_or(|&n| 0 < n && n <= s.batch_size));
            }
            let all = all(batches);
            // Each position once, from 0 on, with less than a rank's worth too few or too many.
            prop_assert_eq!(&all, &(0..all.len()).collect::<Vec<_>>());
            match (batches.drop_last, batches.uneven) {
                (true, _) => prop_assert!(batches.images - all.len() < batches.batch_size * batches.world),
                (false, Uneven::DropLast) => prop_assert!(batches.images - all.len() < batches.world),
                (false, Uneven::Pad) => {
                    prop_assert!(all.len() >= batches.images && all.len() - batches.images < batches.world);
                }
            }
        }

        /// After any number of batches, other batch sizes and ranks have exactly the rest.
        #[test]
        fn what_is_left_does_not_depend_on_who_came_before(
            before in rank_batches(), after in rank_batches(), batches in 0usize..40,
        ) {
            let batches = batches.min(before.len());
            let first = before.after(batches);
            let rest = all(RankBatches { images: before.images, first, uneven: Uneven::Pad, drop_last: false, ..after });
            prop_assert!(rest.len() < before.images - first + after.world);
            prop_assert_eq!(&rest, &(first..first + rest.len()).collect::<Vec<_>>());
            prop_assert!(rest.len() >= before.images - first);
        }
    }

    proptest! {
        /// Taking one batch of each turn after the other gives the batches of one process, also of a resumed epoch.
        #[test]
        fn turns_have_the_batches_of_one(batches in rank_batches(), turns in 1usize..6, after in 0usize..20) {
            let each = |turn| RankBatches { turn, turns, ..batches };
            let of_turns: Vec<_> = (0..batches.len()).map(|b| each(b % turns).positions(b / turns)).collect();
            prop_assert_eq!(&of_turns, &(0..batches.len()).map(|b| batches.positions(b)).collect::<Vec<_>>());
            prop_assert_eq!((0..turns).map(|turn| each(turn).len()).sum::<usize>(), batches.len());
            prop_assert_eq!((0..turns).map(|turn| each(turn).total()).sum::<usize>(), batches.total());
            for whole in (0..turns).map(each) {
                let done = after.min(whole.len());
                let rest = RankBatches { first: whole.after(done), ..whole };
                prop_assert_eq!(rest.len(), whole.len() - done);
                for b in 0..rest.len() {
                    prop_assert_eq!(rest.positions(b), whole.positions(done + b));
                    prop_assert_eq!((rest.before() + b, rest.number(b)), (done + b, whole.number(done + b)));
                }
            }
        }
    }

    #[test]
    fn a_huge_batch_size_is_one_batch() {
        let batches = RankBatches {
            images: 10,
            first: 0,
            batch_size: usize::MAX,
            rank: 1,
            world: 3,
            uneven: Uneven::Pad,
            drop_last: false,
            turn: 0,
            turns: 1,
        };
        assert_eq!((batches.len(), batches.positions(0), batches.after(1)), (1, 4..8, 10));
    }
}
