//! The shape, type and origin of each row of an image column, from its small fields, without touching a
//! pixel.

use super::boxes::{AXES, NULL, PieceBox, SIZE_AXES, covers, read_boxes};
use super::column::{CHUNKS, PLANES};
use super::lists::Lists;
use crate::features::text;
use crate::surface::option_as;
use crate::{Error, RowInfo};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use std::path::Path;
use wellread_image::ome_arrow::{self, field};
use wellread_image::{PixelType, Shape};

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Shape and type, or why the row is no image.
    pub info: std::result::Result<RowInfo, Box<str>>,
    /// [`CHUNKS`] or [`PLANES`]: where its pixels are.
    pub source: usize,
}

/// The error of a row that holds no image: there is none, or it is damaged. `or` says what to do about a damaged one.
pub(crate) fn no_image(path: &Path, row: usize, cause: &str, or: &str) -> Error {
    let error = Error::new(path, cause).row(row);
    if error.is_null_image() {
        let option = option_as("skip_null", "true");
        return error.hint(format_args!("leave out rows without an image ({option})"));
    }
    error.hint(or)
}

/// The small columns of a record batch.
pub(crate) struct SmallColumns<'a> {
    images: &'a StructArray,
    meta: Option<&'a StructArray>,
    sizes: [Option<NumberColumn>; 5],
    types: Option<&'a dyn Array>,
    grids: Option<&'a StructArray>,
    list: Option<Lists>,
    /// Where pieces start, and their sizes.
    boxes: [Option<NumberColumn>; AXES],
}

impl<'a> SmallColumns<'a> {
    /// Finds them among the fields of `images`; `source` is [`CHUNKS`] or [`PLANES`].
    pub fn new(images: &'a StructArray, source: usize) -> std::result::Result<Self, String> {
        let structure = |s: &'a StructArray, name| s.column_by_name(name).and_then(|c| c.as_struct_opt());
        let meta = structure(images, field::PIXELS_META);
        let numbers = |s: Option<&StructArray>, name: &str| match s.and_then(|s| s.column_by_name(name)) {
            Some(array) => {
                NumberColumn::new(array).map(Some).ok_or_else(|| format!("{name} is no whole number"))
            }
            None => Ok(None),
        };
        let name = if source == CHUNKS { field::CHUNKS } else { field::PLANES };
        let list = images.column_by_name(name).and_then(Lists::new);
        let element = list.as_ref().and_then(|l| l.values().as_struct_opt());
        let mut batch = Self {
            images,
            meta,
            sizes: Default::default(),
            types: meta.and_then(|m| m.column_by_name(field::TYPE)).map(AsRef::as_ref),
            grids: structure(images, field::CHUNK_GRID),
            boxes: Default::default(),
            list: None,
        };
        for (slot, name) in batch.sizes.iter_mut().zip(field::SIZES) {
            *slot = numbers(meta, name)?;
        }
        for (slot, name) in batch.boxes.iter_mut().zip(field::ORIGIN.into_iter().chain(field::CHUNK_SHAPE)) {
            *slot = numbers(element, name)?;
        }
        batch.list = list;
        Ok(batch)
    }

    /// The declared shape of row `i`.
    fn shape(&self, i: usize) -> std::result::Result<Shape, String> {
        let mut shape = [1; 5];
        for ((n, sizes), name) in shape.iter_mut().zip(&self.sizes).zip(field::SIZES) {
            let Some(sizes) = sizes else { continue };
            *n = match sizes.at(i) {
                NULL => return Err(format!("pixels_meta.{name} is missing")),
                size => u32::try_from(size).map_err(|_| format!("pixels_meta.{name} is {size}"))? as usize,
            };
        }
        Ok(Shape(shape))
    }

    /// Whether row `i` has anything in the list.
    pub fn has_pieces(&self, i: usize) -> bool {
        !self.images.is_null(i) && self.list.as_ref().and_then(|l| l.range(i)).is_some_and(|r| !r.is_empty())
    }

    /// The boxes of row `i` in the order of their pixels.
    /// Planes are as large as the image, whose shape is `whole` or, where that is not known, as row `i` declares it.
    pub fn pieces(&self, i: usize, whole: Option<Shape>) -> std::result::Result<Vec<PieceBox>, String> {
        let mut boxes = vec![];
        self.pieces_into(i, whole, &mut boxes).map(|()| boxes)
    }

    /// As [`Self::pieces`], in a list that is used again.
    pub fn pieces_into(
        &self,
        i: usize,
        whole: Option<Shape>,
        out: &mut Vec<PieceBox>,
    ) -> std::result::Result<(), String> {
        out.clear();
        if self.images.is_null(i) {
            return Ok(());
        }
        let Some(range) = self.list.as_ref().and_then(|l| l.range(i)) else { return Ok(()) };
        let is_plane = self.boxes[SIZE_AXES].iter().all(Option::is_none);
        let whole = match whole {
            _ if !is_plane || range.is_empty() => [1; 5],
            Some(shape) => shape.0,
            None => self.shape(i)?.0,
        };
        read_boxes(range, whole, |axis, at| Some(self.boxes[axis].as_ref()?.at(at)), out)
    }

