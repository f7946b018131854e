//! Sets that are opened again, and whether they are still the sets that they were.
//!
//! ```text
//!  set as it was opened ─▶ RowDigests ─┐
//!  its path, opened again ─────────────┴─▶ other rows: an error, and no images under the labels of others
//! ```
//!
//! Rows are told by their files, which a listing knows, and by a few names where they have none of their own. Files
//! that are written again under their names make no other set.

use super::Dataset;
use crate::draw::{Digest, key};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;
use wellread_store::words::counted;
use wellread_store::{Error, Result, RowHints};

/// Blocks of rows that are told apart: the digests of a set of any size are small.
const BLOCKS: usize = 1024;

/// Names that tell a set from another. All of them would have to be read.
const NAMES: usize = 8;

/// Some rows of a set of `rows`: all of a few, and the last one in any case.
pub(crate) fn sampled(rows: usize) -> impl Iterator<Item = usize> {
    let names = NAMES.min(rows);
    (0..names).map(move |i| (i as u128 * (rows - 1) as u128 / (names - 1).max(1) as u128) as usize)
}

/// Digests of the rows of a set, in order. They tell it from another that is at its path later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowDigests {
    rows: usize,
    /// The files of the rows of each block; `None` where one has no file of its own.
    files: Vec<Option<u64>>,
    /// The sets that it is put together from, and the boxes of cells; `None` where nothing was to be read.
    made_of: Option<u64>,
    /// The names of [`sampled`] rows, `None` for one that cannot be read. Empty where files tell, or nothing was to be read.
    names: Vec<Option<u64>>,
}

impl RowDigests {
    /// Digests that take no reading and no locks: the set may be of the process that this one was forked from. Hints of the
    /// whole set are left out as well, since an engine may look into its database for them.
    fn listed(set: &Dataset) -> Self {
        let files = files(set, block_of(set.len()));
        Self { rows: set.len(), files, made_of: None, names: vec![] }
    }

    /// As [`Self::listed`]. A few names are read where rows have no files.
    fn read(set: &Dataset) -> Self {
        let listed = Self::listed(set);
        let names = if listed.files.iter().all(Option::is_some) { vec![] } else { names(set) };
        Self { names, made_of: Some(made_of(set)), ..listed }
    }

    /// Whether a set that was opened again has the rows that it had, in their order.
    ///
    /// # Errors
    /// It has others: how many there were and are, and the first that is found to be another.
    pub fn check(&self, now: &Dataset) -> Result<()> {
        let rows = now.len();
        let other = self.first_other(now);
        let is_made_alike = self.made_of.is_none_or(|before| before == made_of(now));
        if rows == self.rows && other.is_none() && is_made_alike {
            return Ok(());
        }
        let thing = now.store().hints().thing();
        let counts = if rows == self.rows {
            format!("it still has {}", counted(rows, thing))
        } else {
            format!("it had {} and has {rows}", counted(self.rows, thing))
        };
        let which = match other {
            Some(other) if other.start >= rows => format!(", and row {} is gone", other.start),
            Some(other) if other.len() == 1 => {
                let name = now.name(other.start).unwrap_or_else(|_| "another".to_owned());
                format!(", and row {} is now {name}", other.start)
            }
            Some(other) => format!(", and one of the rows {} to {} is another", other.start, other.end - 1),
            None if rows == self.rows => ", and they are others".to_owned(),
            None => String::new(),
        };
        let cause = format_args!("the set has changed since it was opened: {counts}{which}");
        Err(Error::new(now.store().path(), cause).hint("open the dataset anew; labels are of its old rows"))
    }

    /// The first rows found to be others than they were.
    fn first_other(&self, now: &Dataset) -> Option<Range<usize>> {
        let (rows, block) = (now.len(), block_of(self.rows));
        let files = files(now, block);
        let mut both = self.files.iter().copied().zip(files.iter().copied());
        if let Some(at) = both.position(differ) {
            return Some(at * block..((at + 1) * block).min(rows.max(self.rows)));
        }
        if rows != self.rows {
            let first = rows.min(self.rows);
            let are_told = self.files.iter().chain(&files).all(Option::is_some);
            return are_told.then_some(first..first + 1);
        }
        if self.names.is_empty() {
            return None;
        }
        let at = self.names.iter().copied().zip(names(now)).position(differ)?;
        sampled(rows).nth(at).map(|row| row..row + 1)
    }
}

