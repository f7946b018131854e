//! Where every image of a row group lies: read from the small leaves, without touching a pixel.
//!
//! Sizes, pixel types and the origins and shapes of chunks come through the `parquet` crate's Arrow reader
//! with a projection that leaves the pixels out. From the shapes follows how many values every chunk has, and
//! so where in the pixel leaf each chunk starts: repetition levels need not be decoded, only compared with
//! what is expected here.

use super::file::PositionalFile;
use super::file::guarded;
use super::pieces::PieceTable;
use super::schema::ImageColumn;
use crate::ome_arrow::{CHUNKS, PLANES, Row, SmallColumns};
use crate::{Error, Result};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};

/// All rows of a row group.
#[derive(Debug, Default)]
pub(super) struct GroupLayout {
    pub rows: Vec<Row>,
    pub tables: [Option<PieceTable>; 2],
}

/// Reads the layout of row group `group`, which declares `rows` rows.
///
/// `clamped` says that `uint16` is not the images' own type but `uint8` is
/// ([`ome_arrow::declared_type_is_clamped`]).
pub(super) fn read(
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    column: &ImageColumn,
    group: usize,
    rows: usize,
    clamped: bool,
) -> Result<GroupLayout> {
    let mut layout = GroupLayout::default();
    let wanted = [column.pieces[CHUNKS].is_some(), column.pieces[PLANES].is_some()];
    // Planes are looked at only where some row has no chunks.
    let first = if wanted[CHUNKS] { CHUNKS } else { PLANES };
    read_into(&mut layout, file, metadata, column, group, first, clamped)?;
    let lacking = |layout: &GroupLayout| layout.rows.iter().any(|r| r.source != first);
    if first == CHUNKS && wanted[PLANES] && lacking(&layout) {
        read_into(&mut layout, file, metadata, column, group, PLANES, clamped)?;
    } else {
        for row in layout.rows.iter_mut().filter(|r| r.source != first) {
            row.source = first;
            if row.info.is_ok() {
                row.info = Err("the image has no chunks".into());
            }
        }
    }
    if layout.rows.len() != rows {
        return Err(Error::new(
            file.path(),
            format_args!("row group {group} declares {rows} rows but holds {}", layout.rows.len()),
        )
        .hint("the file is corrupt; copy or write it again"));
    }
    Ok(layout)
}

/// Reads one of the two lists of pieces. The first call makes the rows; a second one completes those that
/// found nothing in the first list.
fn read_into(
    layout: &mut GroupLayout,
    file: &PositionalFile,
    metadata: &ArrowReaderMetadata,
    column: &ImageColumn,
    group: usize,
    source: usize,
    clamped: bool,
) -> Result<()> {
    let pieces = column.pieces[source].as_ref().expect("the list is there");
    let leaves = column.sizes.iter().chain(&pieces.positions).copied();
    let mask = ProjectionMask::leaves(metadata.parquet_schema(), leaves);
    let complete = layout.rows.is_empty();
    let mut table = PieceTable::new();
    let mut at = 0;
    let what = "cannot read the image index";
    let mut reader = guarded(file, what, || {
        ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(4096)
            .build()
    })?;
    while let Some(batch) = guarded(file, what, || Ok(reader.next().transpose()?))? {
        let images = batch
            .column(0)
            .as_struct_opt()
            .ok_or_else(|| Error::new(file.path(), format_args!("column {:?} is no struct", column.name)))?;
        let batch = SmallColumns::new(images, source).map_err(|cause| Error::new(file.path(), cause))?;
        for i in 0..images.len() {
            let found = batch.pieces(i, None);
            let row = batch.row(i, &found, source, clamped);
            table.push_row(found.as_deref().unwrap_or_default());
            table.positions_known &= found.is_ok();
            if complete {
                layout.rows.push(row);
            } else if layout.rows.get(at).is_some_and(|r| r.source == source) {
                layout.rows[at] = row;
            }
            at += 1;
        }
    }
    layout.tables[source] = Some(table);
    Ok(())
}
