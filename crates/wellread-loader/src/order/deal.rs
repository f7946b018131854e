//! How an epoch is dealt to nodes, each of which has a part of its own: position → node and place in its part.
//!
//! ```text
//!  slots       0 ........ node 0 ....... | ....... node 1 ....... n    what a node reads, in one piece
//!  positions   [ r 0 ][ r 1 ]              [ r 2 ][ r 3 ]              step 0: two nodes of two ranks each
//!                     [ r 0 ][ r 1 ]              [ r 2 ][ r 3 ]       step 1
//!  left over                 ..............              ..........    after an interruption, node by node, these are
//!  slots again               0 .... node 0 ..... | ..... node 1 . m    the slots of the next deal: other nodes, ranks, batches
//! ```
//!
//! Steps are those of [`super::Steps`]: ranks take consecutive positions, and those of a node are numbered one after the other.
//! So each step has a run of positions for each node. All of it is arithmetic; nothing is kept per row or per node.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Deals of one epoch that are kept at most. A run with other nodes after that reads as the last deal says.
const MOST_DEALS: usize = 16;

/// How an epoch was dealt from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deal {
    /// The position in the epoch that it begins at.
    pub(crate) first: usize,
    /// Ranks, and nodes that they are on, equally many on each.
    pub(crate) world: usize,
    pub(crate) nodes: usize,
    /// Rows of a batch of each rank.
    pub(crate) batch: usize,
    /// Whether the last step is padded ([`super::Uneven::Pad`]).
    pub(crate) pad: bool,
}

impl Deal {
    /// Rows of a step of all ranks.
    fn stride(&self) -> usize {
        self.batch.saturating_mul(self.world)
    }

    /// Whether another deal goes on as this one would.
    fn continues_as(&self, next: &Self) -> bool {
        Self { first: next.first, ..*self } == *next
            && (next.first - self.first).is_multiple_of(self.stride())
    }

    fn is_possible(&self) -> bool {
        self.world > 0 && self.nodes > 0 && self.batch > 0 && self.world.is_multiple_of(self.nodes)
    }
}

/// The deals of an epoch that goes on with `next` where it was interrupted.
pub(crate) fn follow(before: &[Deal], next: Deal) -> Vec<Deal> {
    // One that begins there has delivered nothing.
    let mut deals: Vec<Deal> = before.iter().copied().filter(|deal| deal.first < next.first).collect();
    let continues = deals.last().is_some_and(|last| last.continues_as(&next));
    if !continues && deals.len() < MOST_DEALS {
        deals.push(next);
    }
    deals
}

/// Whether these may be the deals of an epoch that has come to a position.
pub(crate) fn are_possible(deals: &[Deal], position: usize) -> bool {
    deals.len() <= MOST_DEALS
        && deals.first().is_some_and(|first| first.first == 0)
        && deals.windows(2).all(|pair| pair[0].first < pair[1].first)
        && deals.iter().all(|deal| deal.is_possible() && deal.first <= position)
}

/// A deal of so many images: which positions, counted from its first, are whose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// The position in the epoch that it begins at.
    pub(super) first: usize,
    images: usize,
    nodes: usize,
    /// Positions of a full step, the number of these, and the images that each node has of one.
    stride: usize,
    full: usize,
    step: usize,
    /// The images that each node has of the step that is not full, if it is taken at all; the rest is the last
    /// node's.
    last: usize,
}

impl Stage {
    /// The rest of an epoch of `images` images.
    pub(super) fn new(deal: &Deal, images: usize) -> Self {
        let left = images - deal.first.min(images);
        let stride = deal.stride();
        let tail = left % stride;
        let share = if deal.pad { tail.div_ceil(deal.world) } else { tail / deal.world };
        let ranks = deal.world / deal.nodes;
        Self {
            first: deal.first,
            images: left,
            nodes: deal.nodes,
            stride,
            full: left / stride,
            step: ranks.saturating_mul(deal.batch),
            last: ranks.saturating_mul(share),
        }
    }

    /// Full steps before a position, positions since then, and the images that each node has of the step that
    /// it is in.
    fn within_step(&self, position: usize) -> (usize, usize, usize) {
        let steps = (position / self.stride).min(self.full);
        let each = if steps < self.full { self.step } else { self.last };
        (steps, position - steps * self.stride, each)
    }

    /// The owner of a position, and how many of its owner's come before it.
    pub(super) fn owner_and_index(&self, position: usize) -> (usize, usize) {
        let (steps, within, each) = self.within_step(position);
        let last = self.nodes - 1;
        let node = within.checked_div(each).map_or(last, |node| node.min(last));
        (node, steps * self.step + (within - node * each))
    }

    /// How many of the first `positions` positions are of the nodes before `node`.
    fn before(&self, node: usize, positions: usize) -> usize {
        if node == self.nodes {
            return positions;
        }
        let (steps, within, each) = self.within_step(positions);
        steps * self.step * node + each.saturating_mul(node).min(within)
    }

