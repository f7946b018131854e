//! How random an order is, and what it costs to read.
//!
//! An order between "as stored" and "any row next" trades randomness for locality. Three numbers tell how
//! much of each it has, beside the same numbers for a full shuffle of the very same images:
//!
//! * distinct blocks (or groups) among the images of a batch: how mixed a batch is;
//! * rank correlation of position and row: whether the epoch runs along the set;
//! * the way on disk from one image to the next: the price.

use super::{EpochOrder, Grouping, Permutation};
use crate::Loader;
use std::collections::HashMap;
use wellread_store::{Error, Result};

/// Batches that are looked at, at most, spread over the epoch; and images.
const BATCHES: usize = 1024;
const IMAGES: usize = 1 << 20;

/// An order's numbers, and a full shuffle's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderQuality {
    /// Of the loader's order.
    pub order: Spread,
    /// Of a full shuffle of the same images, in batches of the same size.
    pub shuffled: Spread,
}

/// How images that follow each other are spread over a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Distinct blocks or groups among the images of a batch, on average.
    pub units_per_batch: f64,
    /// Spearman's correlation of position and row: 1 as stored, near 0 when shuffled.
    pub rank_correlation: f64,
    /// The way on disk from one image to the next, on average, as a part of the set's extent: 1/3 when
    /// shuffled, one over the number of images as stored.
    pub jump: f64,
}

impl OrderQuality {
    /// The numbers of a loader's epoch, counting blocks of `rows` neighbouring rows. Reads no pixels; of long
    /// epochs a part is looked at.
    ///
    /// # Errors
    /// Blocks of 0 rows.
    pub fn by_blocks(loader: &Loader, epoch: u64, rows: usize) -> Result<Self> {
        if rows == 0 {
            return Err(
                Error::new(loader.dataset().store().path(), "blocks of 0 rows").hint("give at least 1")
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

    /// Distinct blocks or groups per batch relative to a full shuffle: 1 is as mixed as can be hoped for.
    pub fn mixing(&self) -> f64 {
        self.order.units_per_batch / self.shuffled.units_per_batch
    }
}

fn measure(loader: &Loader, epoch: u64, unit: impl Fn(usize) -> usize) -> OrderQuality {
    let plan = loader.plan();
    let order = EpochOrder::new(&plan.order, plan.seed, epoch);
    let steps = plan.steps(0);
    let shuffle = Permutation::new(plan.order.len(), plan.seed ^ 0x5171, epoch);
    let size = steps.positions(0).len();
    let count = steps.len().min(BATCHES).min((IMAGES / size).max(1));
    let runs = |row: &dyn Fn(usize) -> usize| -> Vec<Vec<usize>> {
        // Spread over the epoch; batches of one image follow each other, or there would be no next image.
        let spread = |i: usize| (i as u128 * steps.len() as u128 / count as u128) as usize;
        let batch = |i: usize| steps.positions(if size == 1 { i } else { spread(i) });
        (0..count).map(|i| batch(i).map(|p| row(p % plan.order.len())).collect()).collect()
    };
    let disk = |row| loader.dataset().store().position(row);
    let ordered = runs(&|p| order.row(&plan.order, p));
    let shuffled = runs(&|p| order.row(&plan.order, shuffle.at(p)));
    let extent = extent(ordered.iter().chain(&shuffled).flatten().copied(), disk);
    let spread = |runs: &[Vec<usize>]| Spread::of(runs, &unit, disk, extent);
    OrderQuality { order: spread(&ordered), shuffled: spread(&shuffled) }
}

/// The distance on disk from the first of some rows to the last.
pub fn extent(rows: impl Iterator<Item = usize>, disk: impl Fn(usize) -> u64) -> u64 {
    let (first, last) = rows.map(disk).fold((u64::MAX, 0), |(a, b), at| (at.min(a), at.max(b)));
    last.saturating_sub(first)
}

impl Spread {
    /// The numbers of batches of rows, in their order: `unit` tells the block or group of a row, `disk` its position
    /// on disk ([`wellread_store::Store::position`]), `extent` the distance there from the first row to the last.
    pub fn of<B: AsRef<[usize]>>(
        batches: &[B],
        unit: impl Fn(usize) -> usize,
        disk: impl Fn(usize) -> u64,
        extent: u64,
    ) -> Self {
        let mut units = 0;
        let (mut steps, mut way) = (0u64, 0.0);
        let mut distinct = vec![];
        let mut before: Option<u64> = None;
        for batch in batches {
            let batch = batch.as_ref();
            distinct.clear();
            distinct.extend(batch.iter().map(|&row| unit(row)));
            distinct.sort_unstable();
            distinct.dedup();
            units += distinct.len();
            for &row in batch {
                let at = disk(row);
                if let Some(before) = before {
                    steps += 1;
                    way += at.abs_diff(before) as f64;
                }
                before = Some(at);
            }
            // Batches may be samples of an epoch, so that the next one's images are no neighbours.
            if batch.len() > 1 {
                before = None;
            }
        }
        let rows: Vec<usize> = batches.iter().flat_map(|batch| batch.as_ref().iter().copied()).collect();
        Self {
            units_per_batch: units as f64 / batches.len().max(1) as f64,
            rank_correlation: rank_correlation(&rows),
            jump: if steps == 0 || extent == 0 { 0.0 } else { way / steps as f64 / extent as f64 },
        }
    }
}

/// Spearman's correlation of index and value; equal values share their ranks.
fn rank_correlation(values: &[usize]) -> f64 {
    let n = values.len();
    let mut by_value: Vec<usize> = (0..n).collect();
    by_value.sort_unstable_by_key(|&i| values[i]);
    let mean = (n as f64 - 1.0) / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    let mut first = 0;
    while first < n {
        let equal = by_value[first..].iter().take_while(|&&i| values[i] == values[by_value[first]]).count();
        let rank = first as f64 + (equal as f64 - 1.0) / 2.0 - mean;
        for &i in &by_value[first..first + equal] {
            covariance += (i as f64 - mean) * rank;
            variance += rank * rank;
        }
        first += equal;
    }
    let positions = n as f64 * ((n as f64).powi(2) - 1.0) / 12.0;
    if variance == 0.0 { 0.0 } else { covariance / (variance * positions).sqrt() }
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

    #[test]
    fn single_images_and_single_rows_have_numbers() {
        let rows = [[3], [1], [2]];
        let spread = Spread::of(&rows, |row| row, |row| row as u64, 2);
        assert_eq!((spread.units_per_batch, spread.jump), (1.0, 0.75));
        assert!((spread.rank_correlation + 0.5).abs() < 1e-12);
        let one = Spread::of(&[[7]], |row| row, |row| row as u64, 0);
        assert_eq!((one.rank_correlation, one.jump), (0.0, 0.0));
        assert!((rank_correlation(&[5, 5, 9, 9]) - 0.894).abs() < 1e-3);
    }
}
