//! Facts of a row: where it lies, how many rows have their metadata read together, and the memory that reading it takes.

use super::pixel_pages::PixelPages;
use super::store::ParquetStore;
use crate::ome_arrow::unkept;
use crate::{Result, RowFacts, unknown_facts};
use wellread_image::ome_arrow::field;

impl RowFacts for ParquetStore {
    unknown_facts!(grid, file, cut);

    fn position(&self, row: usize) -> u64 {
        let Some(group) = self.groups.get(self.group_of(row)) else { return u64::MAX };
        let Some(pieces) = self.column.pieces.iter().flatten().next() else { return row as u64 };
        let chunk = self.chunk(self.group_of(row), pieces.pixels.leaf);
        // Images of one row group share its bytes about evenly; it is enough that the number grows.
        let size = chunk.compressed_size().max(0) as u128;
        let within = size * (row - group.rows.start) as u128 / group.rows.len().max(1) as u128;
        (chunk.data_page_offset().max(0) as u64).saturating_add(within as u64)
    }

    fn metadata_rows(&self, row: usize) -> usize {
        self.groups.get(self.group_of(row)).map_or(1, |group| group.rows.len())
    }

    fn unkept(&self, row: usize) -> Vec<&'static str> {
        let Some(group) = self.groups.get(self.group_of(row)) else { return vec![] };
        let rows = self.metadata_of(self.group_of(row));
        let has_image_type = rows.is_ok_and(|rows| rows.has_image_type(row - group.rows.start));
        // Masks that nobody has are one leaf without values.
        let leaves = self.metadata.metadata().file_metadata().schema_descr().columns();
        let is_mask =
            |path: &[String]| path.len() > 2 && path[0] == self.column.name && path[1] == field::MASKS;
        unkept(has_image_type, leaves.iter().any(|leaf| is_mask(leaf.path().parts())))
    }

    fn working_bytes(&self, row: usize) -> Result<usize> {
        let (group, found, info) = self.row(row)?;
        let image = info.shape.checked_bytes(info.dtype).unwrap_or(usize::MAX / 3);
        // A page as it is read, decompressed and decoded; images that cross pages have two of them.
        let table = &self.layout_of(group)?.tables[found.source];
        let pages = table.as_ref().map(|table| self.pages_of(group, found.source, table)).transpose()?;
        Ok(pages.map_or(0, PixelPages::largest).saturating_add(image.saturating_mul(2)))
    }
}