    /// The slots of a node.
    pub(super) fn part(&self, node: usize) -> Range<usize> {
        self.before(node, self.images)..self.before(node + 1, self.images)
    }

    /// The owner of a slot among those that the first `positions` positions leave, counted node by node, and its
    /// place among all of its owner's.
    pub(super) fn rest(&self, slot: usize, positions: usize) -> (usize, usize) {
        let left = |node| self.before(node, self.images) - self.before(node, positions);
        // The last node before which no more than `slot` are left.
        let (mut low, mut high) = (0, self.nodes);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if left(middle) <= slot { low = middle } else { high = middle }
        }
        let taken = self.before(low + 1, positions) - self.before(low, positions);
        (low, taken + (slot - left(low)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::shard::{Steps, Uneven};
    use super::*;
    use proptest::prelude::*;

    fn deal() -> impl Strategy<Value = Deal> {
        (1usize..5, 1usize..5, 1usize..9, any::<bool>()).prop_map(|(nodes, ranks, batch, pad)| Deal {
            first: 0,
            world: nodes * ranks,
            nodes,
            batch,
            pad,
        })
    }

    proptest! {
        /// Parts follow each other and are all; each position is of the node whose rank takes it.
        #[test]
        fn positions_are_of_the_nodes_whose_ranks_take_them(deal in deal(), images in 1usize..300) {
            let stage = Stage::new(&deal, images);
            let mut end = 0;
            for node in 0..deal.nodes {
                let part = stage.part(node);
                prop_assert_eq!(part.start, end);
                end = part.end;
                // As even as ranks are, but for what is left out or padded.
                let even = images / deal.nodes;
                prop_assert!(part.len().abs_diff(even) <= 2 * deal.world, "{part:?} of {images}");
            }
            prop_assert_eq!(end, images);
            let mut counts = vec![0; deal.nodes];
            for position in 0..images {
                let (node, index) = stage.owner_and_index(position);
                prop_assert_eq!(index, counts[node]);
                counts[node] += 1;
                prop_assert_eq!(stage.before(node + 1, position + 1) - stage.before(node, position + 1), counts[node]);
            }
            for rank in 0..deal.world {
                let steps = Steps {
                    images,
                    first: 0,
                    batch_size: deal.batch,
                    rank,
                    world: deal.world,
                    uneven: if deal.pad { Uneven::Pad } else { Uneven::DropLast },
                    drop_last: false,
                    turn: 0,
                    turns: 1,
                };
                for position in (0..steps.len()).flat_map(|batch| steps.positions(batch)).filter(|&p| p < images) {
                    prop_assert_eq!(stage.owner_and_index(position).0, rank / (deal.world / deal.nodes));
                }
            }
        }

        /// The rest after any position is each slot once, node by node.
        #[test]
        fn what_is_left_is_whole(deal in deal(), images in 1usize..300, taken in 0usize..300) {
            let taken = taken.min(images);
            let stage = Stage::new(&deal, images);
            let mut expected: Vec<_> = (taken..images).map(|position| stage.owner_and_index(position)).collect();
            expected.sort_unstable();
            let rest: Vec<_> = (0..images - taken).map(|slot| stage.rest(slot, taken)).collect();
            prop_assert_eq!(rest, expected);
        }
    }

    #[test]
    fn deals_follow_each_other() {
        let first = Deal { first: 0, world: 4, nodes: 2, batch: 5, pad: false };
        let at = |first, deal: Deal| Deal { first, ..deal };
        assert_eq!(follow(&[first], at(40, first)), [first], "it goes on");
        assert_eq!(follow(&[first], at(41, first)), [first, at(41, first)], "amid a step");
        let other = Deal { first: 40, world: 2, nodes: 1, batch: 5, pad: false };
        assert_eq!(follow(&[first], other), [first, other]);
        assert_eq!(follow(&[first, other], at(40, first)), [first], "nothing came of the other");
        assert_eq!(follow(&[first], at(0, other)), [at(0, other)]);
        let mut deals = vec![first];
        for i in 1..40 {
            deals = follow(&deals, Deal { first: 3 * i, batch: i, ..first });
        }
        assert_eq!(deals.len(), MOST_DEALS);
        assert!(are_possible(&deals, 1000) && !are_possible(&deals, 3));
        assert!(!are_possible(&[], 0) && !are_possible(&[other], 100) && !are_possible(&[first, first], 100));
        for wrong in [Deal { world: 3, ..first }, Deal { nodes: 0, ..first }, Deal { batch: 0, ..first }] {
            assert!(!are_possible(&[wrong], 100), "{wrong:?}");
        }
    }

    #[test]
    fn huge_batches_and_many_nodes_cost_nothing() {
        let deal = Deal { first: 0, world: 1 << 40, nodes: 1 << 40, batch: usize::MAX, pad: true };
        let stage = Stage::new(&deal, 1000);
        assert_eq!(
            (stage.owner_and_index(999), stage.part(3), stage.part(1 << 39)),
            ((999, 0), 3..4, 1000..1000)
        );
        assert_eq!(stage.rest(0, 999), (999, 0));
    }
}
