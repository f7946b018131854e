//! A keyed permutation of `0..n` without an array. It is a Feistel network over the smallest power of two that
//! holds `n`, walked until the result falls below `n` (Black & Rogaway, CT-RSA 2002).

use crate::draw::{key, mix};

/// A keyed permutation of `0..n`.
///
/// ```
/// use wellread_loader::order::Permutation;
/// let p = Permutation::new(10, 42, 0);
/// let mut all: Vec<usize> = (0..10).map(|i| p.at(i)).collect();
/// all.sort_unstable();
/// assert_eq!(all, (0..10).collect::<Vec<_>>());
/// assert_eq!(p.position_of(p.at(7)), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: usize,
    /// Bits of the left and of the right half.
    halves: [u32; 2],
    key: u64,
}

impl Permutation {
    /// Four rounds make a wide Feistel network a strong permutation; this has far more. Halves of one or two
    /// bits mix slowly, and with 12 rounds the permutations of five rows are visibly uneven.
    const ROUNDS: u64 = 24;

    /// The permutation of `0..n` for a seed and an epoch.
    pub fn new(n: usize, seed: u64, epoch: u64) -> Self {
        Self::keyed(n, key([seed, epoch, 0x006f_7264_6572]))
    }

    /// The permutation of `0..n` for a key.
    pub(crate) fn keyed(n: usize, key: u64) -> Self {
        let bits = n.max(1).next_power_of_two().trailing_zeros();
        Self { n, halves: [bits / 2, bits - bits / 2], key }
    }

    /// Where position `i` goes.
    ///
    /// # Panics
    /// When `i` is not below `n`.
    pub fn at(&self, i: usize) -> usize {
        self.walk(i, Self::encrypt)
    }

    /// The position that goes to `to`: the inverse of [`Self::at`].
    ///
    /// # Panics
    /// When `to` is not below `n`.
    pub fn position_of(&self, to: usize) -> usize {
        self.walk(to, Self::decrypt)
    }

    fn walk(&self, from: usize, step: impl Fn(&Self, u64) -> u64) -> usize {
        assert!(from < self.n, "position {from} of a permutation of {}", self.n);
        let mut x = from as u64;
        // The domain is less than twice `n`, so two rounds on average; it ends because the walk is a cycle
        // that began below `n`.
        loop {
            x = step(self, x);
            if (x as usize) < self.n {
                return x as usize;
            }
        }
    }

    fn encrypt(&self, x: u64) -> u64 {
        let [a, b] = self.masks();
        let (mut left, mut right) = (x >> self.halves[1], x & b);
        for round in 0..Self::ROUNDS / 2 {
            left ^= mix(self.key ^ (right | round << 56)) & a;
            right ^= mix(!self.key ^ (left | round << 56)) & b;
        }
        (left << self.halves[1]) | right
    }

    fn decrypt(&self, x: u64) -> u64 {
        let [a, b] = self.masks();
        let (mut left, mut right) = (x >> self.halves[1], x & b);
        for round in (0..Self::ROUNDS / 2).rev() {
            right ^= mix(!self.key ^ (left | round << 56)) & b;
            left ^= mix(self.key ^ (right | round << 56)) & a;
        }
        (left << self.halves[1]) | right
    }

    fn masks(&self) -> [u64; 2] {
        self.halves.map(|bits| (1u64 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn permutations_are_bijections(n in 1usize..3000, seed: u64, epoch in 0u64..100) {
            let p = Permutation::new(n, seed, epoch);
            let mut seen = vec![false; n];
            for i in 0..n {
                let to = p.at(i);
                prop_assert!(!seen[to]);
                prop_assert_eq!(p.position_of(to), i);
                seen[to] = true;
            }
            let next = Permutation::new(n, seed, epoch + 1);
            // Two of n! permutations: equal ones are to be expected only for small n.
            prop_assert!(n < 20 || (0..n).any(|i| p.at(i) != next.at(i)));
        }
    }

    /// Each of the 120 permutations of five comes about as often as any other.
    #[test]
    fn small_permutations_are_uniform() {
        let mut counts = HashMap::new();
        let draws = 60_000;
        for epoch in 0..draws {
            let p = Permutation::new(5, 7, epoch);
            *counts.entry([0, 1, 2, 3, 4].map(|i| p.at(i))).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 120);
        let expected = draws as f64 / 120.0;
        let chi2: f64 = counts.values().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        // 119 degrees of freedom: mean 119, standard deviation 15.4; six of them.
        assert!(chi2 < 119.0 + 6.0 * 15.4, "chi-square {chi2}");
    }

    #[test]
    fn large_permutations_move_rows_far_and_wide() {
        let n = 1_000_003;
        let p = Permutation::new(n, 3, 0);
        let ascents = (0..10_000).filter(|&i| p.at(i) < p.at(i + 1)).count();
        assert!((4_700..5_300).contains(&ascents), "{ascents} ascents of 10000");
        let low = (0..10_000).filter(|&i| p.at(i) < n / 2).count();
        assert!((4_700..5_300).contains(&low), "{low} of 10000 in the lower half");
        // Pinned: a change here changes the order of every user's images.
        assert_eq!([0, 1, 2, 3].map(|i| Permutation::new(1000, 42, 0).at(i)), PINNED);
    }

    const PINNED: [usize; 4] = [763, 352, 572, 809];
}
