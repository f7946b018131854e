//! How files are laid out: how many images lie together, and how their pixels are compressed.
//!
//! | laid out for | pixels that lie together | compressor |
//! |---|---|---|
//! | random reads | 1 MiB, or one image | the library's adaptive one |
//! | scans | 4 MiB | the same |
//! | size | 1 MiB | its compact mode (Pco) |
//! | reference | 8,192 images, as the library does by itself | its adaptive one |
//!
//! 1 MiB is what the library itself aims at for columns of fixed width. Less does not help, as arrays are cut without
//! being decompressed. Readers in Python fetch random rows from 256 KiB more slowly, having more chunks to open. All
//! other columns are laid out as the library does by itself, in blocks of 8,192 rows.

use std::path::Path;
use std::sync::Arc;
use vortex::array::arrays::listview::list_from_list_view;
use vortex::array::arrays::struct_::StructArrayExt;
use vortex::array::arrays::{ListArray, PrimitiveArray, StructArray};
use vortex::array::{ArrayRef, Canonical, ExecutionCtx, IntoArray};
use vortex::compressor::{BtrBlocksCompressor, BtrBlocksCompressorBuilder};
use vortex::dtype::{DType, Field, FieldPath};
use vortex::encodings::zstd::{Zstd, ZstdData};
use vortex::error::VortexResult;
use vortex::file::WriteStrategyBuilder;
use vortex::layout::LayoutStrategy;
use vortex::layout::layouts::chunked::writer::ChunkedLayoutStrategy;
use vortex::layout::layouts::compressed::{CompressingStrategy, CompressorPlugin};
use vortex::layout::layouts::flat::writer::FlatLayoutStrategy;
use vortex::session::VortexSession;
use vortex_btrblocks::SchemeExt;
use vortex_btrblocks::schemes::integer::IntDictScheme;
use wellread_image::ome_arrow::field;
use wellread_store::{Compression, Error, Result, Tune};

/// Rows of a block by the library's defaults.
const REFERENCE_ROWS: usize = 8192;
/// Bytes that such a block may have: the library holds it in memory and cannot write one of 4 GiB.
const REFERENCE_BYTES: usize = 1 << 30;
/// Values that are compressed together by Zstandard.
const FRAME: usize = 1 << 15;

/// How pixels are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// As the library chooses.
    Adaptive,
    None,
    Zstd(i32),
}

impl Codec {
    /// The strategy for this compression, where there is one.
    pub fn of(target: &Path, compression: Compression) -> Result<Self> {
        match compression {
            Compression::Default => Ok(Self::Adaptive),
            Compression::None => Ok(Self::None),
            Compression::Zstd(level) => Ok(Self::Zstd(level)),
            other => Err(Error::new(target, format_args!("Vortex has no compression {other}"))
                .choice()
                .hint("it has default (adaptive), none, zstd[:LEVEL]")),
        }
    }
}

/// The layout of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub codec: Codec,
    pub tune: Tune,
    pub jobs: usize,
}

impl Plan {
    /// Images that lie together, where one has `bytes`; `None` where the library's own blocks are kept.
    pub fn rows_together(self, bytes: usize) -> Option<usize> {
        let target: usize = match self.tune {
            Tune::Random | Tune::Size => 1 << 20,
            Tune::Scan => 4 << 20,
            Tune::Reference => return None,
        };
        Some((target / bytes.max(1)).max(1))
    }

