//! The columns beside the images of a file: which there are, under which names, and their values.

use super::plain;
use super::store::ParquetStore;
use crate::{FeatureTable, LeftOut, Renamed, Result, default_columns, features};
use arrow_array::RecordBatch;
use wellread_image::ome_arrow::ROW_ID;

impl FeatureTable for ParquetStore {
    default_columns!(columns_in_utc);

    fn feature_names(&self) -> Vec<String> {
        let (schema, _) = plain::named(&self.metadata);
        let read = || self.features(&[ROW_ID.to_owned()]);
        self.row_id.features(features::names(&schema, &self.column.name), &schema, read)
    }

    fn columns_left_out(&self) -> Vec<LeftOut> {
        features::left_out(&plain::named(&self.metadata).0, &self.column.name)
    }

    fn columns_renamed(&self) -> Vec<Renamed> {
        plain::named(&self.metadata).1
    }

    fn has_row_numbers(&self) -> bool {
        let (schema, _) = plain::named(&self.metadata);
        features::is_own_number(&features::names(&schema, &self.column.name), &self.feature_names())
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() || self.rows == 0 {
            return Ok(None);
        }
        let columns = plain::read_columns(&self.file, &self.metadata, names);
        self.file.unless_written(columns).map(Some)
    }
}
