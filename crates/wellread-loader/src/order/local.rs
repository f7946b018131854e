//! Orders of which each node has a part of its own. So a node's cache on its disk is of no use to another.
//!
//! ```text
//!  rows by where they lie ──pieces, sharded anew every so many epochs──▶ slots ──a part for each node, shuffled within──▶ positions
//! ```
//!
//! As long as nothing is sharded anew, a node's part is a run of neighbouring rows. Sharded anew, it is a run of pieces in random order:
//! row groups, the files of a set of several, or runs of rows. Large ones are cut. Parts are cut to the row, since all ranks
//! have equally many images: two nodes may share the piece at their border.

use super::block::BlockPermutation;
use super::node_sharding::{NodeSharding, Stage};
use super::permutation::Permutation;
use super::rows::Rows;
use crate::draw::{Digest, key};
use std::sync::Arc;
use wellread_store::{RowHints, Store};

/// Pieces where nothing says where rows lie: so many, unless they would have more than enough rows. No piece is larger than one of
/// the fewest.
const PIECES: usize = 1024;
const ENOUGH_ROWS: usize = 1024;
const FEWEST_PIECES: usize = 64;

/// The pieces that are sharded over nodes.
#[derive(Debug)]
pub(super) struct Local {
    /// Where each piece begins among the rows, and one more for the end; nothing where rows are never sharded anew.
    starts: Vec<usize>,
    /// Epochs after which they are; 0 for never.
    reshard_every: u64,
}

impl Local {
    pub(super) fn new(rows: &Rows, store: &dyn Store, reshard_every: u64) -> Self {
        let starts = if reshard_every == 0 { vec![] } else { pieces(rows, store) };
        Self { starts, reshard_every }
    }

    /// Adds the values that tell it from others, and from orders that all ranks divide.
    pub(super) fn digest(&self, digest: &mut Digest) {
        digest.numbers([8, self.reshard_every]);
        digest.numbers(self.starts.iter().map(|&start| start as u64));
    }
}

/// Where each piece begins among the rows, and one more for the end.
fn pieces(rows: &Rows, store: &dyn Store) -> Vec<usize> {
    let count = rows.len();
    let enough = (count / PIECES).clamp(1, ENOUGH_ROWS);
    let mut starts: Vec<usize> = match rows {
        Rows::All(_) => borders(store, enough),
        // Borders in which no row lies are one.
        Rows::Some(rows) if rows.is_sorted() => borders(store, enough)
            .into_iter()
            .map(|border| rows.partition_point(|&row| row < border))
            .collect(),
        Rows::Some(_) => (0..count).step_by(enough).collect(),
    };
    starts.retain(|&start| start < count);
    starts.push(0);
    starts.push(count);
    starts.sort_unstable();
    starts.dedup();
    // Larger ones are cut, so that there is something to move between nodes.
    let most = count.div_ceil(FEWEST_PIECES).max(1);
    let cuts = starts.windows(2).flat_map(|piece| (piece[0]..piece[1]).step_by(most));
    cuts.chain([count]).collect()
}

/// Rows of a store at which pieces begin: of each of its parts, of row groups, or after `enough` rows.
fn borders(store: &dyn Store, enough: usize) -> Vec<usize> {
    let parts = store.hints().set_parts();
    let mut parts: Vec<usize> =
        parts.iter().flat_map(|part| part.rows.iter().map(|rows| rows.start)).collect();
    parts.sort_unstable();
    let mut parts = parts.into_iter().peekable();
    let (mut borders, mut row) = (vec![], 0);
    while row < store.len() {
        borders.push(row);
        while parts.next_if(|&part| part <= row).is_some() {}
        let next_part = parts.peek().copied().unwrap_or(usize::MAX);
        let mut end = row;
        while end - row < enough && end < store.len().min(next_part) {
            // Rows whose metadata are read together lie together.
            let together = store.row_hints(end).map_or(1, RowHints::metadata_rows);
            let rows = if together > 1 { together } else { enough - (end - row) };
            end = end.saturating_add(rows);
        }
        row = end.min(next_part);
    }
    borders
}