    /// The library's strategy for a table of type `dtype` whose rows have about `bytes`.
    pub fn strategy(self, session: &VortexSession, dtype: &DType, bytes: usize) -> Arc<dyn LayoutStrategy> {
        let mut builder = BtrBlocksCompressorBuilder::from_session(session);
        if self.tune == Tune::Size {
            builder = builder.with_compact();
        }
        // Like the library by itself, but for size: looking pixels up in a dictionary takes longer than reading them.
        let slow = if self.tune == Tune::Size { vec![] } else { vec![IntDictScheme.id()] };
        let adaptive = builder.clone().exclude_schemes(slow).build();
        let pixels = Pixels { codec: self.codec, adaptive };
        let mut strategy = WriteStrategyBuilder::from_session(session);
        strategy = match self.codec {
            Codec::None => strategy.with_compressor(pixels.clone()),
            Codec::Adaptive | Codec::Zstd(_) => strategy.with_btrblocks_builder(builder),
        };
        let block = REFERENCE_ROWS.min(REFERENCE_BYTES / bytes.max(1)).max(1);
        strategy = strategy.with_row_block_size(block);
        if self.tune == Tune::Reference && !matches!(self.codec, Codec::Zstd(_)) {
            return strategy.build();
        }
        for column in image_columns(dtype) {
            let chunks = ChunkedLayoutStrategy::new(FlatLayoutStrategy::default());
            let writer = CompressingStrategy::new(chunks, pixels.clone())
                .with_concurrency(self.jobs.max(1))
                .with_stats(&[]);
            strategy = strategy.with_field_writer(column, Arc::new(writer));
        }
        // Their number of rows is that of the arrays that are written, other columns have the library's.
        strategy.with_row_block_size(REFERENCE_ROWS).build()
    }
}

/// Paths of the lists of chunks in a table.
fn image_columns(dtype: &DType) -> Vec<FieldPath> {
    let Some(columns) = dtype.as_struct_fields_opt() else { return vec![] };
    let named = columns.names().iter().zip(columns.fields());
    let images = named.filter(|(_, column)| {
        column.as_struct_fields_opt().is_some_and(|c| c.names().iter().any(|n| n.as_ref() == field::CHUNKS))
    });
    images.map(|(name, _)| FieldPath::from_name(name.clone()).push(Field::from(field::CHUNKS))).collect()
}

/// Compresses lists of pixels and all that is beside them.
#[derive(Clone)]
struct Pixels {
    codec: Codec,
    adaptive: BtrBlocksCompressor,
}

impl CompressorPlugin for Pixels {
    fn compress_chunk(&self, chunk: &ArrayRef, ctx: &mut ExecutionCtx) -> VortexResult<ArrayRef> {
        match self.codec {
            Codec::Adaptive => self.adaptive.compress(chunk, ctx),
            Codec::None | Codec::Zstd(_) => self.below(chunk.clone(), ctx),
        }
    }
}

impl Pixels {
    /// Goes down lists and structs to the values.
    fn below(&self, array: ArrayRef, ctx: &mut ExecutionCtx) -> VortexResult<ArrayRef> {
        Ok(match array.execute::<Canonical>(ctx)? {
            Canonical::List(view) => {
                let list = list_from_list_view(view, ctx)?.into_data_parts();
                let offsets = match self.codec {
                    Codec::None => list.offsets,
                    _ => self.adaptive.compress(&list.offsets, ctx)?,
                };
                ListArray::try_new(self.below(list.elements, ctx)?, offsets, list.validity, ctx)?.into_array()
            }
            Canonical::Struct(array) => {
                let len = array.as_ref().len();
                let names = array.names().clone();
                let parts = array.into_data_parts();
                let fields =
                    parts.fields.into_iter().map(|f| self.below(f, ctx)).collect::<VortexResult<Vec<_>>>()?;
                StructArray::try_new(names, fields, len, parts.validity)?.into_array()
            }
            Canonical::Primitive(values) => self.values(values, ctx)?,
            other if self.codec == Codec::None => other.into_array(),
            other => self.adaptive.compress(&other.into_array(), ctx)?,
        })
    }

    fn values(&self, values: PrimitiveArray, ctx: &mut ExecutionCtx) -> VortexResult<ArrayRef> {
        match self.codec {
            Codec::None => Ok(values.into_array()),
            Codec::Zstd(level) if values.as_ref().len() * values.ptype().byte_width() > 4096 => {
                let validity = values.as_ref().validity()?;
                let data = ZstdData::from_primitive_without_dict(&values, level, FRAME, ctx)?;
                Ok(Zstd::try_new(values.as_ref().dtype().clone(), data, validity)?.into_array())
            }
            _ => self.adaptive.compress(&values.into_array(), ctx),
        }
    }
}
