//! Refuses joins by columns in which the two sides mean the same places and write them in two ways.
//!
//! ```text
//!  a table's or label images' keys ─┐                 ┌─ well_names: B7 beside B07
//!                                   ├─ refuse_unlike ─┤
//!  images' keys ────────────────────┘                 └─ site_numbers: sites from 1 beside sites from 0
//! ```

use super::Comparison;
use super::site_numbers::refuse_shifted;
use super::well_names::refuse_padded;
use crate::Result;
use arrow_array::ArrayRef;
use std::path::Path;

/// Refuses a join by columns of `path`, of which only `rows` count, to those of images, which are `compared` so. `by` is the option that
/// names the columns.
///
/// # Errors
/// Wells with other zeros than the images'. Sites that are counted from another number.
pub(crate) fn refuse_unlike(
    path: &Path,
    (names, columns, rows): (&[String], &[ArrayRef], impl Iterator<Item = usize> + Clone),
    theirs: (&[String], &[ArrayRef]),
    compared: &Comparison,
    by: &'static str,
) -> Result<()> {
    refuse_padded(path, (names, columns, rows.clone()), theirs, compared, by)?;
    refuse_shifted(path, (names, columns, rows), theirs, compared, by)
}
