//! Writing: the published OME-Arrow struct, streamed through the `parquet` crate's Arrow writer.
//!
//! ```text
//!  image ──cut into chunks──▶ pending rows (bounded) ──arrays──▶ record batch ──▶ row group ──▶ staged file
//! ```
//!
//! The column is the published struct, with `chunks` and without `planes` (an empty list: the same pixels
//! twice serve nobody). For 8- and 16-bit unsigned images, `pixels` is a list of `uint16`, as published, so
//! that `ome-arrow` reads it. For others it has the image's own type; `pixels_meta.type` names the image's
//! type in every case. The file carries [`ome_arrow::FILE_WRITER_KEY`], by which readers know that it does.
//!
//! | tune | row group | pixel pages | encoding of pixels | compression |
//! |---|---|---|---|---|
//! | `Random` | 8 MiB of pixels, at most 4,096 images | one image | `BYTE_STREAM_SPLIT` | zstd 3 |
//! | `Scan` | 64 MiB of pixels | 1 MiB | `BYTE_STREAM_SPLIT` | zstd 3 |
//! | `Size` | 128 MiB of pixels | 1 MiB | `BYTE_STREAM_SPLIT` | zstd 15 |
//! | `Reference` | 1,048,576 rows or 256 MiB | 1 MiB | dictionary, then `PLAIN` | zstd 3 |
//!
//! A record batch is compressed on the thread that writes it: [`WriteOptions::jobs`] is not used. Pages and the footer
//! carry checksums (`pages`) unless [`WriteOptions::checksums`] says otherwise.
//!
//! `BYTE_STREAM_SPLIT` stores the lowest bytes of all pixels, then the next lowest, and so on. The bytes that
//! an 8- or 16-bit pixel does not have become runs of zeros that cost nothing. The others compress better
//! than dictionary indices, which scramble the order of values. Reading them back is a copy.

pub(super) mod pages;
mod streams;
#[cfg(feature = "ome-zarr")]
mod table;

#[cfg(feature = "ome-zarr")]
pub(crate) use table::table_bytes;

