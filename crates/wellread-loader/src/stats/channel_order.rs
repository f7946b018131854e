//! Which channels of the images of a set are counted as one: those of one name, in whatever order images have them.
//!
//! ```text
//!   image 0: DNA ER AGP     image 1: ER AGP DNA ─▶ places 1 2 0     image 2: DNA RNA: the channels go by number, and that is said
//! ```

use crate::transform::ChannelNames;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use wellread_store::store::RowsAhead;
use wellread_store::{Result, RowHints, Store, mixed_channels};

/// Images behind a network that are looked at for names where the first has none, at most: each look may be a request.
const MAX_REMOTE: usize = 8;

/// The names of the channels of a row.
fn names_of(store: &dyn Store, row: usize) -> Result<Vec<String>> {
    Ok(store.metadata(row)?.channels.into_iter().map(|channel| channel.name).collect())
}

fn is_known(name: &str) -> bool {
    !name.is_empty()
}

fn are_named(names: &[String]) -> bool {
    names.iter().any(|name| is_known(name))
}

/// How many rows have names of channels, of some all over them. One that cannot be read is passed over: reading its pixels tells
/// of it.
fn named(store: &dyn Store, rows: &[usize]) -> usize {
    let most = if store.remote_path().is_some() { MAX_REMOTE } else { mixed_channels::MAX_IMAGES };
    let rows: Vec<usize> = rows.iter().copied().step_by(rows.len().div_ceil(most).max(1)).collect();
    let mut ahead = RowsAhead::of_heads(store, rows.len(), |i| rows.get(i).copied());
    let mut found = 0;
    for (i, &row) in rows.iter().enumerate() {
        ahead.before(i);
        match names_of(store, row) {
            Ok(names) => found += usize::from(are_named(&names)),
            // A server that does not answer is not asked again.
            Err(error) if error.may_pass() => break,
            Err(_) => {}
        }
    }
    found
}

/// The names of the channels of some rows, each list of names once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowNames {
    lists: Vec<Vec<String>>,
    /// Rows and the numbers of their lists.
    rows: Vec<(usize, usize)>,
}

impl RowNames {
    /// Those of these rows.
    ///
    /// # Errors
    /// Metadata that cannot be read.
    pub fn of(store: &dyn Store, rows: &[usize]) -> Result<Self> {
        // Metadata of rows that lie together may be read together. To tell where they lie, some have to be looked at.
        let mut ahead = RowsAhead::of_heads(store, rows.len(), |i| rows.get(i).copied());
        let position = |(i, &row): (usize, &usize)| {
            ahead.before(i);
            (store.row_hints(row).map_or(u64::MAX, RowHints::position), row)
        };
        let mut placed: Vec<(u64, usize)> = rows.iter().enumerate().map(position).collect();
        placed.sort_by_key(|(position, _)| *position);
        let rows: Vec<usize> = placed.into_iter().map(|(_, row)| row).collect();
        let mut found = Self::default();
        let mut numbers: HashMap<Vec<String>, usize> = HashMap::new();
        let mut ahead = RowsAhead::of_heads(store, rows.len(), |i| rows.get(i).copied());
        for (i, &row) in rows.iter().enumerate() {
            ahead.before(i);
            let names = names_of(store, row)?;
            let number = numbers.get(&names).copied().unwrap_or_else(|| {
                let number = found.lists.len();
                found.lists.push(names.clone());
                numbers.insert(names, number);
                number
            });
            found.rows.push((row, number));
        }
        Ok(found)
    }

    /// The names of each row.
    pub fn each(&self) -> impl Iterator<Item = (usize, &[String])> {
        self.rows.iter().filter_map(|&(row, list)| Some((row, self.lists.get(list)?.as_slice())))
    }

    /// Those of one row.
    pub fn row(&self, row: usize) -> Option<&[String]> {
        self.each().find(|(known, _)| *known == row).map(|(_, names)| names)
    }
}

/// The channels of some rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelOrder {
    /// The name of each channel, where it has the same one in all rows.
    pub(super) names: Vec<Option<String>>,
    /// The rows whose channels stand elsewhere than in the first, and where each is counted.
    moved: HashMap<usize, Vec<usize>>,
    /// Rows whose channels have other names than those of the first row, where channels go by number.
    pub(super) other_names: usize,
}

impl ChannelOrder {
    /// That of these rows.
    ///
    /// # Errors
    /// Metadata that cannot be read.
    pub fn of(store: &dyn Store, rows: &[usize]) -> Result<Self> {
        let Some(&first) = rows.first() else { return Ok(Self::default()) };
        let own = names_of(store, first)?;
        if !are_named(&own) {
            return Ok(Self { other_names: named(store, rows), ..Self::of_names(&own, []) });
        }
        Ok(Self::of_names(&own, RowNames::of(store, rows)?.each()))
    }

    /// That of rows whose channels have these names: `own` are those of the first.
    pub fn of_names<'n>(own: &[String], rows: impl IntoIterator<Item = (usize, &'n [String])>) -> Self {
        let mut names: Vec<Option<String>> =
            own.iter().map(|name| Some(name.clone()).filter(|name| is_known(name))).collect();
        if !are_named(own) {
            let other_names = rows.into_iter().filter(|(_, there)| are_named(there)).count();
            return Self { names, other_names, ..Self::default() };
        }
        let known = ChannelNames::new(names.iter().cloned());
        let (mut moved, mut unlike) = (HashMap::new(), 0);
        for (row, there) in rows {
            // An image without such a channel counts for none of it.
            if there.iter().zip(own).all(|(name, own)| name == own) {
                continue;
            }
            for (name, other) in names.iter_mut().zip(there) {
                if name.as_ref() != Some(other) {
                    *name = None;
                }
            }
            let places: Option<Vec<usize>> = there.iter().map(|name| known.number(name)).collect();
            let is_once = |places: &Vec<usize>| (1..places.len()).all(|i| !places[..i].contains(&places[i]));
            match places.filter(is_once) {
                Some(places) => drop(moved.insert(row, places)),
                None => unlike += 1,
            }
        }
        if unlike > 0 {
            return Self { names, other_names: unlike + moved.len(), moved: HashMap::new() };
        }
        if !moved.is_empty() {
            names = own.iter().map(|name| Some(name.clone()).filter(|name| is_known(name))).collect();
        }
        Self { names, moved, other_names: 0 }
    }

    /// How many rows have their channels in another order.
    pub(super) fn reordered(&self) -> usize {
        self.moved.len()
    }

    /// Where each channel of a row is counted, where that is not its number.
    pub(super) fn positions(&self, row: usize) -> Option<&[usize]> {
        self.moved.get(&row).map(Vec::as_slice)
    }
}
