//! Weighted draws with replacement: an alias table (Walker 1977, built as Vose 1991), so that a draw costs the
//! same however many rows there are. A draw is a function of (seed, epoch, position).

use super::rows::Rows;
use crate::draw::{Digest, key, mix};
use wellread_store::row_location::path_of_set;
use wellread_store::words::{counted, counted_with};
use wellread_store::{Error, Result, Store};

/// Rows and their weights, ready to be drawn from.
#[derive(Debug)]
pub(crate) struct Weighted {
    /// Rows with a weight above zero.
    rows: Vec<usize>,
    /// For each of them, the part of 2^64 in which it is drawn itself, and the row that is drawn otherwise.
    table: Vec<(u64, usize)>,
    /// Draws of an epoch.
    pub(crate) images: usize,
}

impl Weighted {
    /// A table of the weights of `rows`; `weights` has one for every row of the store.
    pub(crate) fn new(
        weights: &[f64],
        images: Option<usize>,
        rows: &Rows,
        store: &dyn Store,
    ) -> Result<Self> {
        let error = |cause: &dyn std::fmt::Display| Error::new(path_of_set(store), cause);
        if weights.len() != store.len() {
            return Err(error(&format_args!(
                "{} given for {}",
                counted_with(weights.len(), "weight", ["was", "were"]),
                counted(store.len(), store.hints().thing())
            ))
            .hint("give one weight for every row of the dataset, also for rows that are left out"));
        }
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(error(&format_args!("the weight is {}", weights[row]))
                .row(row)
                .hint("weights are finite numbers from 0 on"));
        }
        let images = images.unwrap_or(rows.len());
        // Rows of no weight are left out first: rounding could give them the rest of the others.
        let rows: Vec<usize> =
            (0..rows.len()).map(|i| rows.get(i)).filter(|&row| weights[row] > 0.0).collect();
        let largest = rows.iter().map(|&row| weights[row]).fold(0.0, f64::max);
        if rows.is_empty() {
            return Err(error(&"every weight is 0").hint("give at least one image a weight above 0"));
        }
        // By the largest first, so that no sum overflows.
        let scaled: Vec<f64> = rows.iter().map(|&row| weights[row] / largest).collect();
        Ok(Self { table: alias_table(scaled), rows, images })
    }

    /// Adds the values that tell these draws from others.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.number(self.images as u64);
        for (&row, &(threshold, other)) in self.rows.iter().zip(&self.table) {
            digest.numbers([row as u64, threshold, other as u64]);
        }
    }

    /// The row drawn at a position of an epoch.
    pub(crate) fn row(&self, seed: u64, epoch: u64, position: usize) -> usize {
        let bits = mix(key([seed, epoch, 0x7765_6967_6874]) ^ mix(position as u64));
        let i = ((bits as u128 * self.rows.len() as u128) >> 64) as usize;
        let (threshold, other) = self.table[i];
        self.rows[if mix(bits) < threshold { i } else { other }]
    }
}

/// For each weight, the part of 2^64 in which it is drawn itself, and the index drawn otherwise.
fn alias_table(mut weights: Vec<f64>) -> Vec<(u64, usize)> {
    let n = weights.len();
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight *= n as f64 / sum;
    }
    let mut table: Vec<(u64, usize)> = (0..n).map(|i| (u64::MAX, i)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| weights[i] < 1.0);
    // A large one fills the rest of a small one's column.
    while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
        small.pop();
        table[s] = ((weights[s] * 2f64.powi(64)) as u64, l);
        weights[l] -= 1.0 - weights[s];
        if weights[l] < 1.0 {
            large.pop();
            small.push(l);
        }
    }
    // The remaining weights are 1 but for rounding, and each fills its column alone.
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::tests::numbered;
    use proptest::prelude::*;

    proptest! {
        /// The probability of each index, summed over the columns of the table, is its weight's share.
        #[test]
        fn the_table_holds_the_weights(weights in prop::collection::vec(1e-9f64..1e3, 1..300)) {
            let (n, sum) = (weights.len() as f64, weights.iter().sum::<f64>());
            let mut shares = vec![0.0; weights.len()];
            for (i, (threshold, other)) in alias_table(weights.clone()).into_iter().enumerate() {
                let own = threshold as f64 / 2f64.powi(64);
                shares[i] += own / n;
                shares[other] += (1.0 - own) / n;
            }
            for (share, weight) in shares.iter().zip(&weights) {
                prop_assert!((share - weight / sum).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn rows_come_as_often_as_they_weigh() {
        let store = numbered(5);
        let weights = [1.0, 0.0, 2.0, 5.0, 2.0];
        let weighted = Weighted::new(&weights, None, &Rows::All(5), &store).unwrap();
        // As many draws as rows, whatever they weigh.
        assert_eq!(weighted.images, 5);
        let (n, mut counts) = (100_000, [0u32; 5]);
        for position in 0..n {
            counts[weighted.row(3, 4, position)] += 1;
        }
        assert_eq!(counts[1], 0);
        for (count, weight) in counts.iter().zip(weights) {
            // Six standard deviations of a binomial count.
            assert!((*count as f64 - n as f64 * weight / 10.0).abs() < 6.0 * 160.0, "{counts:?}");
        }
        let draws = |seed, epoch| (0..50).map(|p| weighted.row(seed, epoch, p)).collect::<Vec<_>>();
        assert!(draws(1, 0) != draws(2, 0) && draws(1, 0) != draws(1, 1) && draws(1, 0) == draws(1, 0));
        // Rows that are left out are never drawn, and the sum of huge weights does not overflow.
        let huge = Weighted::new(&[f64::MAX; 5], Some(9), &Rows::Some([0, 3].into()), &store).unwrap();
        assert!((0..100).all(|p| [0, 3].contains(&huge.row(1, 1, p))));
    }

    #[test]
    fn weights_that_make_no_sense_are_refused() {
        let store = numbered(2);
        let refusal =
            |weights: &[f64]| Weighted::new(weights, None, &Rows::All(2), &store).unwrap_err().to_string();
        assert!(refusal(&[1.0]).contains("1 weight was given for 2 images"));
        assert!(refusal(&[1.0, f64::NAN]).contains("row 1: the weight is NaN"));
        assert!(refusal(&[-1.0, 1.0]).contains("row 0"));
        assert!(refusal(&[0.0, 0.0]).contains("every weight is 0"));
    }
}
