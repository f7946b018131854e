//! The rows that an order chooses from.

use crate::draw::Digest;
use std::sync::Arc;

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

    /// The same rows, as they lie in the set.
    pub(super) fn sorted(self) -> Self {
        match self {
            Self::Some(rows) if !rows.is_sorted() => {
                let mut sorted = rows.to_vec();
                sorted.sort_unstable();
                Self::Some(sorted.into())
            }
            rows => rows,
        }
    }

    /// Whether a row is given more than once.
    pub(super) fn repeat(&self) -> bool {
        match self {
            Self::All(_) => false,
            Self::Some(rows) => {
                let mut sorted = rows.to_vec();
                sorted.sort_unstable();
                sorted.windows(2).any(|pair| pair[0] == pair[1])
            }
        }
    }

    pub(super) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::All(n) => digest.number(*n as u64),
            Self::Some(rows) => digest.numbers(rows.iter().map(|&row| row as u64)),
        }
    }
}