/// How the rows of a node come.
#[derive(Clone, Copy, Debug)]
pub(super) enum OrderWithinNode {
    AsStored,
    Random,
    Block { rows: usize, window: usize },
}

/// The order of one epoch: position → place among the rows.
#[derive(Debug)]
pub(crate) struct LocalEpoch {
    local: Arc<Local>,
    /// Where pieces were sharded anew: their order, and the slots at which they end.
    resharded: Option<(Permutation, Vec<usize>)>,
    /// By the positions that they begin at; the first at 0.
    stages: Vec<Stage>,
    within: OrderWithinNode,
    key: u64,
}

impl LocalEpoch {
    /// The order of `images` images as `shardings` say; without any, one node has all.
    pub(super) fn new(
        local: &Arc<Local>,
        within: OrderWithinNode,
        images: usize,
        [seed, epoch]: [u64; 2],
        shardings: &[NodeSharding],
    ) -> Self {
        let alone = [NodeSharding { first: 0, world: 1, nodes: 1, batch: images.max(1), pad: false }];
        let shardings = if shardings.is_empty() { &alone[..] } else { shardings };
        let resharded = epoch.checked_div(local.reshard_every).filter(|&turn| turn > 0).map(|turn| {
            let starts = &local.starts;
            let order = Permutation::keyed(starts.len() - 1, key([seed, turn, 0x6465_636b]));
            let mut end = 0;
            let ends = (0..starts.len() - 1).map(|i| {
                let piece = order.at(i);
                end += starts[piece + 1] - starts[piece];
                end
            });
            (order, ends.collect())
        });
        let stages = shardings.iter().map(|sharding| Stage::new(sharding, images)).collect();
        Self {
            local: Arc::clone(local),
            resharded,
            stages,
            within,
            key: key([seed, epoch, 0x006c_6f63_616c]),
        }
    }

    /// The place among the rows of a position.
    pub(super) fn at(&self, position: usize) -> usize {
        let last = self.stages.partition_point(|stage| stage.first <= position) - 1;
        let stage = &self.stages[last];
        let mut slot = self.slot(last, stage.owner_and_index(position - stage.first));
        // A slot of what an earlier sharding has left is one of that sharding.
        for i in (0..last).rev() {
            let stage = &self.stages[i];
            slot = self.slot(i, stage.rest(slot, self.stages[i + 1].first - stage.first));
        }
        let Some((order, ends)) = &self.resharded else { return slot };
        let i = ends.partition_point(|&end| end <= slot);
        self.local.starts[order.at(i) + 1] - (ends[i] - slot)
    }

    /// The slot of the image that comes `place`-th on a node.
    fn slot(&self, stage: usize, (node, place): (usize, usize)) -> usize {
        let part = self.stages[stage].part(node);
        let own = key([self.key, stage as u64, node as u64]);
        let within = match self.within {
            OrderWithinNode::Random => Permutation::keyed(part.len(), own).at(place),
            OrderWithinNode::Block { rows, window } if stage == 0 => {
                BlockPermutation::new(part.len(), rows, window, own, 0).at(place)
            }
            // The remaining rows of blocks are as near to each other as they were.
            OrderWithinNode::Block { .. } | OrderWithinNode::AsStored => place,
        };
        part.start + within
    }
}

#[cfg(test)]
mod tests {
    use super::super::node_sharding::extended;
    use super::*;
    use crate::order::tests::numbered;
    use proptest::prelude::*;

    fn sharding() -> impl Strategy<Value = NodeSharding> {
        (1usize..4, 1usize..4, 1usize..7, any::<bool>()).prop_map(|(nodes, ranks, batch, pad)| NodeSharding {
            first: 0,
            world: nodes * ranks,
            nodes,
            batch,
            pad,
        })
    }

