//! Which channels of the images of a set are counted as one: those of one name, in whatever order images have them.
//!
//! ```text
//!   image 0: DNA ER AGP     image 1: ER AGP DNA ─▶ places 1 2 0     image 2: DNA RNA: the channels go by number, and that is said
//! ```

use crate::transform::ChannelNames;
use std::collections::HashMap;
use wellread_store::{Result, RowHints, Store};

/// The channels of some rows.
#[derive(Debug, Default)]
pub(super) struct ChannelOrder {
    /// The name of each channel, where it has the same one in all rows.
    pub names: Vec<Option<String>>,
    /// Of the rows whose channels stand elsewhere than in the first, where each is counted.
    moved: HashMap<usize, Vec<usize>>,
    /// Rows whose channels have other names than those of the first row, where channels go by number.
    pub other_names: usize,
}

impl ChannelOrder {
    /// That of these rows.
    ///
    /// # Errors
    /// Metadata that cannot be read.
    pub(super) fn of(store: &dyn Store, rows: &[usize]) -> Result<Self> {
        let Some(&first) = rows.first() else { return Ok(Self::default()) };
        let names_of = |row: usize| -> Result<Vec<String>> {
            Ok(store.metadata(row)?.channels.into_iter().map(|channel| channel.name).collect())
        };
        let own = names_of(first)?;
        let is_known = |name: &String| !name.is_empty();
        let mut names: Vec<Option<String>> =
            own.iter().map(|name| Some(name.clone()).filter(is_known)).collect();
        if !own.iter().any(is_known) {
            return Ok(Self { names, ..Self::default() });
        }
        let known = ChannelNames::new(names.iter().cloned());
        let (mut moved, mut unlike) = (HashMap::new(), 0);
        // Metadata of rows that lie together may be read together.
        let mut rows = rows.to_vec();
        rows.sort_by_cached_key(|&row| store.row_hints(row).map_or(u64::MAX, RowHints::position));
        for row in rows {
            let there = names_of(row)?;
            // An image without such a channel counts for none of it.
            if there.iter().zip(&own).all(|(name, own)| name == own) {
                continue;
            }
            for (name, other) in names.iter_mut().zip(&there) {
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
            return Ok(Self { names, other_names: unlike + moved.len(), moved: HashMap::new() });
        }
        if !moved.is_empty() {
            names = own.iter().map(|name| Some(name.clone()).filter(is_known)).collect();
        }
        Ok(Self { names, moved, other_names: 0 })
    }

    /// How many rows have their channels in another order.
    pub(super) fn reordered(&self) -> usize {
        self.moved.len()
    }

    /// Where each channel of a row is counted, where that is not its number.
    pub(super) fn places(&self, row: usize) -> Option<&[usize]> {
        self.moved.get(&row).map(Vec::as_slice)
    }
}
