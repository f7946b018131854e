//! Where every image of a row group lies: from the footer where all are alike, else read from the small leaves, without
//! touching a pixel.
//!
//! A column whose smallest and largest value are the same has one value. Where that holds of all sizes, types, origins
//! and shapes, the footer's statistics are enough ([`from_statistics`]). Nothing is read and nothing kept for each
//! row, so the number of rows does not matter. Otherwise sizes, pixel types and the origins and shapes of chunks come
//! through the `parquet` crate's Arrow reader. A projection leaves the pixels out. The shapes give the number
//! of values of every chunk, and so the start of each chunk in the pixel leaf. Repetition levels need not be decoded,
//! only compared with what is expected here.

use super::file::PositionalFile;
use super::file::guarded;
use super::pieces::PieceTable;
use super::schema::ImageColumn;
use crate::numbers::LeafType;
use crate::ome_arrow::{CHUNKS, PLANES, PieceBox, Row, SmallColumns, covers, declared_info};
use crate::{Error, Result};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use wellread_image::Shape;
use wellread_image::ome_arrow::field;

/// All rows of a row group.
#[derive(Debug)]
pub(super) struct GroupLayout {
    pub rows: Rows,
    pub tables: [Option<PieceTable>; 2],
}

/// The rows of a row group.
#[derive(Debug)]
pub(super) enum Rows {
    Alike(Row),
    Each(Vec<Row>),
}

impl Rows {
    /// The row at `index`, which is there.
    pub fn at(&self, index: usize) -> &Row {
        match self {
            Self::Alike(row) => row,
            Self::Each(rows) => &rows[index],
        }
    }
}

/// Rows as they are read, one by one.
#[derive(Default)]
struct Listed {
    rows: Vec<Row>,
    tables: [Option<PieceTable>; 2],
}

impl Listed {
    /// Checks rows against the number of pixels that the footer declares. No image can have more than all of
    /// them together, and the places of pieces that add up to another number are not known.
    fn check(&mut self, group: &RowGroupMetaData, column: &ImageColumn) {
        for source in [CHUNKS, PLANES] {
            let Some(pieces) = &column.pieces[source] else { continue };
            let declared = group.column(pieces.pixels.leaf).num_values();
            if let Some(table) = &mut self.tables[source] {
                table.positions_known &= table.levels() == declared as u64 && pieces.pixels.max_rep == 2;
            }
            for row in self.rows.iter_mut().filter(|r| r.source == source) {
                if let Ok(info) = &row.info
                    && info.shape.pixels() as i64 > declared
                {
                    let cause = format!(
                        "the image of {} has more pixels than its whole row group ({declared})",
                        info.shape
                    );
                    row.info = Err(cause.into());
                }
            }
        }
    }

    /// The same, kept once where all rows are alike.
    fn compact(self) -> GroupLayout {
        let tables = self.tables.map(|table| table.map(PieceTable::compact));
        let rows = match self.rows.as_slice() {
            [first, rest @ ..] if first.info.is_ok() && rest.iter().all(|row| row == first) => {
                Rows::Alike(first.clone())
            }
            _ => Rows::Each(self.rows),
        };
        GroupLayout { rows, tables }
    }
}