    fn local(rows: usize, reshard_every: u64) -> Arc<Local> {
        Arc::new(Local::new(&Rows::All(rows), &numbered(rows), reshard_every))
    }

    proptest! {
        /// Each row comes once after any interruption and any new sharding, and the delivered rows stay delivered.
        #[test]
        fn each_row_comes_once(
            images in 1usize..120, shardings in prop::collection::vec((sharding(), 0usize..9), 1..5), within in 0usize..3,
            seed: u64, epoch in 0u64..4, every in 0u64..3,
        ) {
            let local = local(images, every);
            let within = [OrderWithinNode::AsStored, OrderWithinNode::Random, OrderWithinNode::Block { rows: 4, window: 2 }][within];
            let of = |shardings: &[NodeSharding]| -> Vec<usize> {
                let order = LocalEpoch::new(&local, within, images, [seed, epoch], shardings);
                (0..images).map(|position| order.at(position)).collect()
            };
            let (mut chain, mut first): (Vec<NodeSharding>, usize) = (vec![], 0);
            let mut before: Vec<usize> = vec![];
            for (sharding, steps) in shardings {
                chain = extended(&chain, NodeSharding { first, ..sharding });
                let rows = of(&chain);
                prop_assert_eq!(&rows[..first], &before[..first]);
                let mut sorted = rows.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..images).collect::<Vec<_>>());
                first = images.min(first + steps * sharding.batch * sharding.world);
                before = rows;
            }
        }
    }

    #[test]
    fn a_node_has_neighbouring_rows_until_they_are_dealt_anew() {
        let sharding = NodeSharding { first: 0, world: 4, nodes: 2, batch: 5, pad: false };
        let local = local(200, 2);
        let of_first = |epoch| {
            let order = LocalEpoch::new(&local, OrderWithinNode::Random, 200, [7, epoch], &[sharding]);
            // Ranks 0 and 1 have the first ten positions of each step.
            let mut rows: Vec<usize> = (0..200).filter(|p| p % 20 < 10).map(|p| order.at(p)).collect();
            let came = rows.clone();
            rows.sort_unstable();
            (rows, came)
        };
        let (first, again, anew) = (of_first(0), of_first(1), of_first(2));
        assert_eq!(first.0, (0..100).collect::<Vec<_>>());
        assert!(
            first.0 == again.0 && first.1 != again.1 && first.1 != first.0,
            "another order of the same rows"
        );
        assert_ne!(anew.0, first.0);
        assert_eq!(of_first(3).0, anew.0, "for two epochs");
    }

    /// Two of four nodes go on: each has what two of them had left.
    #[test]
    fn who_goes_on_has_neighbouring_rows_too() {
        let four = NodeSharding { first: 0, world: 4, nodes: 4, batch: 5, pad: false };
        let two = NodeSharding { first: 100, world: 2, nodes: 2, batch: 5, pad: false };
        let order = LocalEpoch::new(&local(200, 0), OrderWithinNode::Random, 200, [7, 0], &[four, two]);
        for position in 100..200 {
            assert_eq!(order.at(position) / 100, usize::from(position % 10 >= 5), "position {position}");
        }
    }

    #[test]
    fn pieces_are_of_the_rows_that_were_chosen() {
        let store = numbered(100);
        let all: Vec<usize> = (0..=100).collect();
        assert_eq!(pieces(&Rows::All(100), &store), all);
        // With four rows, no piece has more than one.
        assert_eq!(pieces(&Rows::Some([3, 5, 5, 90].into()), &store), [0, 1, 2, 3, 4]);
        assert_eq!(pieces(&Rows::Some([9, 5, 7].into()), &store), [0, 1, 2, 3]);
        assert_eq!(borders(&store, 30), [0, 30, 60, 90]);
        assert_eq!(pieces(&Rows::All(200), &numbered(200)).len(), 201);
    }
}
