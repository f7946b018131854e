//! Pending images as Arrow arrays of the published struct.

use crate::ImageView;
use arrow_array::types::{Float32Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, Int16Array, Int32Array, Int64Array, ListArray, NullArray, PrimitiveArray, StringArray,
    StructArray, UInt32Array, make_array,
};
use arrow_buffer::{MutableBuffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use std::sync::Arc;
use wellread_image::ome_arrow::{self, FieldType, field};
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Region, Shape, clip_runs};

/// The columns of a file whose pixel lists are of type `list`.
pub(crate) fn columns(list: PixelType) -> Fields {
    let image = DataType::Struct(fields(ome_arrow::STRUCT, list));
    [Field::new(ome_arrow::ROW_ID, DataType::Int64, true), Field::new(ome_arrow::COLUMN, image, true)]
        .into_iter()
        .collect()
}

fn fields(of: &[ome_arrow::Field], list: PixelType) -> Fields {
    of.iter().map(|f| Field::new(f.name, data_type(f.kind, list), true)).collect()
}

fn element(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("element", data_type, true))
}

fn data_type(kind: FieldType, list: PixelType) -> DataType {
    match kind {
        FieldType::Utf8 => DataType::Utf8,
        FieldType::Int16 => DataType::Int16,
        FieldType::Int32 => DataType::Int32,
        FieldType::UInt32 => DataType::UInt32,
        FieldType::Float32 => DataType::Float32,
        FieldType::TimestampMicros => DataType::Timestamp(TimeUnit::Microsecond, None),
        FieldType::Null => DataType::Null,
        FieldType::Pixels => DataType::List(element(pixel_type(list))),
        FieldType::Struct(of) => DataType::Struct(fields(of, list)),
        FieldType::List(of) => DataType::List(element(DataType::Struct(fields(of, list)))),
    }
}

/// The Arrow type of pixels.
pub(super) fn pixel_type(list: PixelType) -> DataType {
    match list {
        PixelType::U8 => DataType::UInt8,
        PixelType::I8 => DataType::Int8,
        PixelType::U16 => DataType::UInt16,
        PixelType::I16 => DataType::Int16,
        PixelType::U32 => DataType::UInt32,
        PixelType::I32 => DataType::Int32,
        PixelType::F32 => DataType::Float32,
        PixelType::F64 => DataType::Float64,
    }
}

/// Whether the published types can say such a shape.
pub(crate) fn check(shape: Shape) -> Result<(), String> {
    let fits = shape.0.iter().all(|&n| i32::try_from(n).is_ok()) && i16::try_from(shape.c()).is_ok();
    // List offsets are 32-bit, and one image cannot be spread over two record batches.
    if fits && i32::try_from(shape.pixels()).is_ok() {
        Ok(())
    } else {
        Err(format!("an image of {shape} is too large for OME-Arrow, which counts its pixels in 32 bits"))
    }
}

/// Images waiting to become a record batch.
#[derive(Default)]
pub(crate) struct Pending {
    images: Vec<Image>,
    chunks: Vec<Region>,
    /// All pixels of all chunks, as the list's type.
    pixels: MutableBuffer,
    count: usize,
}

struct Image {
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    chunk: [usize; 3],
    chunks: usize,
}

impl Pending {
    pub fn len(&self) -> usize {
        self.images.len()
    }

    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Bytes of pixels.
    pub fn bytes(&self) -> usize {
        self.pixels.len()
    }

    /// Whether list offsets of 32 bits still reach the end of one more image.
    pub fn has_room(&self, shape: Shape) -> bool {
        i32::try_from(self.count + shape.pixels()).is_ok()
    }

