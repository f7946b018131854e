//! Writing: images cut into chunks, chunks collected into row groups, tables and index at the end.
//!
//! Long because three tables are written in step, by one writer that knows the state of each.

use super::super::codec_name::codec_name;
use super::super::footer_checksum;
use super::super::writer::pages::PageWriter;
use super::super::writer::{codec, write_error};
use super::names::{AXES, CHUNKS, DESCRIPTION, IMAGES, INDEX, LAYOUT, NAME};
use super::tables::{ACQUIRED, PHYSICAL, is_own};
use crate::features::unique_schema;
use crate::finished::Finished;
use crate::place::{self, Writer};
use crate::staged::{Existing, Staged};
use crate::surface::{option, option_as};
use crate::{Error, ImageView, Result, StoreWriter, Tune, WriteOptions};
use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, LargeBinaryArray, RecordBatch, StringArray,
};
use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde_json::json;
use std::collections::HashSet;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{ImageMetadata, PhysicalSize, PixelType, Region, Shape, clip_runs, ome_arrow, ome_xml};

/// Layouts by name, as in the reference implementation.
const LAYOUTS: [&str; 5] = ["image", "tile", "volume", "z-plane", "block"];
/// Bytes that a chunk of the layouts `tile` and `block` has at most, as the reference's `target_chunk_mb` of 4.
const CHUNK_BYTES: f64 = 4.0 * 1024.0 * 1024.0;

/// Writes a dataset folder. By default each plane is a chunk, which is the whole image where it has one plane.
pub(super) struct DatasetWriter {
    /// Dropped before `staged`, which removes the folder.
    writer: Option<PageWriter<BufWriter<Writer>>>,
    staged: Staged,
    layout: &'static str,
    options: WriteOptions,
    codec: Codec,
    images: Vec<ImageRow>,
    ids: HashSet<String>,
    /// All chunks, for the index.
    places: Vec<ChunkLocation>,
    /// How many of `places` are in row groups already written.
    written: usize,
    /// Bytes of the chunks that wait for their row group, in order.
    pending: Vec<(PixelType, Vec<u8>)>,
    pending_bytes: usize,
    groups: i32,
}

struct ImageRow {
    id: String,
    metadata: ImageMetadata,
    shape: Shape,
    dtype: PixelType,
    chunk: [usize; 5],
}

/// Where a chunk is: its image, its box, and once written its row group and row.
struct ChunkLocation {
    image: usize,
    region: Region,
    group: i32,
    row: i32,
}

type Column = (String, ArrayRef);

