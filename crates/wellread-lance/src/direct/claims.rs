//! Sizes that compressed pieces claim, looked at before Lance decodes their pages.
//!
//! ```text
//!  pages that hold the rows ──▶ each piece of zstd or LZ4: prefix, frame ──believable──▶ Lance
//!                                                                       └─▶ an error: the file is damaged
//! ```
//!
//! A piece begins with the number of bytes it becomes. Lance asks for so much memory, and the process ends where there
//! is not so much. So pages are followed here as Lance follows them, and a page that cannot be followed is an error.

use super::ahead::Extent;
use super::chunk::{ALIGNMENT, Parts};
use super::general::{General, WRONG_SIZE, has_plausible_size};
use super::input::Input;
use lance_core::Error as LanceError;
use lance_encoding::buffer::LanceBuffer;
use lance_encoding::compression::{BlockDecompressor, DecompressionStrategy, DefaultDecompressionStrategy};
use lance_encoding::data::DataBlock;
use lance_encoding::decoder::{ColumnInfo, PageEncoding, PageInfo};
use lance_encoding::format::EncodingUtils;
use lance_encoding::format::metadata::compressive_encoding::Compression;
use lance_encoding::format::metadata::full_zip_layout::Details;
use lance_encoding::format::metadata::page_layout::Layout;
use lance_encoding::format::metadata::{
    BufferCompression, CompressionScheme, CompressiveEncoding, ConstantLayout, FullZipLayout,
    MiniBlockLayout, PageLayout, RepDefLayer,
};
use lance_encoding::format::pb;
use lance_encoding::format::pb::array_encoding::ArrayEncoding as Array;
use lance_encoding::format::pb::buffer::BufferType;
use lance_encoding::format::pb::nullable::Nullability;
use lance_encoding::format::pb23::value_plane::Codec;
use lance_encoding::format::pb23::zipped_values::Addressing;
use lance_encoding::format::pb23::{PlanarLayout, ZippedValues};
use lance_encoding::repdef::{ControlWordParser, max_visible_level};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

const NO_BUFFER: Fault = Irregular("a page without its buffers");
const ELSEWHERE: Fault = Irregular("rows that begin elsewhere than their index says");
const SHORT: Fault = Irregular("values longer than their page");

/// Which pages of a data file were looked at, by column.
#[derive(Debug)]
pub(crate) struct CheckedPages(Box<[Box<[AtomicBool]>]>);

impl CheckedPages {
    /// The pages of a file with these columns, of which none was looked at.
    pub fn new(columns: &[Arc<ColumnInfo>]) -> Self {
        let pages =
            |column: &Arc<ColumnInfo>| column.page_infos.iter().map(|_| AtomicBool::new(false)).collect();
        Self(columns.iter().map(pages).collect())
    }