/// The layout of a row group of `rows` rows that are alike, of one piece each, by what the footer says of its columns.
///
/// `None` where the footer does not tell, or the rows are not so. `clamped` is as for [`read`].
pub(super) fn from_statistics(
    group: &RowGroupMetaData,
    column: &ImageColumn,
    rows: usize,
    clamped: bool,
) -> Option<GroupLayout> {
    let source = if column.pieces[CHUNKS].is_some() { CHUNKS } else { PLANES };
    let pieces = column.pieces[source].as_ref()?;
    // One entry for each row: none is missing, no row has two.
    let chunk = |leaf: usize| Some(group.column(leaf)).filter(|c| c.num_values() == rows as i64);
    let named = |leaves: &[usize], name: &str| {
        leaves
            .iter()
            .copied()
            .find(|&leaf| group.column(leaf).column_path().parts().last().is_some_and(|last| last == name))
    };
    // `None` where the statistics do not tell; `Some(None)` where there is no such column.
    let number = |leaves: &[usize], name: &str| match named(leaves, name) {
        None => Some(None),
        Some(leaf) => only_number(chunk(leaf)?).map(Some),
    };
    let mut shape = [1; 5];
    for (n, name) in shape.iter_mut().zip(field::SIZES) {
        if let Some(size) = number(&column.sizes, name)? {
            *n = u32::try_from(size).ok()? as usize;
        }
    }
    let dtype = only_text(chunk(named(&column.sizes, field::TYPE)?)?)?;
    let order = match named(&column.sizes, field::CHUNK_ORDER) {
        None => None,
        Some(leaf) => Some(only_text(chunk(leaf)?)?),
    };
    let shape = Shape(shape);
    let info = declared_info(shape, dtype, order, clamped).ok()?;
    let (mut origin, mut size) = ([0; 5], [1, shape.y() as i64, shape.x() as i64]);
    for (at, name) in origin.iter_mut().zip(field::ORIGIN) {
        *at = number(&pieces.positions, name)?.unwrap_or(0);
    }
    for (n, name) in size.iter_mut().zip(field::CHUNK_SHAPE) {
        match number(&pieces.positions, name)? {
            Some(length) => *n = length,
            None if source == CHUNKS => return None,
            None => {}
        }
    }
    let piece = PieceBox::new(origin, size)?;
    covers(&[piece], shape).ok()?;
    let pixels = piece.pixels()?.checked_mul(rows as u64)?;
    let declared = group.column(pieces.pixels.leaf).num_values();
    if rows == 0 || i64::try_from(pixels).ok()? != declared || pieces.pixels.max_rep != 2 {
        return None;
    }
    let mut tables = [None, None];
    tables[source] = Some(PieceTable::alike(rows, &[piece]));
    Some(GroupLayout { rows: Rows::Alike(Row { info: Ok(info), source }), tables })
}

/// The one number that a column chunk holds, as far as its statistics tell.
fn only_number(chunk: &ColumnChunkMetaData) -> Option<i64> {
    let statistics = chunk.statistics().filter(|s| s.null_count_opt() == Some(0))?;
    // Decimals and dates are kept as integers too.
    let whole = [LeafType::I32, LeafType::U32, LeafType::I64, LeafType::U64];
    LeafType::of(chunk.column_descr()).filter(|of| whole.contains(of))?;
    // Unsigned numbers that look negative here are no size or place of anything.
    let (min, max) = match statistics {
        Statistics::Int32(s) => (i64::from(*s.min_opt()?), i64::from(*s.max_opt()?)),
        Statistics::Int64(s) => (*s.min_opt()?, *s.max_opt()?),
        _ => return None,
    };
    (min == max).then_some(min)
}

/// The largest pixel of the file by its statistics; `None` where they do not tell, or where there is a
/// negative one.
pub(super) fn largest_pixel(metadata: &ArrowReaderMetadata, column: &ImageColumn) -> Option<f64> {
    let mut largest = None;
    for group in metadata.metadata().row_groups() {
        // Each row has its pixels in one of the lists, or the same ones in both.
        for pieces in column.pieces.iter().flatten() {
            let chunk = group.column(pieces.pixels.leaf);
            let (entries, statistics) = (chunk.num_values().unsigned_abs(), chunk.statistics());
            // A list without pixels: of null images, or where the other list has them.
            if entries == 0 || statistics.and_then(Statistics::null_count_opt) == Some(entries) {
                continue;
            }
            let (min, max) = match statistics? {
                Statistics::Int32(s) => (f64::from(*s.min_opt()?), f64::from(*s.max_opt()?)),
                Statistics::Int64(s) => (*s.min_opt()? as f64, *s.max_opt()? as f64),
                _ => return None,
            };
            if min < 0.0 {
                return None;
            }
            largest = Some(largest.unwrap_or(max).max(max));
        }
    }
    largest
}

