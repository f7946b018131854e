//! Columns of plate, well and site that only the table has: rows of one image that differ there are of several images.
//!
//! ```text
//!  table: Metadata_Plate, Metadata_Well      images: Metadata_Well
//!  P1 A01 ─┐
//!  P2 A01 ─┴▶ the image of A01: refused, since it is of one plate
//! ```

use super::table::CellTable;
use crate::features::known_at;
use crate::surface::option;
use crate::{Error, Result, Store};
use std::collections::HashMap;

/// Checks that the rows of each image have one value in each of these columns of the table. Nulls and NaN say nothing.
///
/// # Errors
/// Two values; columns that cannot be read.
pub(super) fn check(
    images: &dyn Store,
    table: &CellTable,
    of_rows: &[Option<usize>],
    columns: &[String],
) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let values = table.read(columns)?;
    for (name, column) in columns.iter().zip(values.columns()) {
        let mut first: HashMap<usize, (usize, String)> = HashMap::new();
        for (row, image) in of_rows.iter().enumerate() {
            let Some(image) = *image else { continue };
            let Some(value) = known_at(column, row).filter(|value| !value.is_empty()) else { continue };
            let (other_row, other) = first.entry(image).or_insert_with(|| (row, value.clone()));
            if *other == value {
                continue;
            }
            let of = images.name(image)?;
            let cause = format_args!(
                "rows {other_row} and {row} would both be of the image {of}, and have {other} and {value} in column {name:?}, which the \
                 images lack"
            );
            return Err(Error::new(&table.path, cause).row(row).choice().hint(format_args!(
                "give the rows of these images alone, or images with that column; or name the columns that tell the image ({})",
                option("cells.by")
            )));
        }
    }
    Ok(())
}
