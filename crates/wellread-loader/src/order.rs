//! In which order rows come: position in the epoch → row, without a permutation array.
//!
//! A shuffled epoch is a keyed bijection of `0..n` ([`Permutation`]): a Feistel network over the smallest
//! power of two that holds `n`, walked until the result falls below `n` (Black & Rogaway, CT-RSA 2002). It
//! needs no memory, any position can be asked for at once, and so resuming and splitting over workers are
//! free. Key = (seed, epoch).

use crate::draw::{key, mix};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wellread_store::{Error, Result, Store};

/// The order of rows in an epoch.
#[derive(Clone, Debug, Default)]
pub enum Order {
    /// As stored, the same in each epoch.
    #[default]
    Sequential,
    /// Every row once, in a random order that differs from epoch to epoch.
    Random,
    /// Rows of a group together, in storage order; the order of groups is random and differs from epoch to
    /// epoch. Needs every row's name (or the given keys) when the loader is built, and one number per row.
    Grouped(Grouping),
}

/// What makes rows belong together.
#[derive(Clone)]
pub enum Grouping {
    /// The part of the row's name before the first occurrence of this text; the whole name without one.
    NamePrefix(String),
    /// A function of the row's name.
    Name(Arc<dyn Fn(&str) -> String + Send + Sync>),
    /// One key for every row of the dataset.
    Keys(Arc<[String]>),
}

impl fmt::Debug for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NamePrefix(separator) => f.debug_tuple("NamePrefix").field(separator).finish(),
            Self::Name(_) => f.write_str("Name(function)"),
            Self::Keys(keys) => write!(f, "Keys({} rows)", keys.len()),
        }
    }
}

impl Grouping {
    /// By the part of the name before the first `separator`, such as `_`.
    pub fn name_prefix(separator: impl Into<String>) -> Self {
        Self::NamePrefix(separator.into())
    }

    /// By a function of the name.
    pub fn by_name(key: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::Name(Arc::new(key))
    }

    /// By a table: one key per row of the dataset.
    pub fn keys(keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Keys(keys.into_iter().map(Into::into).collect())
    }

    fn key(&self, store: &dyn Store, row: usize) -> Result<String> {
        Ok(match self {
            Self::NamePrefix(separator) => {
                let name = store.name(row)?;
                name.split_once(separator).map_or(name.as_str(), |(prefix, _)| prefix).to_owned()
            }
            Self::Name(key) => key(&store.name(row)?),
            Self::Keys(keys) => keys[row].clone(),
        })
    }
}

/// A keyed permutation of `0..n`.
///
/// ```
/// use wellread_loader::order::Permutation;
/// let p = Permutation::new(10, 42, 0);
/// let mut all: Vec<usize> = (0..10).map(|i| p.at(i)).collect();
/// all.sort_unstable();
/// assert_eq!(all, (0..10).collect::<Vec<_>>());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: usize,
    /// Bits of the left and of the right half.
    halves: [u32; 2],
    key: u64,
}

impl Permutation {
    /// Far more rounds than the four that make a wide Feistel network a strong permutation: halves of one or
    /// two bits mix slowly, and with 12 rounds the permutations of five rows are visibly uneven.
    const ROUNDS: u64 = 24;

    /// The permutation of `0..n` for a seed and an epoch.
    pub fn new(n: usize, seed: u64, epoch: u64) -> Self {
        let bits = n.max(1).next_power_of_two().trailing_zeros();
        Self { n, halves: [bits / 2, bits - bits / 2], key: key([seed, epoch, 0x006f_7264_6572]) }
    }

    /// Where position `i` goes.
    ///
    /// # Panics
    /// When `i` is not below `n`.
    pub fn at(&self, i: usize) -> usize {
        assert!(i < self.n, "position {i} of a permutation of {}", self.n);
        let mut x = i as u64;
        // The domain is less than twice `n`, so two rounds on average; it ends because the walk is a cycle
        // that began below `n`.
        loop {
            x = self.encrypt(x);
            if (x as usize) < self.n {
                return x as usize;
            }
        }
    }

