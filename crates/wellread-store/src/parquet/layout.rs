//! Where every image of a row group lies: read from the small leaves, without touching a pixel.
//!
//! Sizes, pixel types and the origins and shapes of chunks come through the `parquet` crate's Arrow reader
//! with a projection that leaves the pixels out. From the shapes follows how many values every chunk has, and
//! so where in the pixel leaf each chunk starts: repetition levels need not be decoded, only compared with
//! what is expected here.

use super::file::{PositionalFile, guarded};
use super::pieces::{PieceBox, PieceTable, covers};
use super::schema::{CHUNKS, ImageColumn, PLANES};
use crate::{Error, Result, RowInfo};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, StructArray};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use wellread_image::ome_arrow::{self, field};
use wellread_image::{PixelType, Shape};

/// What one row is.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Shape and type, or why the row is no image.
    pub info: std::result::Result<RowInfo, Box<str>>,
    /// [`CHUNKS`] or [`PLANES`]: where its pixels are.
    pub source: usize,
}

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
    let mut reader = guarded(file.path(), what, || {
        ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(4096)
            .build()
    })?;
    while let Some(batch) = guarded(file.path(), what, || Ok(reader.next().transpose()?))? {
        let images = batch
            .column(0)
            .as_struct_opt()
            .ok_or_else(|| Error::new(file.path(), format_args!("column {:?} is no struct", column.name)))?;
        let batch = Batch::new(images, source).map_err(|cause| Error::new(file.path(), cause))?;
        for i in 0..images.len() {
            let found = batch.pieces(i);
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

/// The small columns of a record batch.
struct Batch<'a> {
    images: &'a StructArray,
    meta: Option<&'a StructArray>,
    sizes: [Option<Vec<i64>>; 5],
    types: Option<&'a dyn Array>,
    orders: Option<&'a dyn Array>,
    list: Option<&'a arrow_array::ListArray>,
    origin: [Option<Vec<i64>>; 5],
    shape: [Option<Vec<i64>>; 3],
}

/// Stands for a null among integers.
const NULL: i64 = i64::MIN;

impl<'a> Batch<'a> {
    fn new(images: &'a StructArray, source: usize) -> std::result::Result<Self, String> {
        let structure = |s: &'a StructArray, name| s.column_by_name(name).and_then(|c| c.as_struct_opt());
        let meta = structure(images, field::PIXELS_META);
        let numbers = |s: Option<&'a StructArray>, name: &str| match s.and_then(|s| s.column_by_name(name)) {
            Some(array) => integers(array).map(Some).ok_or_else(|| format!("{name} is no whole number")),
            None => Ok(None),
        };
        let name = if source == CHUNKS { field::CHUNKS } else { field::PLANES };
        let list = images.column_by_name(name).and_then(|c| c.as_list_opt::<i32>());
        let element = list.and_then(|l| l.values().as_struct_opt());
        let mut batch = Self {
            images,
            meta,
            sizes: Default::default(),
            types: meta.and_then(|m| m.column_by_name(field::TYPE)).map(AsRef::as_ref),
            orders: structure(images, field::CHUNK_GRID)
                .and_then(|g| g.column_by_name(field::CHUNK_ORDER))
                .map(AsRef::as_ref),
            list,
            origin: Default::default(),
            shape: Default::default(),
        };
        for (slot, name) in batch.sizes.iter_mut().zip(field::SIZES) {
            *slot = numbers(meta, name)?;
        }
        for (slot, name) in batch.origin.iter_mut().zip(field::ORIGIN) {
            *slot = numbers(element, name)?;
        }
        for (slot, name) in batch.shape.iter_mut().zip(field::CHUNK_SHAPE) {
            *slot = numbers(element, name)?;
        }
        Ok(batch)
    }

    /// The declared shape of row `i`.
    fn shape(&self, i: usize) -> std::result::Result<Shape, String> {
        let mut shape = [1; 5];
        for ((n, sizes), name) in shape.iter_mut().zip(&self.sizes).zip(field::SIZES) {
            let Some(sizes) = sizes else { continue };
            *n = match sizes[i] {
                NULL => return Err(format!("pixels_meta.{name} is missing")),
                size => u32::try_from(size).map_err(|_| format!("pixels_meta.{name} is {size}"))? as usize,
            };
        }
        Ok(Shape(shape))
    }

    /// The boxes of row `i` in the order of their pixels.
    fn pieces(&self, i: usize) -> std::result::Result<Vec<PieceBox>, String> {
        let Some(list) = self.list else { return Ok(vec![]) };
        if self.images.is_null(i) || list.is_null(i) {
            return Ok(vec![]);
        }
        let range = list.value_offsets()[i] as usize..list.value_offsets()[i + 1] as usize;
        let is_plane = self.shape.iter().all(Option::is_none);
        let whole = if is_plane && !range.is_empty() { self.shape(i)?.0 } else { [1; 5] };
        let mut out = Vec::with_capacity(range.len());
        for (k, at) in range.enumerate() {
            let origin = std::array::from_fn(|a| self.origin[a].as_ref().map_or(0, |v| v[at]));
            let shape = std::array::from_fn(|a| {
                self.shape[a].as_ref().map_or(if a == 0 { 1 } else { whole[2 + a] as i64 }, |v| v[at])
            });
            out.push(PieceBox::new(origin, shape).ok_or_else(|| {
                let (kind, [t, c, z, y, x], [sz, sy, sx]) =
                    (if is_plane { "plane" } else { "chunk" }, origin.map(shown), shape.map(shown));
                format!("{kind} {k} lies at {t},{c},{z},{y},{x} (TCZYX) and has shape {sz},{sy},{sx} (ZYX)")
            })?);
        }
        Ok(out)
    }

    fn row(
        &self,
        i: usize,
        pieces: &std::result::Result<Vec<PieceBox>, String>,
        source: usize,
        clamped: bool,
    ) -> Row {
        let elsewhere = if source == CHUNKS { PLANES } else { CHUNKS };
        if self.images.is_null(i) {
            return Row { info: Err(crate::Error::NULL_IMAGE.into()), source };
        }
        let info = self.info(i, clamped).and_then(|info| {
            let pieces = pieces.as_ref().map_err(String::clone)?;
            if !pieces.is_empty() {
                covers(pieces, info.shape)?;
            } else if source == PLANES {
                return Err("the image has neither chunks nor planes".into());
            }
            Ok(info)
        });
        let none = pieces.as_ref().is_ok_and(Vec::is_empty);
        Row {
            info: info.map_err(Into::into),
            source: if none && source == CHUNKS { elsewhere } else { source },
        }
    }

    fn info(&self, i: usize, clamped: bool) -> std::result::Result<RowInfo, String> {
        if self.meta.is_none_or(|m| m.is_null(i)) {
            return Err("pixels_meta is null".into());
        }
        let declared = self.types.and_then(|t| text(t, i)).ok_or("pixels_meta.type is missing")?;
        let declared: PixelType = declared.parse().map_err(|e| format!("pixels_meta.type: {e}"))?;
        let dtype = if clamped && declared == PixelType::U16 { PixelType::U8 } else { declared };
        let shape = self.shape(i)?;
        shape.checked_bytes(dtype).map_err(|e| e.to_string())?;
        if let Some(order) = self.orders.and_then(|o| text(o, i))
            && !order.eq_ignore_ascii_case(ome_arrow::CHUNK_ORDER)
        {
            return Err(format!("chunk_grid.chunk_order is {order:?}; only ZYX is defined"));
        }
        Ok(RowInfo { shape, dtype })
    }
}

