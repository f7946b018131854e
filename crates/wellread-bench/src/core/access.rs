//! Which rows a run reads, by its pattern of access.

use crate::choices::Access;
use crate::config::Config;
use wellread_loader::order::{BlockPermutation, Permutation};

/// Rows of one run.
pub fn rows_of(access: Access, n: usize, config: &Config, round: u64) -> Vec<usize> {
    let Config { samples, seed, block_rows, block_window, .. } = *config;
    let samples = samples.min(n);
    match access {
        Access::Random => {
            let order = Permutation::new(n, seed, round);
            (0..samples).map(|i| order.at(i)).collect()
        }
        Access::Grouped => {
            let order = Permutation::new(n.div_ceil(block_rows), seed, round);
            (0..n.div_ceil(block_rows))
                .flat_map(|g| order.at(g) * block_rows..(order.at(g) * block_rows + block_rows).min(n))
                .take(samples)
                .collect()
        }
        Access::Block => {
            let order = BlockPermutation::new(n, block_rows, block_window, seed, round);
            (0..samples).map(|i| order.at(i)).collect()
        }
        Access::Sequential => (0..samples).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_rows_are_blocks_in_another_order() {
        let config = |samples| Config { samples, seed: 1, ..Config::default() };
        let rows = rows_of(Access::Grouped, 95, &config(95), 0);
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..95).collect::<Vec<_>>());
        assert_ne!(rows, sorted);
        let steps = rows.windows(2).filter(|w| w[1] == w[0] + 1).count();
        assert!(steps >= 95 - 10 - 1);
        assert_eq!(rows_of(Access::Sequential, 10, &config(4), 0), [0, 1, 2, 3]);
        assert_eq!(rows_of(Access::Random, 10, &config(400), 0).len(), 10);
        let mut rows = rows_of(Access::Block, 95, &config(95), 0);
        rows.sort_unstable();
        assert_eq!(rows, sorted);
    }
}
