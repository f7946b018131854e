//! Row groups whose pages carry checksums, which the `parquet` crate itself does not write.
//!
//! ```text
//!  record batch ─▶ the crate's column writers ─▶ pages in memory ─▶ CRC-32 into each page's header ─▶ row group
//!                  those of split pixels                │             sizes and offsets follow
//!                  do not compress                      └─▶ [`streams`] compresses those
//!  last row group ─▶ footer ─▶ its own CRC-32 into its metadata: [`super::super::footer_checksum`]
//! ```
//!
//! The crate passes on each page as it is made ([`PageStore`]), as its header and its bytes. It takes a column chunk
//! that is already encoded, together with its description. In between is where checksums are put in.
//!
//! A page's CRC is of its bytes behind the header, as the format says.

use super::super::thrift::{Encoding, PageHeader, PageKind, of_bytes};
use super::streams::{StreamCompressor, bytes_of_levels};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::{Buf, Bytes};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriterOptions, PageKey, PageStore, PageStoreArgs,
    PageStoreFactory, compute_leaves,
};
use parquet::basic::{Compression, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescriptor, ColumnPath};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes record batches as [`ArrowWriter`] does, pages with checksums.
pub(in crate::parquet) struct PageWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// The columns of the row group that is being written.
    columns: Vec<ArrowColumnWriter>,
    chunks: Arc<Chunks>,
    checksums: bool,
    split: Option<Split>,
}

/// A column of pixels in byte streams, which is compressed here ([`super::streams`]): the crate's writer leaves it as it is.
pub(in crate::parquet) struct Split {
    column: ColumnPath,
    codec: Compression,
    compressor: StreamCompressor,
}

impl Split {
    /// Has the pages of `column`, which are encoded as `BYTE_STREAM_SPLIT`, compressed at this level of Zstandard.
    ///
    /// # Errors
    /// As [`StreamCompressor::new`].
    pub fn new(column: ColumnPath, level: ZstdLevel) -> Result<Self> {
        let compressor = StreamCompressor::new(level.compression_level())?;
        Ok(Self { column, codec: Compression::ZSTD(level), compressor })
    }
}

impl<W: Write + Send> PageWriter<W> {
    /// Begins a file of batches of `schema`. `properties` leave the column of `split` without compression.
    ///
    /// # Errors
    /// A schema that Parquet has no place for.
    pub fn new(
        out: W,
        schema: &SchemaRef,
        properties: WriterProperties,
        checksums: bool,
        split: Option<Split>,
    ) -> Result<Self> {
        let chunks = Arc::new(Chunks::default());
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_page_store_factory(Arc::clone(&chunks) as Arc<dyn PageStoreFactory>);
        let writer = ArrowWriter::try_new_with_options(out, Arc::clone(schema), options)?;
        let (file, factory) = writer.into_serialized_writer()?;
        Ok(Self { file, factory, schema: Arc::clone(schema), columns: vec![], chunks, checksums, split })
    }

    /// Adds rows to the row group that is being written.
    ///
    /// # Errors
    /// A batch of another schema, or the library's error.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            self.chunks.lock().clear();
            self.columns = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        }
        let mut columns = self.columns.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                columns
                    .next()
                    .ok_or_else(|| unexpected("there are more columns than the schema has"))?
                    .write(&leaf)?;
            }
        }
        Ok(())
    }

    /// Closes the row group that is being written, if there is one.
    ///
    /// # Errors
    /// The error of the library or the disk.
    pub fn flush(&mut self) -> Result<()> {
        let columns = std::mem::take(&mut self.columns);
        if columns.is_empty() {
            return Ok(());
        }
        let chunks = std::mem::take(&mut *self.chunks.lock());
        let mut group = self.file.next_row_group()?;
        for (column, chunk) in columns.into_iter().zip(chunks) {
            let closed = column.close()?.close().clone();
            let pages = std::mem::take(&mut *chunk.lock().unwrap_or_else(PoisonError::into_inner));
            let split = self.split.as_mut().filter(|split| split.column == *closed.metadata.column_path());
            let (pages, closed) = finished(pages, closed, self.checksums, split)?;
            group.append_column(&pages, closed)?;
        }
        group.close().map(drop)
    }

    /// Closes the last row group and writes the footer.
    ///
    /// # Errors
    /// The error of the library or the disk.
    pub fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.file.finish().map(drop)
    }
}

