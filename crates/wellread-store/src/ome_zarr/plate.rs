//! Columns of a plate: plate, well, field of view and acquisition of each image.
//!
//! ```text
//!  A/1/0 ─▶ Metadata_Well A01, Metadata_Site 0     plate.name, or the folder's name ─▶ Metadata_Plate
//!  A/1: well.images[0].acquisition ─▶ Metadata_Acquisition, where the plate lists acquisitions
//! ```

use super::consolidated::Consolidated;
use super::group::Group;
use super::layout::image_name;
use crate::features::{ACQUISITION, PLATE, SITE, WELL};
use crate::{Error, Result};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A plate's own metadata.
#[derive(Debug)]
pub(super) struct PlateColumns {
    name: String,
    has_acquisitions: bool,
}

impl PlateColumns {
    /// The plate at `path`; `None` where the group is no plate, or cannot be read: opening it gives the
    /// error.
    pub fn of(path: &Path, known: &Consolidated) -> Option<Self> {
        let plate = known.load(path).ok()?.ome.plate?;
        let name = plate.name.as_ref().and_then(text).unwrap_or_else(|| image_name(path));
        let listed = plate.acquisitions.as_ref().and_then(Value::as_array);
        Some(Self { name, has_acquisitions: listed.is_some_and(|list| !list.is_empty()) })
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<String> {
        let all = [PLATE, WELL, SITE].into_iter().chain(self.has_acquisitions.then_some(ACQUISITION));
        all.map(str::to_owned).collect()
    }

    /// Those columns of images at `places` below the plate, such as `A/1/0`.
    ///
    /// # Errors
    /// No such column; metadata of a well that cannot be read.
    pub fn columns(&self, path: &Path, names: &[String], places: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<(&str, ArrayRef, bool)> = vec![];
        for name in names {
            let column: ArrayRef = match name.as_str() {
                PLATE => Arc::new(places.iter().map(|_| Some(&self.name)).collect::<StringArray>()),
                WELL => Arc::new(places.iter().map(|place| Some(well(place))).collect::<StringArray>()),
                SITE => site(places),
                ACQUISITION => acquisitions(path, places)?,
                _ => return Err(Error::new(path, format_args!("has no column {name:?}"))),
            };
            columns.push((name.as_str(), column, true));
        }
        RecordBatch::try_from_iter_with_nullable(columns).map(Some).map_err(|e| Error::new(path, e))
    }
}

/// Text, or a number as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The well of an image: `A/1/0` is in A01. A column that is no number stays as it is.
fn well(place: &str) -> String {
    let mut parts = place.split('/');
    let (row, column) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    match column.parse::<u32>() {
        Ok(column) => format!("{row}{column:02}"),
        Err(_) => format!("{row}{column}"),
    }
}

/// The fields of view: numbers where all are.
fn site(places: &[String]) -> ArrayRef {
    let fields: Vec<&str> = places.iter().map(|place| place.rsplit('/').next().unwrap_or("")).collect();
    let numbers: Option<Vec<i64>> = fields.iter().map(|field| field.parse().ok()).collect();
    match numbers {
        Some(numbers) => Arc::new(Int64Array::from(numbers)),
        None => Arc::new(fields.into_iter().map(Some).collect::<StringArray>()),
    }
}

/// The acquisition of each image, by the metadata of its well; null where that says nothing.
fn acquisitions(path: &Path, places: &[String]) -> Result<ArrayRef> {
    let mut found: Vec<Option<i64>> = Vec::with_capacity(places.len());
    let mut last: Option<(&str, Group)> = None;
    for place in places {
        let (well, field) = place.rsplit_once('/').unwrap_or((place, ""));
        // Images of a well follow each other.
        let group = match last.take() {
            Some((known, group)) if known == well => group,
            _ => Group::load(&path.join(well))?,
        };
        let images = group.ome.well.as_ref().map_or(&[][..], |well| &well.images[..]);
        let image = images.iter().find(|image| image.path == field);
        found.push(image.and_then(|image| image.acquisition.as_ref()?.as_i64()));
        last = Some((well, group));
    }
    Ok(Arc::new(Int64Array::from(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;

    #[test]
    fn wells_and_fields_are_read_from_places() {
        assert_eq!(
            (well("A/1/0"), well("H/12/3"), well("B/03/0")),
            ("A01".into(), "H12".into(), "B03".into())
        );
        assert_eq!(well("B/x/0"), "Bx");
        assert_eq!(site(&["A/1/0".into(), "A/1/10".into()]).data_type(), &arrow_schema::DataType::Int64);
        assert_eq!(site(&["A/1/0".into(), "A/1/f1".into()]).data_type(), &arrow_schema::DataType::Utf8);
    }
}
