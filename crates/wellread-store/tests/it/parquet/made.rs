//! Files of every kind, made with the `parquet` crate.

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Int64Array, LargeListArray, ListArray, PrimitiveArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Region, Shape, clip_runs};

/// One image to be stored: `None` for a null row.
pub(super) type Image = Option<(Shape, Vec<f64>)>;

/// How a column of images is stored.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub dtype: PixelType,
    /// Type of the pixel lists.
    pub list: PixelType,
    /// Integers of 64 bits, pixels included, as if inferred.
    pub inferred: bool,
    pub large_lists: bool,
    pub chunks: bool,
    pub planes: bool,
    pub tile: [usize; 3],
}

#[derive(Default)]
pub(super) struct Pieces {
    lengths: Vec<usize>,
    boxes: Vec<Region>,
    pixels: Vec<f64>,
}

impl Pieces {
    fn push(&mut self, image: &Image, tile: [usize; 3]) {
        let before = self.boxes.len();
        if let Some((shape, values)) = image {
            for volume in 0..shape.t() * shape.c() {
                for z in (0..shape.z()).step_by(tile[0]) {
                    for y in (0..shape.y()).step_by(tile[1]) {
                        for x in (0..shape.x()).step_by(tile[2]) {
                            let size = [
                                1,
                                1,
                                tile[0].min(shape.z() - z),
                                tile[1].min(shape.y() - y),
                                tile[2].min(shape.x() - x),
                            ];
                            let start = [volume / shape.c(), volume % shape.c(), z, y, x];
                            let region = Region { start, size };
                            clip_runs(&shape.full(), &region, |from, _, n| {
                                self.pixels.extend(&values[from..from + n]);
                            });
                            self.boxes.push(region);
                        }
                    }
                }
            }
        }
        self.lengths.push(self.boxes.len() - before);
    }
}

pub(super) fn numbers(values: impl Iterator<Item = usize>, wide: bool) -> ArrayRef {
    if wide {
        Arc::new(values.map(|v| Some(v as i64)).collect::<PrimitiveArray<Int64Type>>())
    } else {
        Arc::new(values.map(|v| Some(v as i32)).collect::<PrimitiveArray<Int32Type>>())
    }
}

pub(super) fn list(values: ArrayRef, lengths: &[usize], large: bool, name: &str) -> ArrayRef {
    let field = Arc::new(Field::new(name, values.data_type().clone(), true));
    if large {
        let offsets = OffsetBuffer::<i64>::from_lengths(lengths.iter().copied());
        Arc::new(LargeListArray::new(field, offsets, values, None))
    } else {
        let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
        Arc::new(ListArray::new(field, offsets, values, None))
    }
}

pub(super) fn structure(children: Vec<(&str, ArrayRef)>, nulls: Option<NullBuffer>) -> StructArray {
    let (fields, arrays): (Vec<_>, Vec<_>) = children
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    StructArray::new(fields.into(), arrays, nulls)
}

pub(super) fn pixel_array(values: &[f64], list: PixelType, inferred: bool) -> ArrayRef {
    fn of<T: ArrowPrimitiveType>(values: &[f64], to: impl Fn(f64) -> T::Native) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter_values(values.iter().map(|&v| to(v))))
    }
    match list {
        PixelType::F32 if !inferred => of::<Float32Type>(values, |v| v as f32),
        PixelType::F32 | PixelType::F64 => of::<Float64Type>(values, |v| v),
        _ if inferred => of::<Int64Type>(values, |v| v as i64),
        PixelType::U8 => of::<UInt8Type>(values, |v| v as u8),
        PixelType::I8 => of::<Int8Type>(values, |v| v as i8),
        PixelType::U16 => of::<UInt16Type>(values, |v| v as u16),
        PixelType::I16 => of::<Int16Type>(values, |v| v as i16),
        PixelType::U32 => of::<UInt32Type>(values, |v| v as u32),
        PixelType::I32 => of::<Int32Type>(values, |v| v as i32),
    }
}

pub(super) fn piece_column(images: &[Image], layout: &Layout, planes: bool) -> ArrayRef {
    let mut pieces = Pieces::default();
    for image in images {
        let tile = if planes { [1, usize::MAX >> 1, usize::MAX >> 1] } else { layout.tile };
        pieces.push(image, tile);
    }
    let wide = layout.inferred;
    let origin = |axis: usize| numbers(pieces.boxes.iter().map(|b| b.start[axis]), wide);
    let size = |axis: usize| numbers(pieces.boxes.iter().map(|b| b.size[axis]), wide);
    let lengths: Vec<_> = pieces.boxes.iter().map(Region::pixels).collect();
    let name = if layout.inferred { "element" } else { "item" };
    let pixels = pixel_array(&pieces.pixels, layout.list, layout.inferred);
    let pixels = list(pixels, &lengths, layout.large_lists, name);
    let mut fields = vec![("z", origin(2)), ("t", origin(0)), ("c", origin(1))];
    if !planes {
        fields.extend([("y", origin(3)), ("x", origin(4))]);
        fields.extend([("shape_z", size(2)), ("shape_y", size(3)), ("shape_x", size(4))]);
    }
    fields.push(("pixels", pixels));
    list(Arc::new(structure(fields, None)), &pieces.lengths, layout.large_lists, name)
}