    /// Cuts an image into chunks of `chunk` and appends them, converted to `list`, which holds every value.
    pub fn push(&mut self, image: &ImageView<'_>, chunk: Option<[usize; 5]>, list: PixelType) {
        let shape = image.shape;
        let wanted = chunk.map_or(ome_arrow::DEFAULT_CHUNK, |c| [c[2], c[3], c[4]]);
        let chunk: [usize; 3] = std::array::from_fn(|a| wanted[a].min(shape.0[a + 2]));
        let before = self.chunks.len();
        let full = shape.full();
        let size = image.dtype.size();
        for t in 0..shape.t() {
            for c in 0..shape.c() {
                for z in (0..shape.z()).step_by(chunk[0]) {
                    for y in (0..shape.y()).step_by(chunk[1]) {
                        for x in (0..shape.x()).step_by(chunk[2]) {
                            let region = Region {
                                start: [t, c, z, y, x],
                                size: [
                                    1,
                                    1,
                                    chunk[0].min(shape.z() - z),
                                    chunk[1].min(shape.y() - y),
                                    chunk[2].min(shape.x() - x),
                                ],
                            };
                            // Runs come in the order of the region's own memory.
                            clip_runs(&full, &region, |from, _, n| {
                                let run = &image.pixels[from * size..(from + n) * size];
                                append(&mut self.pixels, run, image.dtype, list);
                            });
                            self.chunks.push(region);
                        }
                    }
                }
            }
        }
        self.count += shape.pixels();
        self.images.push(Image {
            metadata: image.metadata.clone(),
            shape,
            dtype: image.dtype,
            chunk,
            chunks: self.chunks.len() - before,
        });
    }

    /// The arrays of both columns; rows are numbered from `first_row`.
    pub fn into_columns(self, list: PixelType, first_row: i64) -> Vec<ArrayRef> {
        let rows = self.images.len();
        let row_id = Int64Array::from_iter_values(first_row..first_row + rows as i64);
        let Self { images, chunks, pixels, count } = self;
        let data = ArrayData::builder(pixel_type(list)).len(count).add_buffer(pixels.into());
        let pixels =
            make_array(data.build().expect("the buffer has as many values as the chunks have pixels"));
        let arrays = ome_arrow::STRUCT
            .iter()
            .map(|f| match f.name {
                field::TYPE => text(&images, |_| Some(ome_arrow::TYPE)),
                field::VERSION => text(&images, |_| Some(ome_arrow::VERSION)),
                field::ID => text(&images, |i| {
                    let m = &i.metadata;
                    Some(if m.id.is_empty() { m.name.as_str() } else { m.id.as_str() })
                }),
                field::NAME => text(&images, |i| Some(i.metadata.name.as_str())),
                field::IMAGE_TYPE => text(&images, |_| None),
                field::ACQUISITION => {
                    let times = images.iter().map(|i| i.metadata.acquired.as_deref().and_then(micros));
                    Arc::new(times.collect::<PrimitiveArray<TimestampMicrosecondType>>())
                }
                field::PIXELS_META => pixels_meta(&images),
                field::CHUNK_GRID => chunk_grid(&images),
                field::CHUNKS => chunk_list(&images, &chunks, &pixels, list),
                field::PLANES => no_planes(rows, list),
                _ => Arc::new(NullArray::new(rows)) as ArrayRef,
            })
            .collect();
        let column = StructArray::new(fields(ome_arrow::STRUCT, list), arrays, None);
        vec![Arc::new(row_id), Arc::new(column)]
    }
}