use super::footer_checksum;
use crate::finished::Finished;
use crate::ome_arrow::Collector;
use crate::place::{self, Writer};
use crate::staged::{Existing, Staged};
use crate::{Compression, Error, ImageView, Result, StoreWriter, Tune, WriteOptions};
use pages::{PageWriter, Split};
use parquet::basic::{Compression as Codec, Encoding, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{DEFAULT_WRITE_BATCH_SIZE, EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::collections::HashMap;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use wellread_image::{PixelType, Shape, ome_arrow};

/// Bytes of pixels that are collected before they become a record batch.
const BATCH_BYTES: usize = 4 << 20;
/// Values that a page has at least where images are tiny: a page's header and its place in the index take 60 bytes.
const PAGE_VALUES: usize = 128;
/// Images that are collected at most.
const BATCH_ROWS: usize = 1024;

/// Writes images to an OME-Arrow column of a Parquet file.
pub struct ParquetWriter {
    /// Dropped before `staged`, which removes the file.
    writer: Option<PageWriter<BufWriter<Writer>>>,
    file: Option<Writer>,
    staged: Staged,
    options: WriteOptions,
    codec: Codec,
    collector: Collector,
    /// Rows and bytes of pixels in the row group that is being written, those pending included.
    group_rows: usize,
    group_bytes: usize,
    /// Pixels of the smallest image so far.
    smallest: usize,
}

/// The part of a file that ends with the images that were collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// A record batch.
    Batch,
    /// A record batch and the row group that it is in.
    RowGroup,
}

/// Size of a row group: it is closed when either is reached.
struct GroupLimit {
    rows: usize,
    bytes: usize,
}

impl ParquetWriter {
    /// Creates the file beside its place; it appears under its name when finished.
    ///
    /// # Errors
    /// The target exists or cannot be created; options that Parquet or OME-Arrow cannot follow.
    pub fn create(path: &Path, options: &WriteOptions) -> Result<Self> {
        if let Some(variant) = options.variant.as_deref().filter(|v| *v != "typed") {
            return Err(Error::new(
                path,
                format_args!("there is no variant {variant:?} of OME-Arrow Parquet"),
            )
            .choice()
            .hint("the one that is written is \"typed\""));
        }
        if options.shard.is_some() {
            return Err(Error::new(path, "Parquet files have no shards")
                .choice()
                .hint("leave the shard size out"));
        }
        let collector = Collector::new(path, options, ome_arrow::list_type)?;
        let codec = codec(path, options)?;
        let staged = Staged::new(path, Existing::from_overwrite(options.overwrite))?;
        let file = place::create(staged.path()).map_err(|e| Error::io(path, "cannot create", &e))?;
        Ok(Self {
            writer: None,
            file: Some(file),
            staged,
            options: options.clone(),
            codec,
            collector,
            group_rows: 0,
            group_bytes: 0,
            smallest: usize::MAX,
        })
    }

    fn limit(&self) -> GroupLimit {
        let (rows, mib) = match self.options.tune {
            Tune::Random => (4096, 8),
            Tune::Scan => (1 << 20, 64),
            Tune::Size => (1 << 20, 128),
            Tune::Reference => (1 << 20, 256),
        };
        GroupLimit { rows, bytes: mib << 20 }
    }

    /// Refuses an image whose pixels are more than a page may have: no image lies in two. The library would say so when all of it
    /// is encoded.
    fn check_page(&self, shape: Shape) -> Result<()> {
        let stored = if self.collector.list() == PixelType::F64 { 8 } else { 4 };
        let fits = i32::try_from(shape.pixels().saturating_mul(stored)).is_ok();
        // A dictionary may make few bytes of them.
        if fits || self.options.tune == Tune::Reference {
            return Ok(());
        }
        let cause = format_args!(
            "an image of {shape} is too large for Parquet: its pixels are one page, which has 2 GiB at most"
        );
        Err(Error::new(self.staged.target(), cause)
            .row(self.collector.rows())
            .hint("choose a format that divides images, such as ome-zarr or tiff"))
    }

    /// The column of pixels and the level at which it is compressed stream by stream, if it is.
    fn split(&self) -> Option<(ColumnPath, ZstdLevel)> {
        match self.codec {
            Codec::ZSTD(level) if self.options.tune != Tune::Reference => Some((pixels_column(), level)),
            _ => None,
        }
    }

    fn properties(&self) -> WriterProperties {
        let pixels = pixels_column();
        let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
        let version = env!("CARGO_PKG_VERSION");
        let library = parquet::file::properties::DEFAULT_CREATED_BY;
        let mut metadata = vec![
            pair(ome_arrow::FILE_TYPE_KEY, ome_arrow::TYPE),
            pair(ome_arrow::FILE_VERSION_KEY, ome_arrow::VERSION),
            pair(ome_arrow::FILE_WRITER_KEY, version),
        ];
        metadata.extend(
            self.options.checksums.then(|| pair(footer_checksum::FOOTER_KEY, footer_checksum::NO_SUM)),
        );
        let mut properties = WriterProperties::builder()
            .set_created_by(format!("wellread version {version} ({library})"))
            .set_key_value_metadata(Some(metadata))
            .set_compression(self.codec)
            .set_max_row_group_row_count(None)
            // Bounds of single pages would say nothing about pixels.
            .set_column_statistics_enabled(pixels.clone(), EnabledStatistics::Chunk);
        if self.options.tune != Tune::Reference {
            properties = properties
                .set_column_dictionary_enabled(pixels.clone(), false)
                .set_column_encoding(pixels.clone(), Encoding::BYTE_STREAM_SPLIT);
        }
        if self.split().is_some() {
            // The page writer does that.
            properties = properties.set_column_compression(pixels.clone(), Codec::UNCOMPRESSED);
        }
        if self.options.tune == Tune::Random {
            // A page ends where a run of values that is written at once does: no run may have two images.
            properties = properties
                .set_column_data_page_row_count_limit(pixels, 1)
                .set_write_batch_size(self.smallest.clamp(PAGE_VALUES, DEFAULT_WRITE_BATCH_SIZE));
        }
        properties.build()
    }

    fn error(&self, error: &ParquetError) -> Error {
        write_error(self.staged.target(), error)
    }

    /// Makes a record batch of what is pending and writes it; closes the row group too where that ends.
    fn flush(&mut self, ends: Ends) -> Result<()> {
        if self.writer.is_none()
            && let Some(file) = self.file.take()
        {
            // Its marks stand in the file's own metadata; Arrow's schema need not repeat them.
            let schema = self.collector.schema().as_ref().clone().with_metadata(HashMap::new());
            let out = BufWriter::with_capacity(1 << 20, file);
            let checksums = self.options.checksums;
            let writer = self
                .split()
                .map(|(column, level)| Split::new(column, level))
                .transpose()
                .and_then(|split| {
                    PageWriter::new(out, &Arc::new(schema), self.properties(), checksums, split)
                })
                .map_err(|e| self.error(&e))?;
            self.writer = Some(writer);
        }
        let batch = self.collector.take()?;
        let Some(writer) = self.writer.as_mut() else {
            return Err(Error::new(self.staged.target(), "an earlier image could not be written"));
        };
        let mut result = batch.map_or(Ok(()), |batch| writer.write(&batch));
        if ends == Ends::RowGroup {
            result = result.and_then(|()| writer.flush());
            (self.group_rows, self.group_bytes) = (0, 0);
        }
        result.map_err(|e| {
            // A half-written file must not be continued.
            self.writer = None;
            self.error(&e)
        })
    }
}

/// The column of the published struct that holds pixels.
fn pixels_column() -> ColumnPath {
    [ome_arrow::COLUMN, "chunks", "list", "element", "pixels", "list", "element"]
        .map(str::to_owned)
        .to_vec()
        .into()
}

/// The library's error of a write that failed. An error of the disk keeps its hint.
pub fn write_error(target: &Path, error: &ParquetError) -> Error {
    if let ParquetError::External(source) = error
        && let Some(io) = source.downcast_ref::<std::io::Error>()
    {
        return Error::io(target, "cannot write", io);
    }
    Error::new(target, format_args!("cannot write: {error}"))
}

/// The codec that is meant.
pub(super) fn codec(path: &Path, options: &WriteOptions) -> Result<Codec> {
    let invalid = |e: ParquetError| Error::new(path, e);
    let zstd = |level: i32| Ok(Codec::ZSTD(ZstdLevel::try_new(level.max(1)).map_err(invalid)?));
    match options.compression {
        Compression::Default if options.tune == Tune::Size => zstd(15),
        Compression::Default => zstd(Compression::ZSTD_LEVEL),
        Compression::Zstd(level) => zstd(level),
        Compression::None => Ok(Codec::UNCOMPRESSED),
        Compression::Lz4 => Ok(Codec::LZ4_RAW),
        Compression::Snappy => Ok(Codec::SNAPPY),
        Compression::Deflate(level) => {
            Ok(Codec::GZIP(GzipLevel::try_new(level.unsigned_abs()).map_err(invalid)?))
        }
        other @ (Compression::Lzw | Compression::PackBits) => {
            Err(Error::new(path, format_args!("Parquet has no compression {other}"))
                .choice()
                .hint("it has none, snappy, lz4, zstd[:LEVEL] and deflate[:LEVEL]"))
        }
    }
}

impl StoreWriter for ParquetWriter {
    fn write(&mut self, image: &ImageView<'_>) -> Result<()> {
        let bytes = self.collector.check(image)?;
        self.check_page(image.shape)?;
        let limit = self.limit();
        if self.group_bytes > 0 && self.group_bytes + bytes > limit.bytes {
            self.flush(Ends::RowGroup)?;
        } else if !self.collector.has_room(image.shape) {
            self.flush(Ends::Batch)?;
        }
        self.smallest = self.smallest.min(image.shape.pixels());
        self.collector.push(image);
        self.group_rows += 1;
        self.group_bytes += bytes;
        if self.group_rows >= limit.rows || self.group_bytes >= limit.bytes {
            self.flush(Ends::RowGroup)
        } else if self.collector.pending() >= BATCH_ROWS || self.collector.bytes() >= BATCH_BYTES {
            self.flush(Ends::Batch)
        } else {
            Ok(())
        }
    }

    fn complete_output(mut self: Box<Self>) -> Result<Finished> {
        self.flush(Ends::RowGroup)?;
        let Some(mut writer) = self.writer.take() else {
            return Err(Error::new(self.staged.target(), "an earlier image could not be written"));
        };
        writer.finish().map_err(|e| self.error(&e))?;
        drop(writer);
        if self.options.checksums {
            footer_checksum::put(self.staged.path())
                .map_err(|e| Error::io(self.staged.target(), "cannot write the footer's checksum", &e))?;
        }
        Ok(self.staged.finished())
    }
}
