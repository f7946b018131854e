//! Which image of a set is which of the expected ones.

use crate::checksum::ImageChecksum;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A row of the set under test: its name, and its digest if it could be read.
pub(super) struct CheckedRow {
    pub name: Option<String>,
    pub sum: Option<ImageChecksum>,
}

/// The expected image that a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Its row in the expected set.
    pub expected: usize,
}

/// Shape, type and digest: equal ones make pixels the same.
type Content<'a> = (&'a [usize; 5], &'a str, &'a str);

fn content(sum: &ImageChecksum) -> Content<'_> {
    (&sum.shape_tczyx, &sum.dtype, &sum.sha256)
}

/// Pairs rows with expected images, those that agree in most first:
///
/// 1. row, name and pixels: the same;
/// 2. name and pixels: moved;
/// 3. row and name: other pixels;
/// 4. row and pixels: renamed;
/// 5. pixels: renamed and moved;
/// 6. name: other pixels, and moved.
///
/// Two images in one row that agree in nothing else are no pair. A row that cannot be read has the pixels that are
/// expected of it. With `any_names`, names agree always.
pub(super) fn pair(found: &[CheckedRow], expected: &[ImageChecksum], any_names: bool) -> Vec<Option<Pair>> {
    let mut pairs = Pairs { of_found: vec![None; found.len()], taken: vec![false; expected.len()] };
    let same_name = |row: usize, at: usize| {
        any_names || found[row].name.as_ref().is_none_or(|name| *name == expected[at].name)
    };
    let same_pixels =
        |row: usize, at: usize| found[row].sum.as_ref().is_none_or(|f| content(f) == content(&expected[at]));
    let name_of = |row: usize| found[row].name.as_deref().filter(|_| !any_names);
    let sum_of = |row: usize| found[row].sum.as_ref();
    pairs.by_row(|row| same_name(row, row) && same_pixels(row, row));
    if !any_names {
        pairs.by_key(
            |row| Some((name_of(row)?, content(sum_of(row)?))),
            |at| (expected[at].name.as_str(), content(&expected[at])),
        );
        pairs.by_row(|row| same_name(row, row));
    }
    pairs.by_row(|row| sum_of(row).is_some() && same_pixels(row, row));
    pairs.by_key(|row| sum_of(row).map(content), |at| content(&expected[at]));
    if any_names {
        pairs.by_row(|_| true);
    } else {
        pairs.by_key(name_of, |at| expected[at].name.as_str());
    }
    pairs.of_found
}

struct Pairs {
    of_found: Vec<Option<Pair>>,
    taken: Vec<bool>,
}

impl Pairs {
    /// Pairs what is in the same row of both and `agrees`.
    fn by_row(&mut self, agrees: impl Fn(usize) -> bool) {
        for row in 0..self.of_found.len().min(self.taken.len()) {
            if self.of_found[row].is_none() && !self.taken[row] && agrees(row) {
                self.of_found[row] = Some(Pair { expected: row });
                self.taken[row] = true;
            }
        }
    }

    /// Pairs what has the same key, the first with the first.
    fn by_key<K: Eq + Hash>(
        &mut self,
        of_found: impl Fn(usize) -> Option<K>,
        of_expected: impl Fn(usize) -> K,
    ) {
        let mut left: HashMap<K, VecDeque<usize>> = HashMap::new();
        for at in (0..self.taken.len()).filter(|&at| !self.taken[at]) {
            left.entry(of_expected(at)).or_default().push_back(at);
        }
        for row in 0..self.of_found.len() {
            if self.of_found[row].is_some() {
                continue;
            }
            let at = of_found(row).and_then(|key| left.get_mut(&key)?.pop_front());
            if let Some(at) = at {
                self.of_found[row] = Some(Pair { expected: at });
                self.taken[at] = true;
            }
        }
    }
}

/// Whether each row stands at another place among the paired ones than its expected image does. Rows behind an image
/// that is missing or additional have not been moved.
pub(super) fn moved(pairs: &[Option<Pair>], found: usize, expected: usize) -> Vec<bool> {
    let mut by_expected = vec![None; expected];
    for (row, pair) in pairs.iter().enumerate() {
        if let Some(pair) = pair {
            by_expected[pair.expected] = Some(row);
        }
    }
    let mut moved = vec![false; found];
    let in_order = by_expected.into_iter().flatten();
    for (row, should) in (0..found).filter(|&row| pairs[row].is_some()).zip(in_order) {
        moved[row] = row != should;
    }
    moved
}