    /// Row `i` with its `pieces`; `clamped` as for [`Self::info`].
    pub fn row(
        &self,
        i: usize,
        pieces: &std::result::Result<Vec<PieceBox>, String>,
        source: usize,
        clamped: bool,
    ) -> Row {
        let elsewhere = if source == CHUNKS { PLANES } else { CHUNKS };
        if self.images.is_null(i) {
            return Row { info: Err(Error::NULL_IMAGE.into()), source };
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

    /// Shape and type of row `i`. `clamped` says that `uint16` is not the images' own type but `uint8` is
    /// ([`ome_arrow::declared_type_is_clamped`]).
    pub fn info(&self, i: usize, clamped: bool) -> std::result::Result<RowInfo, String> {
        if self.meta.is_none_or(|m| m.is_null(i)) {
            return Err("pixels_meta is null".into());
        }
        let declared = self.types.and_then(|t| text(t, i)).ok_or("pixels_meta.type is missing")?;
        // Under a null lies anything: pyarrow leaves an empty text there, and Vortex keeps it.
        let grid = self.grids.filter(|grids| grids.is_valid(i));
        let order = grid.and_then(|grids| grids.column_by_name(field::CHUNK_ORDER));
        declared_info(self.shape(i)?, declared, order.and_then(|orders| text(orders, i)), clamped)
    }
}

/// Shape and type of an image whose fields say this; `clamped` as for [`SmallColumns::info`].
pub(crate) fn declared_info(
    shape: Shape,
    dtype: &str,
    chunk_order: Option<&str>,
    clamped: bool,
) -> std::result::Result<RowInfo, String> {
    let declared: PixelType = dtype.parse().map_err(|e| format!("pixels_meta.type: {e}"))?;
    let dtype = if clamped && declared == PixelType::U16 { PixelType::U8 } else { declared };
    shape.checked_bytes(dtype).map_err(|e| e.to_string())?;
    if let Some(order) = chunk_order
        && !order.eq_ignore_ascii_case(ome_arrow::CHUNK_ORDER)
    {
        return Err(format!("chunk_grid.chunk_order is {order:?}; only ZYX is defined"));
    }
    Ok(RowInfo { shape, dtype })
}

/// Whole numbers in whatever numeric type an engine delivers them; nulls are [`NULL`]. Shared, not copied.
struct NumberColumn(ArrayRef);

impl NumberColumn {
    /// The array as whole numbers; `None` for other types, fractions and what 64 bits do not hold.
    fn new(array: &ArrayRef) -> Option<Self> {
        fn all<T: ArrowPrimitiveType>(array: &dyn Array, fits: impl Fn(T::Native) -> bool) -> bool {
            array.as_primitive::<T>().iter().flatten().all(fits)
        }
        let fits = match array.data_type() {
            DataType::UInt64 => all::<UInt64Type>(array, |v| i64::try_from(v).is_ok()),
            DataType::Float32 => all::<Float32Type>(array, |v| is_whole(v.into())),
            DataType::Float64 => all::<Float64Type>(array, is_whole),
            of => of.is_integer(),
        };
        fits.then(|| Self(ArrayRef::clone(array)))
    }

    /// The number at `i`.
    fn at(&self, i: usize) -> i64 {
        let array = &self.0;
        if array.is_null(i) {
            return NULL;
        }
        match array.data_type() {
            DataType::Int8 => array.as_primitive::<Int8Type>().value(i).into(),
            DataType::Int16 => array.as_primitive::<Int16Type>().value(i).into(),
            DataType::Int32 => array.as_primitive::<Int32Type>().value(i).into(),
            DataType::Int64 => array.as_primitive::<Int64Type>().value(i),
            DataType::UInt8 => array.as_primitive::<UInt8Type>().value(i).into(),
            DataType::UInt16 => array.as_primitive::<UInt16Type>().value(i).into(),
            DataType::UInt32 => array.as_primitive::<UInt32Type>().value(i).into(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(i) as i64,
            DataType::Float32 => array.as_primitive::<Float32Type>().value(i) as i64,
            DataType::Float64 => array.as_primitive::<Float64Type>().value(i) as i64,
            of => unreachable!("{of} is no type of whole numbers"),
        }
    }
}

fn is_whole(v: f64) -> bool {
    v.fract() == 0.0 && v.abs() < 9e15
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, StringArray};
    use arrow_buffer::NullBuffer;
    use arrow_schema::{Field, Fields};
    use std::sync::Arc;

    /// A structure of one row with these columns.
    fn structure(columns: Vec<(&str, ArrayRef)>, is_valid: bool) -> StructArray {
        let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let fields: Fields = fields.collect();
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        StructArray::new(fields, columns, Some(NullBuffer::from(vec![is_valid])))
    }

    #[test]
    fn what_lies_under_a_null_grid_is_not_read() {
        let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let mut meta = vec![(field::TYPE, text("uint16"))];
        meta.extend(field::SIZES.map(|name| (name, Arc::new(Int64Array::from(vec![3])) as ArrayRef)));
        let meta: ArrayRef = Arc::new(structure(meta, true));
        let info = |order: &str, has_grid: bool| {
            let grid = structure(vec![(field::CHUNK_ORDER, text(order))], has_grid);
            let columns =
                vec![(field::PIXELS_META, meta.clone()), (field::CHUNK_GRID, Arc::new(grid) as ArrayRef)];
            let images = structure(columns, true);
            SmallColumns::new(&images, CHUNKS).unwrap().info(0, false)
        };
        let expected = RowInfo { shape: Shape([3; 5]), dtype: PixelType::U16 };
        assert_eq!(info("", false), Ok(expected));
        assert_eq!(info("ZYX", true), Ok(expected));
        assert!(info("XYZ", true).unwrap_err().contains("only ZYX is defined"));
    }
}