impl DatasetWriter {
    /// Creates the folder beside its place; it appears under its name when finished.
    ///
    /// # Errors
    /// The target exists or cannot be created; a layout that does not exist, or options that Parquet lacks.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        let asked = options.variant.as_deref().unwrap_or("z-plane");
        let Some(layout) = LAYOUTS.into_iter().find(|l| *l == asked) else {
            return Err(Error::new(path, format_args!("{NAME} has no layout {asked:?}"))
                .choice()
                .hint(format_args!("it has {}", LAYOUTS.join(", "))));
        };
        if options.shard.is_some() {
            return Err(Error::new(path, "Parquet files have no shards")
                .choice()
                .hint("leave the shard size out"));
        }
        if let Some(chunk) = options.chunk.filter(|chunk| chunk.contains(&0)) {
            return Err(Error::new(path, format_args!("a chunk of {} is empty", Shape(chunk)))
                .choice()
                .hint("give five positive numbers T,C,Z,Y,X"));
        }
        let codec = codec(path, options)?;
        let staged = Staged::new(path, Existing::from_overwrite(options.overwrite))?;
        staged.create_dir()?;
        Ok(Self {
            writer: None,
            staged,
            layout,
            options: options.clone(),
            codec,
            images: vec![],
            ids: HashSet::new(),
            places: vec![],
            written: 0,
            pending: vec![],
            pending_bytes: 0,
            groups: 0,
        })
    }

    /// Chunk size of an image: as asked for, else by the layout, as the reference implementation chooses it.
    fn chunk(&self, shape: Shape, dtype: PixelType) -> [usize; 5] {
        let [t, c, z, y, x] = shape.0;
        let limited = |chunk: [usize; 5]| std::array::from_fn(|a| chunk[a].clamp(1, shape.0[a]));
        if let Some(chunk) = self.options.chunk {
            return limited(chunk);
        }
        let chunk = limited(match self.layout {
            "image" => [t, c, z, y, x],
            "volume" => [1, 1, z, y, x],
            "tile" => [1, 1, 1, 512, 512],
            "block" => [1, 1, 16, 128, 128],
            _ => [1, 1, 1, y, x],
        });
        let bytes = chunk.iter().product::<usize>() as f64 * dtype.size() as f64;
        if matches!(self.layout, "tile" | "block") && bytes > CHUNK_BYTES {
            let scale = (CHUNK_BYTES / bytes).sqrt();
            let scaled = |n: usize| ((n as f64 * scale) as usize).max(1);
            return [chunk[0], chunk[1], chunk[2], scaled(chunk[3]), scaled(chunk[4])];
        }
        chunk
    }

    /// The layout that an image's chunks make: the one asked for, unless a chunk size was given that is another's.
    fn layout(&self, image: &ImageRow) -> &'static str {
        let [_, _, z, y, x] = image.shape.0;
        let makes = |layout: &str| match layout {
            "image" => image.chunk == image.shape.0,
            "volume" => image.chunk == [1, 1, z, y, x],
            "z-plane" => image.chunk == [1, 1, 1, y, x],
            "tile" => image.chunk[..3] == [1; 3],
            _ => true,
        };
        if self.options.chunk.is_none() || makes(self.layout) {
            return self.layout;
        }
        ["image", "volume", "z-plane", "tile"].into_iter().find(|layout| makes(layout)).unwrap_or("block")
    }

    /// Bytes of pixels at which a row group is closed. A reader like the reference's decompresses a whole one, so
    /// for random access a large chunk has one of its own.
    fn group_bytes(&self) -> usize {
        match self.options.tune {
            Tune::Random => 256 << 10,
            Tune::Scan => 64 << 20,
            Tune::Size => 128 << 20,
            Tune::Reference => 0,
        }
    }

    fn properties(&self, pixels: bool) -> WriterProperties {
        let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let mut metadata = vec![
            pair(ome_arrow::FILE_TYPE_KEY, ome_arrow::TYPE),
            pair(ome_arrow::FILE_VERSION_KEY, ome_arrow::VERSION),
            pair("ome.arrow.layout", LAYOUT),
            pair(ome_arrow::FILE_WRITER_KEY, env!("CARGO_PKG_VERSION")),
        ];
        metadata.extend(
            self.options.checksums.then(|| pair(footer_checksum::FOOTER_KEY, footer_checksum::NO_SUM)),
        );
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("wellread version {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(metadata))
            .set_compression(self.codec)
            .set_max_row_group_row_count(None);
        if pixels {
            let column = ColumnPath::from("pixel_bytes");
            // Bounds of pixels as texts say nothing, and no two chunks are equal.
            properties = properties
                .set_column_statistics_enabled(column.clone(), EnabledStatistics::None)
                .set_column_dictionary_enabled(column.clone(), self.options.tune == Tune::Reference);
            if self.options.tune == Tune::Random {
                properties =
                    properties.set_column_data_page_row_count_limit(column, 1).set_write_batch_size(1);
            }
        }
        properties.build()
    }

    fn error(&self, error: &ParquetError) -> Error {
        write_error(self.staged.target(), error)
    }

    fn batch(&self, columns: Vec<Column>) -> Result<RecordBatch> {
        // All nullable, as the reference's are.
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
            .map_err(|e| Error::new(self.staged.target(), format_args!("cannot write: {e}")))
    }

    fn create_table(
        &self,
        name: &str,
        first: &RecordBatch,
        pixels: bool,
    ) -> Result<PageWriter<BufWriter<Writer>>> {
        let path = self.staged.path().join(name);
        let file = place::create(&path).map_err(|e| Error::io(self.staged.target(), "cannot create", &e))?;
        let buffered = BufWriter::with_capacity(1 << 20, file);
        PageWriter::new(buffered, &first.schema(), self.properties(pixels), self.options.checksums, None)
            .map_err(|e| self.error(&e))
    }

    /// Closes the row group of the chunks that wait.
    fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let group = self.groups;
        for (row, place) in self.places[self.written..].iter_mut().enumerate() {
            (place.group, place.row) = (group, row as i32);
        }
        let mut columns = self.location_columns(self.written..self.places.len());
        let dtypes = self.pending.iter().map(|(dtype, _)| dtype.name());
        columns.push(("dtype".into(), Arc::new(StringArray::from_iter_values(dtypes))));
        let pixels = self.pending.iter().map(|(_, bytes)| bytes.as_slice());
        columns.push(("pixel_bytes".into(), Arc::new(LargeBinaryArray::from_iter_values(pixels))));
        self.pending.clear();
        let batch = self.batch(columns)?;
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None if self.groups == 0 => self.create_table(CHUNKS, &batch, true)?,
            None => return Err(Error::new(self.staged.target(), "an earlier chunk could not be written")),
        };
        writer.write(&batch).and_then(|()| writer.flush()).map_err(|e| self.error(&e))?;
        self.writer = Some(writer);
        self.written = self.places.len();
        self.pending_bytes = 0;
        self.groups += 1;
        Ok(())
    }

    /// Image, id, place and size of some chunks.
    fn location_columns(&self, range: std::ops::Range<usize>) -> Vec<Column> {
        let places = &self.places[range.clone()];
        let images = places.iter().map(|p| self.images[p.image].id.as_str());
        let mut columns: Vec<Column> = vec![
            ("image_id".into(), Arc::new(StringArray::from_iter_values(images))),
            ("chunk_id".into(), Arc::new(Int64Array::from_iter_values(range.map(|id| id as i64)))),
        ];
        for (prefix, value) in [
            ("", (|p: &ChunkLocation, a| p.region.start[a]) as fn(&ChunkLocation, usize) -> usize),
            ("shape_", |p, a| p.region.size[a]),
        ] {
            for (a, axis) in AXES.iter().enumerate() {
                let array = Int32Array::from_iter_values(places.iter().map(|p| value(p, a) as i32));
                columns.push((format!("{prefix}{axis}"), Arc::new(array)));
            }
        }
        columns
    }

    fn index_columns(&self) -> Vec<Column> {
        let mut columns = self.location_columns(0..self.places.len());
        let groups = Int32Array::from_iter_values(self.places.iter().map(|p| p.group));
        let rows = Int32Array::from_iter_values(self.places.iter().map(|p| p.row));
        let fragments = StringArray::from_iter_values(self.places.iter().map(|_| CHUNKS));
        columns.splice(
            2..2,
            [
                ("row_group_id".to_owned(), Arc::new(groups) as ArrayRef),
                ("row_index_in_group".to_owned(), Arc::new(rows)),
                ("fragment_path".to_owned(), Arc::new(fragments)),
            ],
        );
        columns
    }

    fn image_columns(&self) -> Vec<Column> {
        let images = &self.images;
        let text = |value: &dyn Fn(&ImageRow) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(images.iter().map(value)))
        };
        let mut columns = vec![
            ("image_id".to_owned(), text(&|i| i.id.clone())),
            ("name".to_owned(), text(&|i| i.metadata.name.clone())),
            ("image_type".to_owned(), Arc::new(StringArray::new_null(images.len())) as ArrayRef),
            ("dtype".to_owned(), text(&|i| i.dtype.name().to_owned())),
        ];
        for (a, axis) in AXES.iter().enumerate() {
            let sizes = Int32Array::from_iter_values(images.iter().map(|i| i.shape.0[a] as i32));
            columns.push((format!("size_{axis}"), Arc::new(sizes)));
        }
        columns.push(("layout".to_owned(), text(&|i| self.layout(i).to_owned())));
        for (a, axis) in AXES.iter().enumerate() {
            let sizes = Int32Array::from_iter_values(images.iter().map(|i| i.chunk[a] as i32));
            columns.push((format!("chunk_{axis}"), Arc::new(sizes)));
        }
        columns.push(("compression".to_owned(), text(&|_| codec_name(self.codec).to_owned())));
        columns.push(("channels_json".to_owned(), text(&|i| channels_json(&i.metadata))));
        for (name, size) in PHYSICAL.into_iter().zip([
            (|m: &ImageMetadata| m.physical_size_x.as_ref()) as fn(&ImageMetadata) -> Option<&PhysicalSize>,
            |m| m.physical_size_y.as_ref(),
            |m| m.physical_size_z.as_ref(),
        ]) {
            let values: Float64Array =
                images.iter().map(|i| size(&i.metadata).and_then(micrometres)).collect();
            columns.push((name.to_owned(), Arc::new(values)));
        }
        let acquired: StringArray = images.iter().map(|i| i.metadata.acquired.as_deref()).collect();
        columns.push((ACQUIRED.to_owned(), Arc::new(acquired)));
        if let Some(features) = &self.options.features {
            // The table's own columns keep their names.
            let (schema, _) = unique_schema(features.schema_ref(), &is_own);
            for (field, column) in schema.fields().iter().zip(features.columns()) {
                columns.push((field.name().clone(), column.slice(0, images.len().min(column.len()))));
            }
        }
        columns
    }

    fn write_table(&self, name: &str, columns: Vec<Column>) -> Result<()> {
        let batch = self.batch(columns)?;
        let mut writer = self.create_table(name, &batch, false)?;
        writer.write(&batch).and_then(|()| writer.finish()).map_err(|e| self.error(&e))?;
        drop(writer);
        self.put_footer_checksum(name)
    }

    /// Puts the checksum of a finished table's footer into it.
    fn put_footer_checksum(&self, name: &str) -> Result<()> {
        if !self.options.checksums {
            return Ok(());
        }
        footer_checksum::put(&self.staged.path().join(name))
            .map_err(|e| Error::io(self.staged.target(), "cannot write a footer's checksum", &e))
    }

    fn description(&self) -> String {
        let chunk = self.images.first().map_or([0; 5], |i| i.chunk);
        let value = json!({
            "type": ome_arrow::TYPE,
            "version": ome_arrow::VERSION,
            "layout": LAYOUT,
            "image_count": self.images.len(),
            "chunk_count": self.places.len(),
            "choice": {
                "layout": self.images.first().map_or(self.layout, |i| self.layout(i)), "chunk_shape": chunk, "compression": codec_name(self.codec),
                "rationale": "chosen by wellread's options of writing",
            },
            "package_versions": { "wellread": env!("CARGO_PKG_VERSION") },
        });
        serde_json::to_string_pretty(&value).unwrap_or_default()
    }
}