    /// Looks at the pages of a column that hold some of the `positions`, which ascend, of a fragment of `rows` rows.
    ///
    /// # Errors
    /// A piece that cannot become as many bytes as it claims, and a page that cannot be followed.
    pub fn check(
        &self,
        input: &Input,
        column: &ColumnInfo,
        number: usize,
        positions: &[u32],
        rows: usize,
    ) -> Result<(), Fault> {
        let known = self.0.get(number).ok_or(NO_BUFFER)?;
        let pages = column.page_infos.iter();
        // Pages of the oldest files count items of lists, and those of damaged ones whatever they like.
        let sum = pages.clone().try_fold(0, |sum: u64, page| sum.checked_add(page.num_rows));
        let is_by_row = sum == Some(rows as u64) && pages.clone().all(|page| page.encoding.is_structural());
        let mut start = 0;
        for (page, known) in pages.zip(known.iter()) {
            let end = if is_by_row { start + page.num_rows } else { u64::MAX };
            let first = positions.partition_point(|&row| u64::from(row) < start);
            let is_wanted = !is_by_row
                || is_decoded_ahead(page)
                || positions.get(first).is_some_and(|&row| u64::from(row) < end);
            start = end;
            if is_wanted && !known.load(Ordering::Relaxed) {
                check_page(input, column, page)?;
                known.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// The values of a page: how they are laid out, how many buffers of the page stand before theirs, and how many rows they are.
struct Values<'p> {
    layout: Cow<'p, PageLayout>,
    before: usize,
    rows: u64,
}

impl<'p> Values<'p> {
    /// `None` for a page of the file format 2.0, for one without values, and for one that Lance refuses.
    fn of(page: &'p PageInfo) -> Option<Self> {
        let (layout, rows) = match &page.encoding {
            PageEncoding::Structural(layout) => (Cow::Borrowed(layout), page.num_rows),
            PageEncoding::Planar(layout) if layout.sparse().is_none() => {
                (Cow::Owned(layout.dense_execution_layout().ok()?), page.num_rows)
            }
            PageEncoding::Planar(layout) => return Self::without_levels(layout),
            PageEncoding::Legacy(_) => return None,
        };
        Some(Self { layout, before: 0, rows })
    }

    /// Those of a page of the file format 2.3 that says apart from them which rows have values. Lance lays out the same.
    fn without_levels(page: &PlanarLayout) -> Option<Self> {
        let zipped = |values: &ZippedValues| -> Option<Layout> {
            let details = match values.addressing.as_ref()? {
                Addressing::BitsPerValue(bits) => Details::BitsPerValue(*bits),
                Addressing::BitsPerOffset(bits) => Details::BitsPerOffset(*bits),
            };
            Some(Layout::FullZipLayout(FullZipLayout {
                details: Some(details),
                value_compression: values.compression.clone(),
                layers: vec![RepDefLayer::RepdefAllValidItem as i32],
                ..FullZipLayout::default()
            }))
        };
        let (layout, before, rows) = match page.values.as_ref()?.codec.as_ref()? {
            Codec::Chunked(chunks) => {
                let layout = MiniBlockLayout {
                    value_compression: chunks.compression.clone(),
                    dictionary: chunks.dictionary.clone(),
                    num_buffers: chunks.num_buffers,
                    has_large_chunk: true,
                    ..MiniBlockLayout::default()
                };
                (Layout::MiniBlockLayout(layout), 0, 0)
            }
            Codec::Zipped(values) => (zipped(values)?, 0, values.num_items),
            // Behind one of numbers of items, whose decoder is told how many bytes it must get.
            Codec::Indexed(values) => {
                let items = values.items.as_ref()?;
                (zipped(items)?, 1, items.num_items)
            }
            Codec::Constant(_) | Codec::None(_) => return None,
        };
        Some(Self { layout: Cow::Owned(PageLayout { layout: Some(layout) }), before, rows })
    }
}

/// Whether Lance decodes compressed parts of a page when it opens the column, whichever rows it then reads.
fn is_decoded_ahead(page: &PageInfo) -> bool {
    let Some(values) = Values::of(page) else { return true };
    match &values.layout.layout {
        Some(Layout::MiniBlockLayout(chunks)) => !matches!(general(chunks.dictionary.as_ref()), Ok(None)),
        Some(Layout::FullZipLayout(_)) => false,
        _ => true,
    }
}

fn check_page(input: &Input, column: &ColumnInfo, page: &PageInfo) -> Result<(), Fault> {
    let extents = &page.buffer_offsets_and_sizes;
    if let PageEncoding::Legacy(array) = &page.encoding {
        return check_array(input, array, extents, &column.buffer_offsets_and_sizes);
    }
    let Some(values) = Values::of(page) else { return Ok(()) };
    let extents = extents.get(values.before..).ok_or(NO_BUFFER)?;
    check_layout(input, &values.layout, extents, values.rows)
}

fn check_layout(input: &Input, layout: &PageLayout, extents: &[Extent], rows: u64) -> Result<(), Fault> {
    match &layout.layout {
        Some(Layout::MiniBlockLayout(chunks)) => check_chunks(input, chunks, extents),
        Some(Layout::FullZipLayout(zipped)) => check_zipped(input, zipped, extents, rows),
        Some(Layout::ConstantLayout(constant)) => check_levels(input, constant, extents),
        Some(Layout::BlobLayout(blobs)) => {
            blobs.inner_layout.as_deref().map_or(Ok(()), |inner| check_layout(input, inner, extents, rows))
        }
        None => Ok(()),
    }
}

/// The general compression that an encoding begins with.
fn general(encoding: Option<&CompressiveEncoding>) -> Result<Option<General>, Fault> {
    match encoding.and_then(|encoding| encoding.compression.as_ref()) {
        Some(Compression::General(general)) => {
            if matches!(self::general(general.values.as_deref()), Ok(None)) {
                Ok(Some(match general.compression.as_ref().map(BufferCompression::scheme) {
                    Some(CompressionScheme::CompressionAlgorithmLz4) => General::Lz4,
                    _ => General::Zstd,
                }))
            } else {
                Err(Irregular("a compression within a compression"))
            }
        }
        Some(Compression::VariablePackedStruct(fields)) => {
            if fields.fields.iter().all(|field| matches!(general(field.value.as_ref()), Ok(None))) {
                Ok(None)
            } else {
                Err(Irregular("a compression within packed structs"))
            }
        }
        _ => Ok(None),
    }
}

fn check_declared_size(piece: &[u8], kind: Option<General>) -> Result<(), Fault> {
    if kind.is_none_or(|kind| has_plausible_size(piece, kind)) { Ok(()) } else { Err(WRONG_SIZE) }
}

/// A buffer that is one piece.
fn check_whole(input: &Input, extent: Option<&Extent>, kind: Option<General>) -> Result<(), Fault> {
    if kind.is_none() {
        return Ok(());
    }
    let &(at, length) = extent.ok_or(NO_BUFFER)?;
    check_declared_size(input.read(at, length, &mut vec![])?, kind)
}

fn check_levels(input: &Input, layout: &ConstantLayout, extents: &[Extent]) -> Result<(), Fault> {
    check_whole(input, extents.first(), general(layout.rep_compression.as_ref())?)?;
    check_whole(input, extents.get(1), general(layout.def_compression.as_ref())?)
}

fn check_chunks(input: &Input, layout: &MiniBlockLayout, extents: &[Extent]) -> Result<(), Fault> {
    check_whole(input, extents.get(2), general(layout.dictionary.as_ref())?)?;
    let levels = [&layout.rep_compression, &layout.def_compression].into_iter().flatten();
    let levels = levels.map(|codec| general(Some(codec))).collect::<Result<Vec<_>, _>>()?;
    let values = general(layout.value_compression.as_ref())?;
    if values.is_none() && levels.iter().all(Option::is_none) {
        return Ok(());
    }
    let [sizes, data, ..] = extents else { return Err(NO_BUFFER) };
    // Chunks of more than a few are not followed.
    let buffers = layout.num_buffers.min(64) as usize;
    let (mut sizes_room, mut data_room) = (vec![], vec![]);
    let sizes = input.read(sizes.0, sizes.1, &mut sizes_room)?;
    let mut left = input.read(data.0, data.1, &mut data_room)?;
    for word in sizes.chunks_exact(if layout.has_large_chunk { 4 } else { 2 }) {
        let length = ((little_endian(word) >> 4) as usize + 1) * ALIGNMENT;
        let (chunk, rest) =
            left.split_at_checked(length).ok_or(Irregular("chunks larger than their page"))?;
        left = rest;
        // Only the first buffer of values is compressed.
        let mut parts = Parts::new(chunk, levels.len(), buffers, layout.has_large_chunk)?;
        for kind in levels.iter().copied().chain((buffers > 0).then_some(values)) {
            check_declared_size(parts.next()?, kind)?;
        }
    }
    Ok(())
}

/// Values one after the other, each behind its levels and its length; an index says where rows begin.
fn check_zipped(input: &Input, layout: &FullZipLayout, extents: &[Extent], rows: u64) -> Result<(), Fault> {
    let (Some(kind), Some(Details::BitsPerOffset(bits))) =
        (general(layout.value_compression.as_ref())?, &layout.details)
    else {
        return Ok(());
    };
    let [data, index, ..] = extents else { return Err(NO_BUFFER) };
    let wide = match *bits {
        32 => 4,
        64 => 8,
        _ => return Err(Irregular("lengths of an odd size")),
    };
    let (Ok(repeated @ 0..=16), Ok(defined @ 0..=16)) =
        (u8::try_from(layout.bits_rep), u8::try_from(layout.bits_def))
    else {
        return Err(Irregular("levels of an odd size"));
    };
    let words = ControlWordParser::new(repeated, defined);
    let layers: Vec<_> =
        layout.layers.iter().map(|&layer| EncodingUtils::repdef_layer_to_def_interp(layer)).collect();
    let most_repeated = layers.iter().filter(|layer| layer.is_list()).count() as u16;
    let visible = max_visible_level(&layers);
    let (mut data_room, mut index_room) = (vec![], vec![]);
    let data = input.read(data.0, data.1, &mut data_room)?;
    let index = input.read(index.0, index.1, &mut index_room)?;
    let entries = usize::try_from(rows).ok().and_then(|rows| rows.checked_add(1)).ok_or(NO_BUFFER)?;
    let entry = index.len() / entries;
    if !matches!(entry, 1 | 2 | 4 | 8) || index.len() != entry * entries {
        return Err(Irregular("an index of rows of another size"));
    }
    let mut starts = index.chunks_exact(entry).map(little_endian);
    let mut left = data;
    while !left.is_empty() {
        if left.len() < words.bytes_per_word() {
            return Err(SHORT);
        }
        let word = words.parse_desc(left, most_repeated, visible);
        if word.is_new_row && starts.next() != Some((data.len() - left.len()) as u64) {
            return Err(ELSEWHERE);
        }
        left = &left[words.bytes_per_word()..];
        if word.is_visible && word.is_valid_item {
            let (length, rest) = left.split_at_checked(wide).ok_or(SHORT)?;
            let length = usize::try_from(little_endian(length)).unwrap_or(usize::MAX);
            let (piece, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
            check_declared_size(piece, Some(kind))?;
            left = rest;
        }
    }
    if starts.next() == Some(data.len() as u64) && starts.next().is_none() { Ok(()) } else { Err(ELSEWHERE) }
}

/// A page of the file format 2.0: its values lie in buffers, each of which may be one piece.
fn check_array(
    input: &Input,
    array: &pb::ArrayEncoding,
    page: &[Extent],
    column: &[Extent],
) -> Result<(), Fault> {
    let inner: Vec<&pb::ArrayEncoding> = match &array.array_encoding {
        Some(Array::Flat(flat)) => {
            let kind = match flat.compression.as_ref().map(|compression| compression.scheme.as_str()) {
                Some("zstd") => General::Zstd,
                Some("lz4") => General::Lz4,
                _ => return Ok(()),
            };
            let buffer = flat.buffer.as_ref().ok_or(NO_BUFFER)?;
            let buffers = match BufferType::try_from(buffer.buffer_type) {
                Ok(BufferType::Page) => page,
                Ok(BufferType::Column) => column,
                _ => return Err(Irregular("compressed values outside of their column")),
            };
            return check_whole(input, buffers.get(buffer.buffer_index as usize), Some(kind));
        }
        Some(Array::Nullable(nullable)) => match &nullable.nullability {
            Some(Nullability::NoNulls(all)) => all.values.as_deref().into_iter().collect(),
            Some(Nullability::SomeNulls(some)) => {
                [some.validity.as_deref(), some.values.as_deref()].into_iter().flatten().collect()
            }
            _ => return Ok(()),
        },
        Some(Array::FixedSizeList(list)) => list.items.as_deref().into_iter().collect(),
        Some(Array::List(list)) => list.offsets.as_deref().into_iter().collect(),
        Some(Array::Binary(text)) => {
            [text.indices.as_deref(), text.bytes.as_deref()].into_iter().flatten().collect()
        }
        Some(Array::Dictionary(dictionary)) => {
            [dictionary.indices.as_deref(), dictionary.items.as_deref()].into_iter().flatten().collect()
        }
        Some(Array::Fsst(text)) => text.binary.as_deref().into_iter().collect(),
        Some(Array::FixedSizeBinary(text)) => text.bytes.as_deref().into_iter().collect(),
        Some(Array::PackedStruct(packed)) => packed.inner.iter().collect(),
        _ => return Ok(()),
    };
    inner.into_iter().try_for_each(|array| check_array(input, array, page, column))
}

/// Lance's decoder of a block, for one that is compressed behind a look at the size it claims. `None` for an encoding that
/// Lance refuses, and for one whose claims cannot be looked at.
pub(super) fn block_decompressor(encoding: &CompressiveEncoding) -> Option<Arc<dyn BlockDecompressor>> {
    let kind = general(Some(encoding)).ok()?;
    let codec = DefaultDecompressionStrategy::default().create_block_decompressor(encoding).ok()?;
    Some(match kind {
        Some(kind) => Arc::new(CheckedDecompressor { kind, codec }),
        None => Arc::from(codec),
    })
}

#[derive(Debug)]
struct CheckedDecompressor {
    kind: General,
    codec: Box<dyn BlockDecompressor>,
}

impl BlockDecompressor for CheckedDecompressor {
    fn decompress(&self, data: Option<LanceBuffer>, num_values: u64) -> lance_core::Result<DataBlock> {
        if data.as_ref().is_some_and(|piece| !has_plausible_size(piece, self.kind)) {
            return Err(LanceError::invalid_input(
                "a compressed block that says it is larger than it can be",
            ));
        }
        self.codec.decompress(data, num_values)
    }

    fn requires_payload(&self) -> bool {
        self.codec.requires_payload()
    }

    fn infer_num_values(&self, data: &LanceBuffer) -> lance_core::Result<Option<u64>> {
        if has_plausible_size(data, self.kind) { self.codec.infer_num_values(data) } else { Ok(None) }
    }
}
