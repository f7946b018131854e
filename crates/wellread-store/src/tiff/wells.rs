//! Columns of images that a companion has in wells: plate, well and site.
//!
//! ```text
//!  row ─▶ its image ──companion: Plate / Well / WellSample──▶ Metadata_Plate BR1, Metadata_Well A01, Metadata_Site 1
//! ```

use super::series::Kind;
use super::store::TiffStore;
use crate::features::{PLATE, SITE, WELL, well_at};
use crate::{Error, FeatureTable, Result, Store, default_columns};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use std::sync::Arc;
use wellread_image::ome_xml::WellSample;

impl TiffStore {
    /// Where on a plate an image was taken. A file that cannot be read is a row without a place.
    ///
    /// # Errors
    /// A file that cannot be read just now.
    fn well_of(&self, row: usize) -> Result<Option<&WellSample>> {
        let Some(place) = self.rows.get(row) else { return Ok(None) };
        let path = &self.files[place.file as usize].path;
        match self.index(place.file as usize) {
            // Others are described by themselves.
            Ok(index) if index.kind != Kind::Companion => Ok(None),
            Ok(_) => Ok(self.companions.well_of(path, place.series as usize)),
            Err(error) if error.may_pass() => Err(error.row(row)),
            Err(_) => Ok(None),
        }
    }
}

impl FeatureTable for TiffStore {
    default_columns!(columns_left_out, columns_renamed, columns_in_utc, has_row_numbers);

    fn feature_names(&self) -> Vec<String> {
        if self.companions.have_wells { [PLATE, WELL, SITE].map(str::to_owned).to_vec() } else { vec![] }
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let samples = (0..self.len()).map(|row| self.well_of(row)).collect::<Result<Vec<_>>>()?;
        let samples = || samples.iter().copied();
        let well = |sample: &WellSample| sample.well.and_then(|(row, column)| well_at(row, column));
        let mut columns: Vec<(&str, ArrayRef, bool)> = vec![];
        for name in names {
            let column: ArrayRef = match name.as_str() {
                PLATE => Arc::new(samples().map(|sample| sample?.plate.as_deref()).collect::<StringArray>()),
                WELL => Arc::new(samples().map(|sample| well(sample?)).collect::<StringArray>()),
                SITE => Arc::new(samples().map(|sample| sample?.site.map(i64::from)).collect::<Int64Array>()),
                _ => return Err(Error::new(self.path(), format_args!("has no column {name:?}"))),
            };
            columns.push((name.as_str(), column, true));
        }
        RecordBatch::try_from_iter_with_nullable(columns).map(Some).map_err(|e| Error::new(self.path(), e))
    }
}