/// Micrometres, the unit of the table: of lengths of any unit, but not of a size in pixels or without a unit.
fn micrometres(size: &PhysicalSize) -> Option<f64> {
    ome_xml::micrometres(size.value, &size.unit)
}

fn channels_json(metadata: &ImageMetadata) -> String {
    let channels: Vec<_> = metadata
        .channels
        .iter()
        .map(|c| {
            json!({
                "id": c.id, "name": c.name, "emission_um": c.emission_um.unwrap_or(0.0),
                "excitation_um": c.excitation_um.unwrap_or(0.0),
                "illumination": c.illumination.as_deref().unwrap_or(ome_arrow::UNKNOWN_ILLUMINATION),
                // Null where it has none, as in the reference's own struct.
                "color_rgba": c.color_rgba,
            })
        })
        .collect();
    serde_json::Value::from(channels).to_string()
}

impl StoreWriter for DatasetWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        let row = self.images.len();
        let target = self.staged.target().to_owned();
        let refuse = |cause: &dyn std::fmt::Display| Error::new(&target, cause).row(row);
        if self.options.features.as_ref().is_some_and(|f| f.num_rows() <= row) {
            return Err(refuse(&"there are more images than rows of feature columns"));
        }
        let bytes = image.shape.checked_bytes(image.dtype).map_err(|e| refuse(&e))?;
        if bytes != image.pixels.len() {
            return Err(refuse(&format_args!(
                "{} bytes of pixels were given, not {bytes}",
                image.pixels.len()
            )));
        }
        if image.shape.0.iter().any(|&n| i32::try_from(n).is_err()) {
            return Err(refuse(&format_args!("a size of {} does not fit into 32 bits", image.shape)));
        }
        let chunk = self.chunk(image.shape, image.dtype);
        let size = image.dtype.size();
        if i32::try_from(chunk.iter().product::<usize>() * size).is_err() {
            return Err(refuse(&format_args!("a chunk of {} exceeds 2 GiB", Shape(chunk))).hint(
                format_args!(
                    "give a smaller chunk ({}), or another layout ({})",
                    option("chunk"),
                    option_as("variant", "block")
                ),
            ));
        }
        // Chunks find their image by its id, so no two may share one.
        let base = [&image.metadata.id, &image.metadata.name].into_iter().find(|t| !t.is_empty());
        let base = base.cloned().unwrap_or_else(|| format!("image-{row:05}"));
        let (mut id, mut number) = (base.clone(), row);
        // Another image may be called as this one is then.
        while !self.ids.insert(id.clone()) {
            id = format!("{base}-{number}");
            number += 1;
        }
        self.images.push(ImageRow {
            id,
            metadata: image.metadata.clone(),
            shape: image.shape,
            dtype: image.dtype,
            chunk,
        });
        let full = image.shape.full();
        let grid: [usize; 5] = std::array::from_fn(|a| image.shape.0[a].div_ceil(chunk[a]));
        for n in 0..grid.iter().product::<usize>() {
            let mut rest = n;
            let mut region = full;
            for a in (0..5).rev() {
                region.start[a] = rest % grid[a] * chunk[a];
                rest /= grid[a];
                region.size[a] = chunk[a].min(image.shape.0[a] - region.start[a]);
            }
            let bytes = region.pixels() * size;
            if !self.pending.is_empty() && self.pending_bytes + bytes > self.group_bytes() {
                self.flush()?;
            }
            let mut pixels = vec![0; bytes];
            clip_runs(&full, &region, |from, to, n| {
                pixels[to * size..(to + n) * size]
                    .copy_from_slice(&image.pixels[from * size..(from + n) * size]);
            });
            self.places.push(ChunkLocation { image: row, region, group: 0, row: 0 });
            self.pending.push((image.dtype, pixels));
            self.pending_bytes += bytes;
        }
        Ok(())
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        if self.images.is_empty() {
            return Err(Error::new(self.staged.target(), "a dataset of no images cannot be written"));
        }
        self.flush()?;
        let Some(mut writer) = self.writer.take() else {
            return Err(Error::new(self.staged.target(), "an earlier chunk could not be written"));
        };
        writer.finish().map_err(|e| self.error(&e))?;
        drop(writer);
        self.put_footer_checksum(CHUNKS)?;
        self.write_table(IMAGES, self.image_columns())?;
        self.write_table(INDEX, self.index_columns())?;
        place::write(&self.staged.path().join(DESCRIPTION), self.description().as_bytes())
            .map_err(|e| Error::io(self.staged.target(), "cannot write", &e))?;
        let Self { staged, .. } = *self;
        Ok(staged.finished())
    }
}
