//! How random a loader's order is: some of its epoch's batches, beside a full shuffle of the same images.

use super::Loader;
use crate::order::quality::{OrderQuality, Spread, extent};
use crate::order::{EpochOrder, Grouping, Permutation};
use std::collections::HashMap;
use wellread_store::row_location::path_of_set;
use wellread_store::{Error, Result, RowHints};

/// Batches that are looked at, at most, spread over the epoch; and images.
const MAX_SAMPLED_BATCHES: usize = 1024;
const MAX_SAMPLED_IMAGES: usize = 1 << 20;

impl OrderQuality {
    /// The numbers of a loader's epoch, counting blocks of `rows` neighbouring rows. Reads no pixels; of long
    /// epochs a part is looked at.
    ///
    /// # Errors
    /// Blocks of 0 rows.
    pub fn by_blocks(loader: &Loader, epoch: u64, rows: usize) -> Result<Self> {
        if rows == 0 {
            return Err(
                Error::new(path_of_set(loader.dataset().store()), "blocks of 0 rows").hint("give at least 1")
            );
        }
        Ok(measure(loader, epoch, |row| row / rows))
    }

    /// The numbers of a loader's epoch, counting groups.
    ///
    /// # Errors
    /// Names or columns that cannot be read.
    pub fn by_groups(loader: &Loader, epoch: u64, grouping: &Grouping) -> Result<Self> {
        let store = loader.dataset().store();
        let keys = grouping.of(store)?;
        let mut numbers = HashMap::new();
        let mut group_of = Vec::with_capacity(store.len());
        for row in 0..store.len() {
            let next = numbers.len();
            group_of.push(*numbers.entry(keys.get(row)?.into_owned()).or_insert(next));
        }
        Ok(measure(loader, epoch, |row| group_of[row]))
    }
}

fn measure(loader: &Loader, epoch: u64, unit: impl Fn(usize) -> usize) -> OrderQuality {
    let plan = loader.plan();
    let order = EpochOrder::new(&plan.order, plan.seed, epoch, &plan.shardings(&[], 0));
    let rank_batches = plan.rank_batches(0);
    let shuffle = Permutation::new(plan.order.len(), plan.seed ^ 0x5171, epoch);
    let size = rank_batches.positions(0).len();
    let count = rank_batches.len().min(MAX_SAMPLED_BATCHES).min((MAX_SAMPLED_IMAGES / size).max(1));
    let runs = |row: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
        // Spread over the epoch; batches of one image follow each other, or there would be no next image.
        let spread = |i: usize| (i as u128 * rank_batches.len() as u128 / count as u128) as usize;
        let batch = |i: usize| rank_batches.positions(if size == 1 { i } else { spread(i) });
        (0..count).map(|i| batch(i).map(|p| row(p % plan.order.len())).collect()).collect()
    };
    let disk = |row| loader.dataset().store().row_hints(row).map_or(u64::MAX, RowHints::position);
    let ordered = runs(&|p| order.row(&plan.order, p));
    let shuffled = runs(&|p| order.row(&plan.order, shuffle.at(p)));
    let extent = extent(ordered.iter().chain(&shuffled).flatten().copied(), disk);
    let spread = |runs: &[Vec<usize>]| Spread::of(runs, &unit, disk, extent);
    OrderQuality { order: spread(&ordered), shuffled: spread(&shuffled) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Order, order::tests::numbered};

    fn quality(order: Order) -> OrderQuality {
        let dataset = Dataset::from_store(Box::new(numbered(4000)));
        let loader = Loader::builder(&dataset).batch_size(32).order(order).seed(1).build().unwrap();
        OrderQuality::by_blocks(&loader, 0, 50).unwrap()
    }

    #[test]
    fn a_full_shuffle_is_ideal_and_storage_order_is_not() {
        let random = quality(Order::Random);
        // Blocks of 50 of 4000 rows among 32 images: 80 (1 - (79/80)^32) = 26.5.
        assert!((random.order.units_per_batch - 26.5).abs() < 0.5, "{random:?}");
        assert!((random.mixing() - 1.0).abs() < 0.03, "{random:?}");
        assert!(random.order.rank_correlation.abs() < 0.06);
        assert!((random.order.jump - 1.0 / 3.0).abs() < 0.02);

        let stored = quality(Order::Sequential);
        assert!(stored.order.units_per_batch < 2.0 && stored.mixing() < 0.08, "{stored:?}");
        assert!((stored.order.rank_correlation - 1.0).abs() < 1e-9);
        assert!((stored.order.jump - 1.0 / 3999.0).abs() < 1e-6);
        assert!((stored.shuffled.jump - 1.0 / 3.0).abs() < 0.02);
    }

    /// The larger the window, the more mixed a batch; the way on disk grows along.
    #[test]
    fn block_shuffle_lies_between() {
        let of = |window| quality(Order::Block { rows: 50, window });
        let (small, large) = (of(4), of(32));
        assert!(small.order.units_per_batch <= 4.5 && large.order.units_per_batch > 18.0);
        assert!(small.mixing() < 0.2 && (0.7..0.95).contains(&large.mixing()), "{large:?}");
        assert!(small.order.rank_correlation.abs() < 0.35, "the blocks themselves are shuffled");
    }

    #[test]
    fn groups_are_counted_too() {
        let dataset = Dataset::from_store(Box::new(numbered(400)));
        let by = Grouping::by_name(|name| name.chars().last().unwrap().to_string());
        let builder = Loader::builder(&dataset).batch_size(10);
        let grouped = builder.clone().grouped(by.clone(), 1).build().unwrap();
        let quality = OrderQuality::by_groups(&grouped, 0, &by).unwrap();
        assert_eq!(quality.order.units_per_batch, 1.0);
        assert!((6.0..7.0).contains(&quality.shuffled.units_per_batch), "10 (1 - 0.9^10) = 6.5");
        let balanced = builder.balanced(by.clone(), 1).build().unwrap();
        assert_eq!(OrderQuality::by_groups(&balanced, 0, &by).unwrap().order.units_per_batch, 10.0);
    }
}