fn unexpected(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

/// Pages of a column chunk as they come: header, bytes, header, bytes …
type Chunk = Arc<Mutex<Vec<Bytes>>>;

/// The column chunks of a row group, in order.
#[derive(Debug, Default)]
struct Chunks(Mutex<Vec<Chunk>>);

impl Chunks {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Chunk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageStoreFactory for Chunks {
    fn create(&self, _: &PageStoreArgs<'_>) -> Result<Box<dyn PageStore>> {
        let chunk = Chunk::default();
        self.lock().push(Arc::clone(&chunk));
        Ok(Box::new(Store(chunk)))
    }
}

struct Store(Chunk);

impl PageStore for Store {
    fn put(&mut self, value: Bytes) -> Result<PageKey> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.push(value);
        Ok(PageKey::new(pages.len() as u64 - 1))
    }

    fn take(&mut self, _: PageKey) -> Result<Bytes> {
        Err(unexpected("pages are not taken from here"))
    }
}

/// A column chunk in the order of the file, for the library to copy.
struct Encoded(Vec<Bytes>);

impl Length for Encoded {
    fn len(&self) -> u64 {
        self.0.iter().map(|piece| piece.len() as u64).sum()
    }
}

impl ChunkReader for Encoded {
    type T = Pieces;

    /// All of it: the library asks for nothing else of a chunk that is appended.
    fn get_read(&self, start: u64) -> Result<Pieces> {
        if start != 0 {
            return Err(unexpected("a column chunk is copied from its start"));
        }
        Ok(Pieces(self.0.clone().into_iter(), Bytes::new()))
    }

    fn get_bytes(&self, _: u64, _: usize) -> Result<Bytes> {
        Err(unexpected("a column chunk is copied as a whole"))
    }
}

/// Reads pieces one after the other.
struct Pieces(std::vec::IntoIter<Bytes>, Bytes);

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.1.is_empty() {
            match self.0.next() {
                Some(piece) => self.1 = piece,
                None => return Ok(0),
            }
        }
        let n = out.len().min(self.1.len());
        self.1.copy_to_slice(&mut out[..n]);
        Ok(n)
    }
}

/// Puts the dictionary in front and, if asked for, compresses and puts checksums into headers; the description of the
/// chunk follows.
fn finished(
    pieces: Vec<Bytes>,
    mut closed: ColumnCloseResult,
    checksums: bool,
    mut split: Option<&mut Split>,
) -> Result<(Encoded, ColumnCloseResult)> {
    let mut dictionary = vec![];
    let mut data = vec![];
    let mut sizes = vec![];
    let mut grown = 0;
    let mut pieces = pieces.into_iter();
    while let (Some(header), Some(mut bytes)) = (pieces.next(), pieces.next()) {
        let parsed =
            PageHeader::parse(&header).map_err(|_| unexpected("a page's header cannot be parsed"))?;
        if let Some(split) = &mut split {
            bytes = compressed(&parsed, &bytes, closed.metadata.column_descr(), split)?;
        }
        let size = i32::try_from(bytes.len()).map_err(|_| unexpected("a page exceeds 2 GiB"))?;
        let new = of_bytes(&header, size, checksums.then(|| libdeflater::crc32(&bytes)))
            .map(Bytes::from)
            .ok_or_else(|| unexpected("a page's header has another form than expected"))?;
        grown += new.len() as i64 - header.len() as i64;
        if parsed.kind == PageKind::Dictionary {
            dictionary = vec![new, bytes];
        } else {
            sizes.push(new.len() + bytes.len());
            data.extend([new, bytes]);
        }
    }
    let first = dictionary.iter().map(|piece| piece.len() as i64).sum::<i64>();
    let total = first + sizes.iter().map(|&size| size as i64).sum::<i64>();
    if let Some(index) = &mut closed.offset_index {
        if index.page_locations.len() != sizes.len() {
            return Err(unexpected("the offset index has another number of pages than the column"));
        }
        let mut at = first;
        for (location, &size) in index.page_locations.iter_mut().zip(&sizes) {
            location.offset = at;
            location.compressed_page_size =
                i32::try_from(size).map_err(|_| unexpected("a page exceeds 2 GiB"))?;
            at += size as i64;
        }
    }
    let uncompressed = closed.metadata.uncompressed_size() + grown;
    let codec = split.map_or(closed.metadata.compression(), |split| split.codec);
    closed.metadata = closed
        .metadata
        .into_builder()
        .set_compression(codec)
        .set_dictionary_page_offset((!dictionary.is_empty()).then_some(0))
        .set_data_page_offset(first)
        .set_total_compressed_size(total)
        .set_total_uncompressed_size(uncompressed)
        .build()?;
    closed.bytes_written = total as u64;
    dictionary.extend(data);
    Ok((Encoded(dictionary), closed))
}

/// A page of pixels in byte streams, compressed.
fn compressed(
    header: &PageHeader,
    page: &[u8],
    column: &ColumnDescriptor,
    split: &mut Split,
) -> Result<Bytes> {
    if !matches!(header.kind, PageKind::V1 { .. }) || header.encoding != Encoding::ByteStreamSplit {
        return Err(unexpected("a page of pixels has another form than expected"));
    }
    let levels = [column.max_rep_level(), column.max_def_level()];
    let levels = bytes_of_levels(page, levels.into_iter().filter(|&most| most > 0).count())
        .ok_or_else(|| unexpected("a page is shorter than its levels"))?;
    let streams = match column.physical_type() {
        Physical::INT64 | Physical::DOUBLE => 8,
        _ => 4,
    };
    if !(page.len() - levels).is_multiple_of(streams) {
        return Err(unexpected("the byte streams of a page differ in length"));
    }
    split.compressor.compress(page, levels, streams).map(Bytes::from)
}