    fn encrypt(&self, x: u64) -> u64 {
        let [a, b] = self.halves.map(|bits| (1u64 << bits) - 1);
        let (mut left, mut right) = (x >> self.halves[1], x & b);
        for round in 0..Self::ROUNDS / 2 {
            left ^= mix(self.key ^ (right | round << 56)) & a;
            right ^= mix(!self.key ^ (left | round << 56)) & b;
        }
        (left << self.halves[1]) | right
    }
}

/// The order of a loader, before an epoch is chosen.
#[derive(Debug)]
pub(crate) enum RowOrder {
    Sequential(Rows),
    Random(Rows),
    /// Rows sorted by group, and where each group starts (one more at the end).
    Grouped {
        rows: Vec<usize>,
        starts: Vec<usize>,
    },
}

/// The rows to be loaded.
#[derive(Clone, Debug)]
pub(crate) enum Rows {
    /// `0..n`.
    All(usize),
    /// These.
    Some(Arc<[usize]>),
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(n) => *n,
            Self::Some(rows) => rows.len(),
        }
    }

    pub(crate) fn get(&self, i: usize) -> usize {
        match self {
            Self::All(_) => i,
            Self::Some(rows) => rows[i],
        }
    }
}

impl RowOrder {
    pub(crate) fn new(order: &Order, rows: Rows, store: &dyn Store) -> Result<Self> {
        let grouping = match order {
            Order::Sequential => return Ok(Self::Sequential(rows)),
            Order::Random => return Ok(Self::Random(rows)),
            Order::Grouped(grouping) => grouping,
        };
        if let Grouping::Keys(keys) = grouping
            && keys.len() != store.len()
        {
            return Err(Error::new(
                store.path(),
                format_args!("{} group keys were given for {} images", keys.len(), store.len()),
            )
            .hint("give one key for every row of the dataset, also for rows that are left out"));
        }
        let mut groups: Vec<Vec<usize>> = vec![];
        let mut known = HashMap::new();
        for i in 0..rows.len() {
            let row = rows.get(i);
            let group = *known.entry(grouping.key(store, row)?).or_insert_with(|| {
                groups.push(vec![]);
                groups.len() - 1
            });
            groups[group].push(row);
        }
        let mut starts = vec![0];
        starts.extend(groups.iter().scan(0, |end, group| {
            *end += group.len();
            Some(*end)
        }));
        Ok(Self::Grouped { rows: groups.concat(), starts })
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sequential(rows) | Self::Random(rows) => rows.len(),
            Self::Grouped { rows, .. } => rows.len(),
        }
    }
}

/// The order of one epoch: position → row.
#[derive(Debug)]
pub(crate) struct EpochOrder {
    permutation: Permutation,
    /// Positions at which the groups end, in this epoch's order of groups.
    ends: Vec<usize>,
}

impl EpochOrder {
    pub(crate) fn new(order: &RowOrder, seed: u64, epoch: u64) -> Self {
        match order {
            RowOrder::Sequential(rows) | RowOrder::Random(rows) => {
                Self { permutation: Permutation::new(rows.len(), seed, epoch), ends: vec![] }
            }
            RowOrder::Grouped { starts, .. } => {
                let groups = starts.len() - 1;
                let permutation = Permutation::new(groups, seed, epoch);
                let mut end = 0;
                let ends = (0..groups)
                    .map(|i| {
                        let group = permutation.at(i);
                        end += starts[group + 1] - starts[group];
                        end
                    })
                    .collect();
                Self { permutation, ends }
            }
        }
    }

    pub(crate) fn row(&self, order: &RowOrder, position: usize) -> usize {
        match order {
            RowOrder::Sequential(rows) => rows.get(position),
            RowOrder::Random(rows) => rows.get(self.permutation.at(position)),
            RowOrder::Grouped { rows, starts } => {
                let i = self.ends.partition_point(|&end| end <= position);
                let group = self.permutation.at(i);
                rows[starts[group + 1] - (self.ends[i] - position)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn permutations_are_bijections(n in 1usize..3000, seed: u64, epoch in 0u64..100) {
            let p = Permutation::new(n, seed, epoch);
            let mut seen = vec![false; n];
            for i in 0..n {
                let to = p.at(i);
                prop_assert!(!seen[to]);
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
    }
}
