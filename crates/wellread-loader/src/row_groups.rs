//! What a transform takes from columns beside the images, looked up for all rows of a set at once.
//!
//! ```text
//!   columns ──keys──▶ group of each row ──▶ Normalize::Groups: its means and deviations
//! ```

use crate::dataset::Dataset;
use crate::transform::{GroupNormalize, Normalize, Transform};
use std::collections::HashMap;
use std::sync::Arc;
use wellread_store::{Error, Result, features};

/// Says that a row belongs to no group.
const NONE: u32 = u32::MAX;

/// The groups of the rows of a set.
pub(crate) struct RowGroups {
    /// The set: of another the rows are others.
    dataset: Dataset,
    normalize: Arc<GroupNormalize>,
    /// For each row.
    groups: Vec<u32>,
    /// Keys of the rows of whose group nothing is known.
    unknown: HashMap<usize, String>,
}

impl std::fmt::Debug for RowGroups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowGroups({:?})", self.normalize)
    }
}

impl RowGroups {
    /// What this transform takes from columns of this set; `None` where it takes nothing.
    ///
    /// # Errors
    /// Columns that are not there or cannot be read.
    pub(crate) fn of(dataset: &Dataset, transform: &Transform) -> Result<Option<Self>> {
        let Some(Normalize::Groups(normalize)) = &transform.normalize else { return Ok(None) };
        let keys = features::keys(dataset.store(), normalize.columns())?;
        let mut unknown = HashMap::new();
        let group = |(row, key): (usize, String)| {
            normalize.group(&key).unwrap_or_else(|| {
                unknown.insert(row, key);
                NONE
            })
        };
        let groups = keys.into_iter().enumerate().map(group).collect();
        Ok(Some(Self { dataset: dataset.clone(), normalize: Arc::clone(normalize), groups, unknown }))
    }

    /// Whether the rows are those of this set.
    pub(crate) fn is_of(&self, dataset: &Dataset) -> bool {
        self.dataset.is_same(dataset)
    }

    /// The group of a row.
    ///
    /// # Errors
    /// No such row; one of whose group nothing is known.
    pub(crate) fn group(&self, row: usize) -> Result<u32> {
        let path = self.dataset.store().path();
        match self.groups.get(row) {
            Some(&NONE) => {
                let key = self.unknown.get(&row).map(|key| features::key_in_words(key)).unwrap_or_default();
                let by = self.normalize.columns().join(",");
                let file = self.normalize.path().display();
                Err(Error::new(path, format_args!("{file} has no statistics of its group, {by} {key}"))
                    .row(row)
                    .choice()
                    .hint(format_args!("compute them of all groups: wellread stats --by {by} --out {file}")))
            }
            Some(&group) => Ok(group),
            None => Err(Error::no_such_row(path, row, self.groups.len())),
        }
    }
}
