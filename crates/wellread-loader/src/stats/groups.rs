//! Statistics of each group of a set: of each plate, or of the control wells of each.
//!
//! ```text
//!   columns beside the images ──keys──▶ rows of each group ──of_rows──▶ Stats of each ──▶ a file of all
//! ```

use super::collect;
use super::document::{self, FORMAT, GROUPS_VERSION, HINT, Stats};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use wellread_store::{Error, Result, Store, features};

/// Statistics of the groups of a set: what `wellread stats --by COLUMN --out` writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupStats {
    /// Always `wellread-stats`.
    pub format: String,
    /// Version of this form.
    pub version: u32,
    /// The columns whose values tell the groups.
    pub by: Vec<String>,
    /// The groups, in the order in which they appear.
    pub groups: Vec<Group>,
}

/// The statistics of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The values of the columns, as text: dates and times in ISO 8601, whole numbers without a point. Absent ones are null.
    pub key: Vec<Option<String>>,
    /// The statistics of its images.
    pub stats: Stats,
}

impl GroupStats {
    /// Reads every pixel of a set, with `jobs` threads, group by group: rows that agree in the columns `by`. `done` is called once per
    /// row.
    ///
    /// # Errors
    /// Columns that there are not; as [`Stats::of`].
    pub fn of(
        store: &dyn Store,
        by: &[String],
        percents: &[f64],
        jobs: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<Self> {
        let group = |(key, rows): GroupRows| {
            let stats = collect::of_rows(store, &rows, percents, jobs, done)?;
            Ok(Group { key, stats })
        };
        let groups = grouped(store, by)?.into_iter().map(group).collect::<Result<Vec<_>>>()?;
        Ok(Self::new(by.to_vec(), groups))
    }

    /// Those of these groups, which the columns `by` tell.
    pub fn new(by: Vec<String>, groups: Vec<Group>) -> Self {
        Self { format: FORMAT.into(), version: GROUPS_VERSION, by, groups }
    }

    /// Reads a file of such statistics; `None` where it is one of a whole set.
    ///
    /// # Errors
    /// A file that cannot be read, is none of statistics, or is of a newer version.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let value = document::document(path)?;
        if document::columns_of(&value).is_none() {
            return Ok(None);
        }
        if value["version"].as_u64().is_none_or(|version| version > u64::from(GROUPS_VERSION)) {
            return Err(Error::new(
                path,
                format_args!("its version is {}, this build knows up to {GROUPS_VERSION}", value["version"]),
            )
            .hint("update wellread, or compute the statistics again"));
        }
        serde_json::from_value(value)
            .map(Some)
            .map_err(|e| Error::new(path, format_args!("is no file of statistics: {e}")).hint(HINT))
    }
}

/// The values of a group's columns, and its rows.
pub type GroupRows = (Vec<Option<String>>, Vec<usize>);

/// The values of the columns `by` and the rows of each group, in the order in which groups appear.
///
/// # Errors
/// Columns that there are not; a set without images.
pub fn grouped(store: &dyn Store, by: &[String]) -> Result<Vec<GroupRows>> {
    let keys = features::written_keys(store, by)?;
    let mut rows: Vec<(&str, Vec<usize>)> = vec![];
    let mut number: HashMap<&str, usize> = HashMap::new();
    for (row, key) in keys.iter().map(String::as_str).enumerate() {
        let group = *number.entry(key).or_insert_with(|| {
            rows.push((key, vec![]));
            rows.len() - 1
        });
        rows[group].1.push(row);
    }
    if rows.is_empty() {
        return Err(Error::new(store.path(), "there are no images to compute statistics of"));
    }
    Ok(rows.into_iter().map(|(key, rows)| (features::key_values(key), rows)).collect())
}
