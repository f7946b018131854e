//! How an epoch is sharded over nodes, each of which has a part of its own: position → node and place in its part.
//!
//! ```text
//!  slots       0 ........ node 0 ....... | ....... node 1 ....... n    what a node reads, in one piece
//!  positions   [ r 0 ][ r 1 ]              [ r 2 ][ r 3 ]              step 0: two nodes of two ranks each
//!                     [ r 0 ][ r 1 ]              [ r 2 ][ r 3 ]       step 1
//!  left over                 ..............              ..........    after an interruption, node by node, these are
//!  slots again               0 .... node 0 ..... | ..... node 1 . m    the slots of the next sharding: other nodes, ranks, batches
//! ```
//!
//! Steps are those of [`super::RankBatches`]: ranks take consecutive positions, and those of a node are numbered one after the other.
//! So each step has a run of positions for each node. All of it is arithmetic; nothing is kept per row or per node.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Shardings of one epoch that are kept at most. A run with other nodes after that reads as the last sharding says.
const MOST_SHARDINGS: usize = 16;

/// How an epoch was sharded from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeSharding {
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

impl NodeSharding {
    /// Rows of a step of all ranks.
    fn stride(&self) -> usize {
        self.batch.saturating_mul(self.world)
    }

    /// Whether another sharding goes on as this one would.
    fn is_continued_by(&self, next: &Self) -> bool {
        Self { first: next.first, ..*self } == *next
            && (next.first - self.first).is_multiple_of(self.stride())
    }

    fn is_possible(&self) -> bool {
        self.world > 0 && self.nodes > 0 && self.batch > 0 && self.world.is_multiple_of(self.nodes)
    }
}

/// The shardings of an epoch that goes on with `next` where it was interrupted.
pub(crate) fn extended(before: &[NodeSharding], next: NodeSharding) -> Vec<NodeSharding> {
    // One that begins there has delivered nothing.
    let mut shardings: Vec<NodeSharding> =
        before.iter().copied().filter(|sharding| sharding.first < next.first).collect();
    let continues = shardings.last().is_some_and(|last| last.is_continued_by(&next));
    if !continues && shardings.len() < MOST_SHARDINGS {
        shardings.push(next);
    }
    shardings
}

/// Whether these may be the shardings of an epoch that has come to a position.
pub(crate) fn are_possible(shardings: &[NodeSharding], position: usize) -> bool {
    shardings.len() <= MOST_SHARDINGS
        && shardings.first().is_some_and(|first| first.first == 0)
        && shardings.windows(2).all(|pair| pair[0].first < pair[1].first)
        && shardings.iter().all(|sharding| sharding.is_possible() && sharding.first <= position)
}

/// A sharding of so many images: which positions, counted from its first, are whose.
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
    pub(super) fn new(sharding: &NodeSharding, images: usize) -> Self {
        let left = images - sharding.first.min(images);
        let stride = sharding.stride();
        let tail = left % stride;
        let share = if sharding.pad { tail.div_ceil(sharding.world) } else { tail / sharding.world };
        let ranks = sharding.world / sharding.nodes;
        Self {
            first: sharding.first,
            images: left,
            nodes: sharding.nodes,
            stride,
            full: left / stride,
            step: ranks.saturating_mul(sharding.batch),
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
    use super::super::shard::{RankBatches, Uneven};
    use super::*;
    use proptest::prelude::*;

    fn sharding() -> impl Strategy<Value = NodeSharding> {
        (1usize..5, 1usize..5, 1usize..9, any::<bool>()).prop_map(|(nodes, ranks, batch, pad)| NodeSharding {
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
        fn positions_are_of_the_nodes_whose_ranks_take_them(sharding in sharding(), images in 1usize..300) {
            let stage = Stage::new(&sharding, images);
            let mut end = 0;
            for node in 0..sharding.nodes {
                let part = stage.part(node);
                prop_assert_eq!(part.start, end);
                end = part.end;
                // As even as ranks are, but for what is left out or padded.
                let even = images / sharding.nodes;
                prop_assert!(part.len().abs_diff(even) <= 2 * sharding.world, "{part:?} of {images}");
            }
            prop_assert_eq!(end, images);
            let mut counts = vec![0; sharding.nodes];
            for position in 0..images {
                let (node, index) = stage.owner_and_index(position);
                prop_assert_eq!(index, counts[node]);
                counts[node] += 1;
                prop_assert_eq!(stage.before(node + 1, position + 1) - stage.before(node, position + 1), counts[node]);
            }
            for rank in 0..sharding.world {
                let batches = RankBatches {
                    images,
                    first: 0,
                    batch_size: sharding.batch,
                    rank,
                    world: sharding.world,
                    uneven: if sharding.pad { Uneven::Pad } else { Uneven::DropLast },
                    drop_last: false,
                    turn: 0,
                    turns: 1,
                };
                for position in (0..batches.len()).flat_map(|batch| batches.positions(batch)).filter(|&p| p < images) {
                    prop_assert_eq!(stage.owner_and_index(position).0, rank / (sharding.world / sharding.nodes));
                }
            }
        }

        /// The rest after any position is each slot once, node by node.
        #[test]
        fn what_is_left_is_whole(sharding in sharding(), images in 1usize..300, taken in 0usize..300) {
            let taken = taken.min(images);
            let stage = Stage::new(&sharding, images);
            let mut expected: Vec<_> = (taken..images).map(|position| stage.owner_and_index(position)).collect();
            expected.sort_unstable();
            let rest: Vec<_> = (0..images - taken).map(|slot| stage.rest(slot, taken)).collect();
            prop_assert_eq!(rest, expected);
        }
    }

    #[test]
    fn shardings_follow_each_other() {
        let first = NodeSharding { first: 0, world: 4, nodes: 2, batch: 5, pad: false };
        let at = |first, sharding: NodeSharding| NodeSharding { first, ..sharding };
        assert_eq!(extended(&[first], at(40, first)), [first], "it goes on");
        assert_eq!(extended(&[first], at(41, first)), [first, at(41, first)], "amid a step");
        let other = NodeSharding { first: 40, world: 2, nodes: 1, batch: 5, pad: false };
        assert_eq!(extended(&[first], other), [first, other]);
        assert_eq!(extended(&[first, other], at(40, first)), [first], "nothing came of the other");
        assert_eq!(extended(&[first], at(0, other)), [at(0, other)]);
        let mut shardings = vec![first];
        for i in 1..40 {
            shardings = extended(&shardings, NodeSharding { first: 3 * i, batch: i, ..first });
        }
        assert_eq!(shardings.len(), MOST_SHARDINGS);
        assert!(are_possible(&shardings, 1000) && !are_possible(&shardings, 3));
        assert!(!are_possible(&[], 0) && !are_possible(&[other], 100) && !are_possible(&[first, first], 100));
        for wrong in [
            NodeSharding { world: 3, ..first },
            NodeSharding { nodes: 0, ..first },
            NodeSharding { batch: 0, ..first },
        ] {
            assert!(!are_possible(&[wrong], 100), "{wrong:?}");
        }
    }

    #[test]
    fn huge_batches_and_many_nodes_cost_nothing() {
        let sharding =
            NodeSharding { first: 0, world: 1 << 40, nodes: 1 << 40, batch: usize::MAX, pad: true };
        let stage = Stage::new(&sharding, 1000);
        assert_eq!(
            (stage.owner_and_index(999), stage.part(3), stage.part(1 << 39)),
            ((999, 0), 3..4, 1000..1000)
        );
        assert_eq!(stage.rest(0, 999), (999, 0));
    }
}