/// The one text that a column chunk holds, as far as its statistics tell.
fn only_text(chunk: &ColumnChunkMetaData) -> Option<&str> {
    let statistics = chunk.statistics().filter(|s| s.null_count_opt() == Some(0))?;
    let Statistics::ByteArray(s) = statistics else { return None };
    let (min, max) = (s.min_opt()?, s.max_opt()?);
    // Bounds of long texts may be cut off.
    let exact = s.min_is_exact() && s.max_is_exact() && min == max;
    std::str::from_utf8(min.data()).ok().filter(|_| exact)
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
    let mut layout = Listed::default();
    let wanted = [column.pieces[CHUNKS].is_some(), column.pieces[PLANES].is_some()];
    // Planes are looked at only where some row has no chunks.
    let first = if wanted[CHUNKS] { CHUNKS } else { PLANES };
    read_into(&mut layout, file, metadata, column, group, first, clamped)?;
    let lacking = |layout: &Listed| layout.rows.iter().any(|r| r.source != first);
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
    layout.check(metadata.metadata().row_group(group), column);
    Ok(layout.compact())
}

/// Reads one of the two lists of pieces. The first call makes the rows; a second one completes those that
/// found nothing in the first list.
fn read_into(
    layout: &mut Listed,
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

#[cfg(test)]
mod tests {
    use super::super::store::ParquetStore;
    use super::*;
    use crate::{ImageView, OpenOptions, WriteOptions, registry};
    use wellread_image::{ImageMetadata, PixelType};

    fn written(dir: &std::path::Path, shapes: &[Shape]) -> ParquetStore {
        let path = dir.join("a.parquet");
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let mut writer = registry::create(&path, "parquet", &options).unwrap();
        for (i, &shape) in shapes.iter().enumerate() {
            let metadata = ImageMetadata::named(format!("image {i}"));
            let pixels = vec![7; shape.pixels() * 2];
            writer
                .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U16, pixels: &pixels })
                .unwrap();
        }
        writer.finish().unwrap();
        ParquetStore::open(&path, &OpenOptions::default()).unwrap()
    }

    #[test]
    fn statistics_say_what_reading_says() {
        let dir = tempfile::tempdir().unwrap();
        let rows = 7;
        let store = written(dir.path(), &vec![Shape::plane(12, 9); rows]);
        let group = store.metadata.metadata().row_group(0);
        for clamped in [false, true] {
            let told = from_statistics(group, &store.column, rows, clamped).unwrap();
            let found = read(&store.file, &store.metadata, &store.column, 0, rows, clamped).unwrap();
            assert!(matches!(found.rows, Rows::Alike(_)), "kept once");
            for row in 0..rows {
                assert_eq!(told.rows.at(row), found.rows.at(row));
            }
            let [a, b] = [&told, &found].map(|layout| layout.tables[CHUNKS].as_ref().unwrap());
            assert!(a.positions_known && b.positions_known);
            assert_eq!((a.levels(), a.levels()), (b.levels(), (rows * 12 * 9) as u64));
            for row in 0..rows {
                assert_eq!((a.pieces(row), a.level(row)), (b.pieces(row), b.level(row)));
                assert_eq!((a.region(row), a.values(row)), (b.region(row), b.values(row)));
            }
        }
    }

    #[test]
    fn statistics_of_rows_that_differ_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let plane = Shape::plane(12, 9);
        // As many pixels, in another shape; several chunks of one image.
        for shapes in [vec![plane, Shape::plane(9, 12)], vec![Shape([1, 2, 1, 4, 5]); 3]] {
            let store = written(dir.path(), &shapes);
            let group = store.metadata.metadata().row_group(0);
            assert!(from_statistics(group, &store.column, shapes.len(), false).is_none(), "{shapes:?}");
        }
        let store = written(dir.path(), &[plane; 3]);
        let group = store.metadata.metadata().row_group(0);
        assert!(from_statistics(group, &store.column, 3, false).is_some());
        assert!(from_statistics(group, &store.column, 4, false).is_none(), "another number of rows");
    }
}