impl Dataset {
    /// The digests of this set's rows, which are made once. Files are known from the listing; where rows have none of their
    /// own, a few names are read.
    pub fn row_digests(&self) -> &RowDigests {
        self.row_digests.get_or_init(|| RowDigests::read(self))
    }

    /// Makes the digests of all sets that it is made of, for processes that are forked later. Names cannot be read from
    /// the set of another process. Behind a network none are read.
    pub fn remember(&self) {
        if let Some(with_columns) = &self.with_columns {
            with_columns.images.remember();
        } else if let Some(crops) = &self.cell_crops {
            crops.images.remember();
            if let Some(masks) = &crops.masks {
                masks.remember();
            }
        } else if let Some(view) = &self.view {
            for set in view.sets() {
                set.remember();
            }
        } else if !self.is_remote() {
            self.row_digests();
        }
    }

    /// The same images opened anew, with empty caches. It is for a process that was forked from the one that
    /// opened them. Locks that a thread held at that moment may be closed there for ever. Loaders do so by
    /// themselves. The store of [`Self::from_store`] is the same one. Rows of tables are compared by names
    /// where [`Self::remember`] was called before, else by their number.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Self::with_cache`]. Other rows than there were, as in [`RowDigests::check`].
    pub fn reopened(&self) -> Result<Self> {
        if let Some(with_columns) = &self.with_columns {
            return Self::of_columns(with_columns.images.reopened()?, Arc::clone(&with_columns.columns));
        }
        if let Some(crops) = &self.cell_crops {
            return crops.reopened();
        }
        if let Some(view) = &self.view {
            return self.caches.iter().try_fold(view.reopened()?, Self::with_cache);
        }
        let Some(reopen) = &self.reopen else { return Ok(self.clone()) };
        let options_key = self.options_key.clone();
        let bare = Self { reopen: Some(Arc::clone(reopen)), options_key, ..Self::bare(reopen()?) };
        match self.row_digests.get() {
            Some(digests) => digests.check(&bare)?,
            None => RowDigests::listed(self).check(&bare)?,
        }
        self.caches.iter().try_fold(bare, Self::with_cache)
    }
}

/// Rows of a block, in a set of `rows`.
fn block_of(rows: usize) -> usize {
    rows.div_ceil(BLOCKS).max(1)
}

/// A digest of the files of each block of rows, by their paths within the set.
fn files(set: &Dataset, block: usize) -> Vec<Option<u64>> {
    let (store, rows) = (set.store(), set.len());
    let of = |rows: Range<usize>| {
        let mut digest = Digest::new(key([0x0066_696c_6573, 0, 0]));
        for row in rows {
            let file = store.row_hints(row).ok().and_then(RowHints::file)?;
            digest.text(&file.strip_prefix(store.path()).unwrap_or(&file).to_string_lossy());
        }
        Some(digest.finish())
    };
    (0..rows).step_by(block).map(|first| of(first..rows.min(first + block))).collect()
}

fn names(set: &Dataset) -> Vec<Option<u64>> {
    let of = |name: String| {
        let mut digest = Digest::new(key([0x006e_616d_6573, 0, 0]));
        digest.text(&name);
        digest.finish()
    };
    sampled(set.len()).map(|row| set.name(row).ok().map(of)).collect()
}

fn made_of(set: &Dataset) -> u64 {
    let mut digest = Digest::new(key([0x0070_6172_7473, 0, 0]));
    for part in set.store().hints().set_parts() {
        digest.text(&part.name);
        digest.numbers(part.rows.iter().flat_map(|rows| [rows.start as u64, rows.end as u64]));
    }
    if let Some(crops) = &set.cell_crops {
        digest.numbers(crops.cells.identity());
    }
    digest.finish()
}

/// Whether both are known, and not the same.
fn differ((before, now): (Option<u64>, Option<u64>)) -> bool {
    before.is_some() && now.is_some() && before != now
}
