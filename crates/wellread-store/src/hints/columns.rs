//! Columns of plain values that stand beside the images of a set, as far as a store has some.
//!
//! ```text
//!  Hints::features(names) ─▶ FeatureTable::features   a row per image, of these columns alone
//!  names, columns left out, renamed, in UTC           what is known of them without their values, or once they are read
//! ```

use super::Hints;
use crate::Result;
use arrow_array::RecordBatch;

impl Hints<'_> {
    /// Names of the columns of [`Self::features`], without reading them.
    pub fn feature_names(self) -> Vec<String> {
        self.columns.map_or(vec![], FeatureTable::feature_names)
    }

    /// Columns beside the images that are none of [`Self::features`], such as nested and binary ones, and why.
    pub fn columns_left_out(self) -> Vec<LeftOut> {
        self.columns.map_or(vec![], FeatureTable::columns_left_out)
    }

    /// Columns whose names here are not those of the file, where several have one name: all names here differ.
    pub fn columns_renamed(self) -> Vec<Renamed> {
        self.columns.map_or(vec![], FeatureTable::columns_renamed)
    }

    /// Columns of times that have several zones in the parts of a set, and are times of UTC here. They are known once they are read.
    pub fn columns_in_utc(self) -> Vec<String> {
        self.columns.map_or(vec![], FeatureTable::columns_in_utc)
    }

    /// Columns of plain values beside the images, a row per image: those of `names`, which are of [`Self::feature_names`], in
    /// that order; no other is read. `None` where `names` is empty. [`crate::features::all`] gives all of them.
    ///
    /// # Errors
    /// Columns that cannot be read.
    pub fn features(self, names: &[String]) -> Result<Option<RecordBatch>> {
        self.columns.map_or(Ok(None), |columns| columns.features(names))
    }
}

/// A column that stands beside images under another name than it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name that it had.
    pub from: String,
    /// The name that it has.
    pub to: String,
}

/// A column that cannot stand beside images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Its kind of values, such as `nested values`.
    pub why: &'static str,
}

/// Columns of plain values beside the images of a set. No method has a default, so that no store that wraps another forgets one:
/// [`default_columns!`](crate::default_columns) writes those of which a store has nothing to say.
pub trait FeatureTable: Send + Sync {
    /// See [`Hints::feature_names`].
    fn feature_names(&self) -> Vec<String>;

    /// See [`Hints::columns_left_out`].
    fn columns_left_out(&self) -> Vec<LeftOut>;

    /// See [`Hints::columns_renamed`].
    fn columns_renamed(&self) -> Vec<Renamed>;

    /// See [`Hints::columns_in_utc`].
    fn columns_in_utc(&self) -> Vec<String>;

    /// See [`Hints::has_row_numbers`].
    fn has_row_numbers(&self) -> bool;

    /// See [`Hints::features`].
    ///
    /// # Errors
    /// Columns that cannot be read.
    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>>;
}