pub(super) fn image_column(images: &[Image], layout: &Layout) -> StructArray {
    let size = |axis: usize| {
        numbers(images.iter().map(|i| i.as_ref().map_or(0, |(s, _)| s.0[axis])), layout.inferred)
    };
    let meta = structure(
        vec![
            ("type", Arc::new(StringArray::from(vec![layout.dtype.name(); images.len()])) as ArrayRef),
            ("size_x", size(4)),
            ("size_y", size(3)),
            ("size_z", size(2)),
            ("size_c", size(1)),
            ("size_t", size(0)),
        ],
        None,
    );
    let names: Vec<_> = (0..images.len()).map(|i| format!("image-{i}")).collect();
    let mut fields = vec![
        ("name", Arc::new(StringArray::from(names)) as ArrayRef),
        ("pixels_meta", Arc::new(meta) as ArrayRef),
    ];
    if layout.chunks {
        fields.push(("chunks", piece_column(images, layout, false)));
    }
    if layout.planes {
        fields.push(("planes", piece_column(images, layout, true)));
    }
    structure(fields, Some(images.iter().map(Option::is_some).collect()))
}

pub(super) fn write_file(path: &Path, images: &[Image], layout: &Layout, properties: WriterProperties) {
    let column: ArrayRef = Arc::new(image_column(images, layout));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..images.len() as i64));
    let schema = Schema::new(vec![
        Field::new("id", ids.data_type().clone(), true),
        Field::new("picture", column.data_type().clone(), true),
    ]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![ids, column]).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

pub(super) fn to_bytes(values: &[f64], dtype: PixelType) -> Vec<u8> {
    let one = |v: f64| match dtype {
        PixelType::U8 => vec![v as u8],
        PixelType::I8 => (v as i8).to_le_bytes().to_vec(),
        PixelType::U16 => (v as u16).to_le_bytes().to_vec(),
        PixelType::I16 => (v as i16).to_le_bytes().to_vec(),
        PixelType::U32 => (v as u32).to_le_bytes().to_vec(),
        PixelType::I32 => (v as i32).to_le_bytes().to_vec(),
        PixelType::F32 => (v as f32).to_le_bytes().to_vec(),
        PixelType::F64 => v.to_le_bytes().to_vec(),
    };
    values.iter().flat_map(|&v| one(v)).collect()
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub codec: Codec,
    pub encoding: Option<Encoding>,
    pub dictionary_limit: usize,
    pub page_size: usize,
    pub page_rows: usize,
    pub batch: usize,
    pub group_rows: usize,
    pub v2: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            codec: Codec::ZSTD(ZstdLevel::default()),
            encoding: None,
            dictionary_limit: 1 << 20,
            page_size: 1 << 20,
            page_rows: 20_000,
            batch: 1024,
            group_rows: 1000,
            v2: false,
        }
    }
}

impl Settings {
    /// As properties of the writer.
    pub fn properties(&self) -> WriterProperties {
        let mut p = WriterProperties::builder()
            .set_compression(self.codec)
            .set_data_page_size_limit(self.page_size)
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.batch)
            .set_dictionary_page_size_limit(self.dictionary_limit)
            .set_max_row_group_row_count(Some(self.group_rows))
            .set_dictionary_enabled(self.encoding.is_none());
        if let Some(encoding) = self.encoding {
            // Only pixels: texts do not take number encodings.
            for list in ["item", "element"] {
                for pieces in ["chunks", "planes"] {
                    let path = ["picture", pieces, "list", list, "pixels", "list", list];
                    p = p.set_column_encoding(path.map(str::to_owned).to_vec().into(), encoding);
                }
            }
        }
        let version = if self.v2 { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        p.set_writer_version(version).build()
    }
}

/// Chunks of up to 512 x 512, nothing unusual.
pub(super) fn simple(dtype: PixelType, list: PixelType) -> Layout {
    Layout {
        dtype,
        list,
        inferred: false,
        large_lists: false,
        chunks: true,
        planes: false,
        tile: [1, 512, 512],
    }
}