/// Appends pixels, converted from `dtype` to `list`.
fn append(to: &mut MutableBuffer, pixels: &[u8], dtype: PixelType, list: PixelType) {
    use PixelType::{F32, F64, I8, I16, I32, U8, U16, U32};
    if dtype == list {
        return to.extend_from_slice(pixels);
    }
    if (dtype, list) == (U8, U16) {
        let start = to.len();
        to.resize(start + pixels.len() * 2, 0);
        for (o, &p) in to.as_slice_mut()[start..].chunks_exact_mut(2).zip(pixels) {
            o[0] = p;
        }
        return;
    }
    // Mixed types in one column: rare, and exact by way of double precision, which holds all of them.
    macro_rules! convert {
        (@ $s:ty) => {
            for p in pixels.chunks_exact(size_of::<$s>()) {
                let v = <$s>::from_le_bytes(p.try_into().expect("a pixel")) as f64;
                match list {
                    U8 => to.extend_from_slice(&(v as u8).to_le_bytes()),
                    I8 => to.extend_from_slice(&(v as i8).to_le_bytes()),
                    U16 => to.extend_from_slice(&(v as u16).to_le_bytes()),
                    I16 => to.extend_from_slice(&(v as i16).to_le_bytes()),
                    U32 => to.extend_from_slice(&(v as u32).to_le_bytes()),
                    I32 => to.extend_from_slice(&(v as i32).to_le_bytes()),
                    F32 => to.extend_from_slice(&(v as f32).to_le_bytes()),
                    F64 => to.extend_from_slice(&v.to_le_bytes()),
                }
            }
        };
        ($($from:ident $s:ty),*) => {
            match dtype { $($from => convert!(@ $s)),* }
        };
    }
    convert!(U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, F32 f32, F64 f64);
}

fn text<'a, T>(items: &'a [T], of: impl Fn(&'a T) -> Option<&'a str>) -> ArrayRef {
    Arc::new(items.iter().map(of).collect::<StringArray>())
}

fn i32s<T>(items: &[T], of: impl Fn(&T) -> usize) -> ArrayRef {
    Arc::new(items.iter().map(|i| Some(of(i) as i32)).collect::<Int32Array>())
}

fn i16s<T>(items: &[T], of: impl Fn(&T) -> usize) -> ArrayRef {
    Arc::new(items.iter().map(|i| Some(of(i) as i16)).collect::<Int16Array>())
}

fn f32s<T>(items: &[T], of: impl Fn(&T) -> Option<f64>) -> ArrayRef {
    Arc::new(items.iter().map(|i| of(i).map(|v| v as f32)).collect::<PrimitiveArray<Float32Type>>())
}

/// An integer array of the type that the struct has for `name`.
fn integers<T>(of: &[ome_arrow::Field], name: &str, items: &[T], value: impl Fn(&T) -> usize) -> ArrayRef {
    let is_short = of.iter().any(|f| f.name == name && f.kind == FieldType::Int16);
    if is_short { i16s(items, value) } else { i32s(items, value) }
}

fn structure(
    of: &[ome_arrow::Field],
    list: PixelType,
    mut array: impl FnMut(&str) -> ArrayRef,
) -> StructArray {
    StructArray::new(fields(of, list), of.iter().map(|f| array(f.name)).collect(), None)
}

fn list_of(values: StructArray, lengths: impl Iterator<Item = usize>) -> ArrayRef {
    let field = element(values.data_type().clone());
    Arc::new(ListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(values), None))
}

fn pixels_meta(images: &[Image]) -> ArrayRef {
    let of = ome_arrow::PIXELS_META;
    let physical = |i: &Image, axis: usize| -> Option<PhysicalSize> {
        let m = &i.metadata;
        [&m.physical_size_x, &m.physical_size_y, &m.physical_size_z][axis].clone()
    };
    Arc::new(structure(of, ome_arrow::PUBLISHED_PIXELS, |name| {
        let axis_of = |names: &[&str]| names.iter().position(|n| *n == name);
        if let Some(axis) = axis_of(&field::SIZES) {
            return integers(of, name, images, |i| i.shape.0[axis]);
        }
        if let Some(axis) = axis_of(&field::PHYSICAL_SIZES) {
            return f32s(images, |i| physical(i, axis).map(|s| s.value));
        }
        if let Some(axis) = axis_of(&field::PHYSICAL_UNITS) {
            let units = images.iter().map(|i| physical(i, axis).map(|s| s.unit));
            return Arc::new(units.collect::<StringArray>());
        }
        match name {
            field::TYPE => text(images, |i| Some(i.dtype.name())),
            field::DIMENSION_ORDER => text(images, |i| Some(if i.shape.z() == 1 { "XYCT" } else { "XYZCT" })),
            _ => channels(images),
        }
    }))
}