fn shown(n: i64) -> String {
    if n == NULL { "null".into() } else { n.to_string() }
}

/// Any numeric array as integers; nulls become [`NULL`]. `None` for other types and fractions.
fn integers(array: &dyn Array) -> Option<Vec<i64>> {
    fn collect<T: ArrowPrimitiveType>(
        array: &dyn Array,
        to: impl Fn(T::Native) -> Option<i64>,
    ) -> Option<Vec<i64>> {
        array.as_primitive_opt::<T>()?.iter().map(|v| v.map_or(Some(NULL), &to)).collect()
    }
    let whole = |v: f64| (v.fract() == 0.0 && v.abs() < 9e15).then_some(v as i64);
    match array.data_type() {
        DataType::Int8 => collect::<Int8Type>(array, |v| Some(v.into())),
        DataType::Int16 => collect::<Int16Type>(array, |v| Some(v.into())),
        DataType::Int32 => collect::<Int32Type>(array, |v| Some(v.into())),
        DataType::Int64 => collect::<Int64Type>(array, Some),
        DataType::UInt8 => collect::<UInt8Type>(array, |v| Some(v.into())),
        DataType::UInt16 => collect::<UInt16Type>(array, |v| Some(v.into())),
        DataType::UInt32 => collect::<UInt32Type>(array, |v| Some(v.into())),
        DataType::UInt64 => collect::<UInt64Type>(array, |v| i64::try_from(v).ok()),
        DataType::Float32 => collect::<Float32Type>(array, |v| whole(v.into())),
        DataType::Float64 => collect::<Float64Type>(array, whole),
        _ => None,
    }
}

/// The text at `i` of a string or binary array; `None` for nulls and other types.
pub(super) fn text(array: &dyn Array, i: usize) -> Option<&str> {
    if array.is_null(i) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(i)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(i)),
        DataType::Utf8View => Some(array.as_string_view().value(i)),
        DataType::Binary => std::str::from_utf8(array.as_binary::<i32>().value(i)).ok(),
        _ => None,
    }
}
