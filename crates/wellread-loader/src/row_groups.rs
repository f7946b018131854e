//! The values that a transform takes from columns beside the images, looked up for all rows of a set at once.
//!
//! ```text
//!   columns ──keys──▶ group of each row ─┬▶ Normalize::Groups: its means and deviations
//!                                        └▶ GroupFields: its illumination fields
//! ```

use crate::dataset::Dataset;
use crate::row_fields::RowFields;
use crate::transform::{GroupNormalize, Normalize, Transform};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wellread_store::{Error, Result, features};

/// Says that a row belongs to no group.
const NONE: u32 = u32::MAX;

/// The groups of the rows of a set.
pub(crate) struct RowGroups {
    /// The set: of another the rows are others.
    dataset: Dataset,
    normalize: Option<RowNormalize>,
    fields: Option<Arc<RowFields>>,
}

/// The groups that rows are normalised by.
struct RowNormalize {
    groups: Arc<GroupNormalize>,
    /// For each row.
    of_row: Vec<u32>,
    /// Keys of the rows of whose group nothing is known.
    unknown: HashMap<usize, String>,
}

impl fmt::Debug for RowGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.normalize.as_ref().map(|normalize| &normalize.groups);
        f.debug_struct("RowGroups")
            .field("normalize", &groups)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}

impl RowGroups {
    /// The values that this transform, which delivers these channels, takes from columns of this set; `None` where it
    /// takes nothing.
    ///
    /// # Errors
    /// Columns that are not there or cannot be read.
    pub(crate) fn of(dataset: &Dataset, transform: &Transform, channels: &[usize]) -> Result<Option<Self>> {
        let normalize = match &transform.normalize {
            Some(Normalize::Groups(groups)) => Some(RowNormalize::of(dataset, groups)?),
            _ => None,
        };
        let fields = match &transform.fields {
            Some(fields) => Some(Arc::new(RowFields::of(dataset, fields, channels)?)),
            None => None,
        };
        if normalize.is_none() && fields.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { dataset: dataset.clone(), normalize, fields }))
    }

    /// Whether two transforms, which deliver the same channels, take the same from columns.
    pub(crate) fn are_same(a: &Transform, b: &Transform) -> bool {
        let groups = |transform: &Transform| match &transform.normalize {
            Some(Normalize::Groups(groups)) => Some(Arc::clone(groups)),
            _ => None,
        };
        groups(a) == groups(b) && a.fields == b.fields
    }

    /// Whether the rows are those of this set.
    pub(crate) fn is_of(&self, dataset: &Dataset) -> bool {
        self.dataset.is_same(dataset)
    }

    /// The fields of rows, where illumination is corrected by these.
    pub(crate) fn fields(&self) -> Option<&Arc<RowFields>> {
        self.fields.as_ref()
    }

    /// Whether all that a row needs is known.
    ///
    /// # Errors
    /// The error of a row whose group is unknown.
    pub(crate) fn check(&self, row: usize) -> Result<()> {
        self.group(row)?;
        self.fields.as_ref().map_or(Ok(()), |fields| fields.check(row).map(drop))
    }

    /// The group of a row, where rows are normalised by groups.
    ///
    /// # Errors
    /// No such row; one of whose group nothing is known.
    pub(crate) fn group(&self, row: usize) -> Result<Option<u32>> {
        let Some(RowNormalize { groups, of_row, unknown }) = &self.normalize else { return Ok(None) };
        let path = self.dataset.store().path();
        match of_row.get(row) {
            Some(&NONE) => {
                let key = unknown.get(&row).map(|key| features::key_in_words(key)).unwrap_or_default();
                let by = groups.columns().join(",");
                let file = groups.path().display();
                Err(Error::new(path, format_args!("{file} has no statistics of its group, {by} {key}"))
                    .row(row)
                    .choice()
                    .hint(format_args!("compute them of all groups: wellread stats --by {by} --out {file}")))
            }
            Some(&group) => Ok(Some(group)),
            None => Err(Error::no_such_row(path, row, of_row.len())),
        }
    }
}

impl RowNormalize {
    fn of(dataset: &Dataset, groups: &Arc<GroupNormalize>) -> Result<Self> {
        let columns = groups.columns();
        let keys = features::written_keys(dataset.store(), columns)?;
        let mut found: Vec<Option<u32>> = keys.iter().map(|key| groups.group(key)).collect();
        if found.contains(&None) {
            // Older files have a point in whole numbers of columns of floats.
            for (group, key) in found.iter_mut().zip(features::keys(dataset.store(), columns)?) {
                *group = group.or_else(|| groups.group(&key));
            }
        }
        let mut unknown = HashMap::new();
        let group = |(row, (key, group)): (usize, (String, Option<u32>))| {
            group.unwrap_or_else(|| {
                unknown.insert(row, key);
                NONE
            })
        };
        let of_row = keys.into_iter().zip(found).enumerate().map(group).collect();
        Ok(Self { groups: Arc::clone(groups), of_row, unknown })
    }
}