fn channels(images: &[Image]) -> ArrayRef {
    let all: Vec<_> = images.iter().flat_map(|i| &i.metadata.channels).collect();
    let values = structure(ome_arrow::CHANNEL, ome_arrow::PUBLISHED_PIXELS, |name| match name {
        field::ID => text(&all, |c| Some(c.id.as_str())),
        field::NAME => text(&all, |c| Some(c.name.as_str())),
        field::EMISSION => f32s(&all, |c| c.emission_um),
        field::EXCITATION => f32s(&all, |c| c.excitation_um),
        field::ILLUMINATION => text(&all, |c| c.illumination.as_deref()),
        _ => Arc::new(all.iter().map(|c| c.color_rgba).collect::<UInt32Array>()),
    });
    list_of(values, images.iter().map(|i| i.metadata.channels.len()))
}

fn chunk_grid(images: &[Image]) -> ArrayRef {
    let of = ome_arrow::CHUNK_GRID;
    Arc::new(structure(of, ome_arrow::PUBLISHED_PIXELS, |name| match name {
        field::GRID_ORDER => text(images, |_| Some(ome_arrow::GRID_ORDER)),
        field::CHUNK_ORDER => text(images, |_| Some(ome_arrow::CHUNK_ORDER)),
        _ => {
            let axis = field::GRID_SIZES.iter().position(|n| *n == name).unwrap_or(0);
            integers(of, name, images, |i| axis.checked_sub(2).map_or(1, |a| i.chunk[a]))
        }
    }))
}

fn chunk_list(images: &[Image], chunks: &[Region], pixels: &ArrayRef, list: PixelType) -> ArrayRef {
    let of = ome_arrow::CHUNK;
    let values = structure(of, list, |name| {
        if let Some(axis) = field::ORIGIN.iter().position(|n| *n == name) {
            return integers(of, name, chunks, |c| c.start[axis]);
        }
        if let Some(axis) = field::CHUNK_SHAPE.iter().position(|n| *n == name) {
            return integers(of, name, chunks, |c| c.size[axis + 2]);
        }
        let offsets = OffsetBuffer::from_lengths(chunks.iter().map(Region::pixels));
        Arc::new(ListArray::new(element(pixel_type(list)), offsets, Arc::clone(pixels), None))
    });
    list_of(values, images.iter().map(|i| i.chunks))
}

/// An empty list of planes for every row.
fn no_planes(rows: usize, list: PixelType) -> ArrayRef {
    let fields = fields(ome_arrow::PLANE, list);
    let children = fields.iter().map(|f| arrow_array::new_empty_array(f.data_type())).collect();
    list_of(StructArray::new(fields, children, None), std::iter::repeat_n(0, rows))
}

/// Microseconds since 1970 of a time in ISO 8601; without a zone it is taken as UTC.
fn micros(time: &str) -> Option<i64> {
    if let Ok(stamp) = time.parse::<jiff::Timestamp>() {
        return Some(stamp.as_microsecond());
    }
    let civil: jiff::civil::DateTime = time.parse().ok()?;
    Some(jiff::tz::Offset::UTC.to_timestamp(civil).ok()?.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_zone() {
        assert_eq!(micros("1970-01-01T00:00:01.000002"), Some(1_000_002));
        assert_eq!(micros("1970-01-01T01:00:01+01:00"), Some(1_000_000));
        assert_eq!(micros("1970-01-02"), Some(86_400_000_000));
        assert_eq!(micros("yesterday"), None);
    }

    #[test]
    fn shapes_beyond_the_published_types_are_refused() {
        assert!(check(Shape([1, 1, 1, 40_000, 40_000])).is_ok());
        assert!(check(Shape([1, 1, 1, 50_000, 50_000])).is_err());
        assert!(check(Shape([1, 40_000, 1, 1, 1])).is_err());
    }
}
