//! The randomness of an order, and its cost in reading.
//!
//! An order between "as stored" and "any row next" trades randomness for locality. Three numbers tell how
//! much of each it has, beside the same numbers for a full shuffle of the very same images:
//!
//! * distinct blocks (or groups) among the images of a batch: how mixed a batch is;
//! * rank correlation of position and row: whether the epoch runs along the set;
//! * the way on disk from one image to the next: the price.

/// An order's numbers, and a full shuffle's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderQuality {
    /// The spread of the loader's order.
    pub order: Spread,
    /// The spread of a full shuffle of the same images, in batches of the same size.
    pub shuffled: Spread,
}

/// How images that follow each other are spread over a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Distinct blocks or groups among the images of a batch, on average.
    pub units_per_batch: f64,
    /// Spearman's correlation of position and row: 1 as stored, near 0 when shuffled.
    pub rank_correlation: f64,
    /// The way on disk from one image to the next, on average, as a part of the set's extent. It is
    /// 1/3 when shuffled, and one over the number of images as stored.
    pub jump: f64,
}

impl OrderQuality {
    /// Distinct blocks or groups per batch relative to a full shuffle: 1 is as mixed as can be hoped for.
    pub fn mixing(&self) -> f64 {
        self.order.units_per_batch / self.shuffled.units_per_batch
    }
}

/// The distance on disk from the first of some rows to the last.
pub fn extent(rows: impl Iterator<Item = usize>, disk: impl Fn(usize) -> u64) -> u64 {
    let (first, last) = rows.map(disk).fold((u64::MAX, 0), |(a, b), at| (at.min(a), at.max(b)));
    last.saturating_sub(first)
}

impl Spread {
    /// The numbers of batches of rows, in their order. `unit` gives the block or group of a row, `disk` its position
    /// on disk ([`wellread_store::RowHints::position`]). `extent` is the distance there from the first row to the last.
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
