//! Pages of a leaf column: which part of the file holds which rows, and the values and lists of some of them.
//!
//! The two layouts of Lance's file format 2.1 and 2.2 that numbers are stored in, of rows that may be null as a whole
//! ([specification](https://lance.org/format/file/encoding/)):
//!
//! * *constant*: one value, and all repetition levels in one piece;
//! * *mini-blocks*: chunks of a few KiB, each with its levels and values, or indices of values in a dictionary of the
//!   page. Beside them, a word for each chunk tells its size and number of values, and the repetition index how many
//!   rows end in it and whether one goes on in the next.
//!
//! Long because both layouts are read through the same room, levels and cuts of rows.

use super::ahead::Ahead;
use super::chunk::{ALIGNMENT, Parts};
use super::general::Decompressed;
use super::input::Input;
use super::levels::{ABSENT, LevelCodec, Run, Starts, Wanted, add, mark_absent};
use super::values::{Dictionary, ValueCodec};
use arrow_buffer::MutableBuffer;
use lance_encoding::compression::{BlockDecompressor, DecompressionStrategy, DefaultDecompressionStrategy};
use lance_encoding::decoder::{PageEncoding, PageInfo};
use lance_encoding::format::metadata::page_layout::Layout;
use lance_encoding::format::metadata::{CompressiveEncoding, ConstantLayout, MiniBlockLayout, RepDefLayer};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{little_endian, trim};

/// Bytes of an index in a dictionary.
const INDEX_SIZE: usize = 4;

/// Position and length of a buffer in the file.
type Extent = (u64, u64);

/// A page whose values can be read here.
#[derive(Debug)]
pub(super) struct Page {
    /// Number of rows.
    pub rows: usize,
    /// Number of values.
    pub values: usize,
    /// Definition level of rows that are null, where there are such.
    null: u16,
    layout: PageLayout,
}

#[derive(Debug)]
enum PageLayout {
    Constant { value: Box<[u8]>, lists: ConstantLists },
    Chunks(Chunks),
}

/// How many of its one value the rows of a constant page have.
#[derive(Debug)]
enum ConstantLists {
    /// One; the page is below no list.
    None,
    /// One in each list: there are as many levels as rows, and none is null. They need not be read.
    OneEach,
    /// As many as repetition levels say, and definition levels where rows may be null.
    Levels { repeated: Stored, defined: Option<Stored>, index: OnceLock<ConstantIndex> },
}

/// Levels in a piece of their own.
#[derive(Debug)]
struct Stored {
    extent: Extent,
    /// `None` for levels as they are.
    codec: Option<LevelCodec>,
    count: usize,
}

impl Stored {
    /// `None` for a codec that is not known.
    fn new(extent: Extent, encoding: Option<&CompressiveEncoding>, count: u64) -> Option<Self> {
        let count = if encoding.is_some() { count } else { extent.1 / 2 };
        let codec = match encoding {
            Some(encoding) => Some(LevelCodec::new(encoding)?),
            None => None,
        };
        Some(Self { extent, codec, count: u32::try_from(count).ok()? as usize })
    }

    /// Replaces `out` by their runs.
    fn runs(
        &self,
        input: &Input,
        ahead: &Ahead,
        raw: &mut Vec<u64>,
        out: &mut Vec<Run>,
    ) -> Result<(), Fault> {
        let raw = fetched(input, self.extent, ahead, raw)?;
        out.clear();
        match &self.codec {
            None => raw.as_chunks::<2>().0.iter().try_for_each(|l| add(out, 0, u16::from_le_bytes(*l), 1)),
            Some(codec) => codec.decode(raw, Some(self.count), out),
        }
    }
}

/// All levels of a constant page, as runs, and the value that each row starts at.
#[derive(Debug)]
struct ConstantIndex {
    levels: Vec<u16>,
    rows: Vec<u32>,
}

#[derive(Debug)]
struct Chunks {
    values: ValueCodec,
    levels: Option<LevelCodec>,
    /// Definition levels, where rows may be null, and the level of those.
    defined: Option<LevelCodec>,
    null: u16,
    /// Buffers of values in each chunk.
    buffers: usize,
    /// Whether sizes of buffers have four bytes instead of two.
    large: bool,
    sizes: Extent,
    data: Extent,
    repetition: Option<(Extent, usize)>,
    dictionary: Option<(Extent, Arc<dyn BlockDecompressor>, usize)>,
    index: OnceLock<ChunkIndex>,
}

/// Where each chunk starts; one entry more than there are chunks.
#[derive(Debug)]
struct ChunkIndex {
    /// In bytes of the page's data.
    bytes: Vec<u32>,
    /// In values.
    values: Vec<u32>,
    /// In rows: the first row that starts in the chunk or after it.
    rows: Vec<u32>,
    /// Whether the chunk starts in the middle of a row.
    goes_on: Vec<bool>,
    dictionary: Option<Dictionary>,
}

/// Memory that is used again from page to page.
#[derive(Debug, Default)]
pub(super) struct Room {
    raw: Vec<u64>,
    /// Chunks that were fetched before they are read.
    pub ahead: Ahead,
    runs: Vec<Run>,
    defined: Vec<Run>,
    marked: Vec<Run>,
    indices: MutableBuffer,
    decompressed: Decompressed,
}

impl Room {
    /// Gives memory back that is more than is worth keeping.
    pub fn trim(&mut self) {
        self.ahead.clear();
        trim(self.raw.len() * 8, &mut self.raw);
        trim(self.indices.capacity(), &mut self.indices);
        trim(self.decompressed.capacity(), &mut self.decompressed);
    }
}

/// Bytes of the file: those that were fetched before, or else read into `raw`.
fn fetched<'a>(
    input: &Input,
    extent: Extent,
    ahead: &'a Ahead,
    raw: &'a mut Vec<u64>,
) -> Result<&'a [u8], Fault> {
    match ahead.get(input, extent) {
        Some(bytes) => Ok(bytes),
        None => input.read(extent.0, extent.1, raw),
    }
}

/// Bytes of a leaf's values, stored and delivered, and how deep they lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeafWidths {
    /// Bytes of a value as it is stored.
    pub size: usize,
    /// Bytes of a value as it is delivered.
    pub width: usize,
    /// Lists around it.
    pub depth: usize,
}

impl Page {
    /// Whether values are compressed into pieces that say how much memory they take.
    pub fn has_prefixes(&self) -> bool {
        matches!(&self.layout, PageLayout::Chunks(chunks) if chunks.values.has_prefixes())
    }

    /// Whether rows may be null.
    pub fn has_nulls(&self) -> bool {
        self.null > 0
    }

    /// A page of values of `size` bytes below `depth` lists; `None` for one of another kind: with nulls that are no whole
    /// rows, text.
    pub fn new(info: &PageInfo, size: usize, depth: usize) -> Option<Self> {
        let PageEncoding::Structural(layout) = &info.encoding else { return None };
        let rows = u32::try_from(info.num_rows).ok()? as usize;
        let extents = &info.buffer_offsets_and_sizes;
        match layout.layout.as_ref()? {
            Layout::ConstantLayout(constant) => Self::constant(constant, extents, rows, size, depth),
            Layout::MiniBlockLayout(chunks) => Self::chunks(chunks, extents, rows, size, depth),
            _ => None,
        }
    }

    fn constant(
        layout: &ConstantLayout,
        extents: &[Extent],
        rows: usize,
        size: usize,
        depth: usize,
    ) -> Option<Self> {
        let value = layout.inline_value.as_ref().filter(|v| v.len() == size)?;
        let null = null_level(&layout.layers, depth)?;
        let defined = match extents.get(1).filter(|e| e.1 > 0) {
            Some(&extent) => {
                Some(Stored::new(extent, layout.def_compression.as_ref(), layout.num_def_values)?)
            }
            None => None,
        };
        if defined.is_some() != (null > 0) {
            return None;
        }
        let mut values = rows;
        let lists = if depth == 0 {
            ConstantLists::None
        } else {
            let extent = *extents.first()?;
            let repeated = Stored::new(extent, layout.rep_compression.as_ref(), layout.num_rep_values)?;
            values = repeated.count;
            match defined {
                None if values == rows => ConstantLists::OneEach,
                defined => ConstantLists::Levels { repeated, defined, index: OnceLock::new() },
            }
        };
        let layout = PageLayout::Constant { value: value.as_ref().into(), lists };
        Some(Self { rows, values, null, layout })
    }

    fn chunks(
        layout: &MiniBlockLayout,
        extents: &[Extent],
        rows: usize,
        size: usize,
        depth: usize,
    ) -> Option<Self> {
        let null = null_level(&layout.layers, depth)?;
        if layout.def_compression.is_some() != (null > 0) || layout.rep_compression.is_some() != (depth > 0) {
            return None;
        }
        let codec = |of: &Option<CompressiveEncoding>| match of {
            // A codec that is there and not known makes the page unknown.
            Some(encoding) => LevelCodec::new(encoding).map(Some),
            None => Some(None),
        };
        let levels = codec(&layout.rep_compression)?;
        let defined = codec(&layout.def_compression)?;
        let dictionary = match &layout.dictionary {
            Some(encoding) => {
                let codec =
                    DefaultDecompressionStrategy::default().create_block_decompressor(encoding).ok()?;
                let count = u32::try_from(layout.num_dictionary_items).ok()? as usize;
                Some((*extents.get(2)?, Arc::from(codec), count))
            }
            None => None,
        };
        let (sizes, data, repetition) = match (extents, layout.repetition_index_depth as usize) {
            ([sizes, data, ..], 0) if depth == 0 => (*sizes, *data, None),
            ([sizes, data, .., last], stored) if extents.len() > 2 && depth > 0 && stored > 0 => {
                (*sizes, *data, Some((*last, stored)))
            }
            _ => return None,
        };
        if data.1 > u64::from(u32::MAX) {
            return None;
        }
        let values = u32::try_from(layout.num_items).ok()? as usize;
        let chunks = Chunks {
            values: ValueCodec::new(
                layout.value_compression.as_ref()?,
                if dictionary.is_some() { INDEX_SIZE } else { size },
            )?,
            levels,
            defined,
            null,
            buffers: usize::try_from(layout.num_buffers).ok()?,
            large: layout.has_large_chunk,
            sizes,
            data,
            repetition,
            dictionary,
            index: OnceLock::new(),
        };
        Some(Self { rows, values, null, layout: PageLayout::Chunks(chunks) })
    }

    /// Where the pieces lie that tell where its rows do, if they were not read yet.
    pub fn index_extents(&self) -> impl Iterator<Item = Extent> {
        let extents = match &self.layout {
            PageLayout::Chunks(chunks) if chunks.index.get().is_none() => {
                let dictionary = chunks.dictionary.as_ref().map(|(extent, ..)| *extent);
                [Some(chunks.sizes), chunks.repetition.map(|(extent, _)| extent), dictionary]
            }
            PageLayout::Constant { lists: ConstantLists::Levels { repeated, defined, index }, .. }
                if index.get().is_none() =>
            {
                [Some(repeated.extent), defined.as_ref().map(|defined| defined.extent), None]
            }
            _ => [None; 3],
        };
        extents.into_iter().flatten()
    }

    /// Reads the pieces that tell where its rows lie, if they were not read yet.
    pub fn learn(&self, input: &Input, size: usize, depth: usize, room: &mut Room) -> Result<(), Fault> {
        match &self.layout {
            PageLayout::Chunks(chunks) => self.chunk_index(chunks, input, size, room).map(|_| ()),
            PageLayout::Constant { lists: ConstantLists::Levels { repeated, defined, index }, .. } => {
                let levels = (repeated, defined.as_ref());
                self.constant_index(index, input, levels, depth, room).map(|_| ())
            }
            PageLayout::Constant { .. } => Ok(()),
        }
    }

    fn chunk_index<'a>(
        &self,
        chunks: &'a Chunks,
        input: &Input,
        size: usize,
        room: &mut Room,
    ) -> Result<&'a ChunkIndex, Fault> {
        if let Some(index) = chunks.index.get() {
            return Ok(index);
        }
        let made = ChunkIndex::new(self, chunks, input, size, room)?;
        Ok(chunks.index.get_or_init(|| made))
    }

    fn constant_index<'a>(
        &self,
        index: &'a OnceLock<ConstantIndex>,
        input: &Input,
        levels: (&Stored, Option<&Stored>),
        depth: usize,
        room: &mut Room,
    ) -> Result<&'a ConstantIndex, Fault> {
        if let Some(index) = index.get() {
            return Ok(index);
        }
        let made = ConstantIndex::new(self, input, levels, depth, room)?;
        Ok(index.get_or_init(|| made))
    }

    /// Where the chunks of some rows lie, once the page was read from: what [`Self::read`] reads then.
    pub fn extent(&self, rows: &Range<usize>) -> Option<Extent> {
        let PageLayout::Chunks(chunks) = &self.layout else { return None };
        let index = chunks.index.get().filter(|_| rows.start < rows.end && rows.end <= self.rows)?;
        Some(chunks.extent(index, &index.chunks(rows)))
    }

    /// Appends the values of some rows of the page, and where lists start.
    pub fn read(
        &self,
        input: &Input,
        rows: Range<usize>,
        widths: LeafWidths,
        room: &mut Room,
        out: &mut MutableBuffer,
        starts: &mut Starts,
    ) -> Result<(), Fault> {
        if rows.end > self.rows || rows.start >= rows.end {
            return Err(Irregular("rows outside of a page"));
        }
        match &self.layout {
            PageLayout::Constant { value, lists } => {
                let (value, cut) = value.split_at(widths.width);
                if cut.iter().any(|&byte| byte > 0) {
                    return Err(Fault::TooNarrow);
                }
                let there = match lists {
                    ConstantLists::None => rows.len(),
                    ConstantLists::OneEach => {
                        room.runs.clear();
                        room.runs.push((widths.depth as u16, rows.len()));
                        rows.len()
                    }
                    ConstantLists::Levels { repeated, defined, index } => {
                        let levels = (repeated, defined.as_ref());
                        let index = self.constant_index(index, input, levels, widths.depth, room)?;
                        let items = index.rows[rows.start] as usize..index.rows[rows.end] as usize;
                        room.runs.clear();
                        room.runs.extend(index.levels[items.clone()].iter().map(|&level| (level, 1)));
                        index.levels[items].iter().filter(|&level| level & ABSENT == 0).count()
                    }
                };
                if !matches!(lists, ConstantLists::None) {
                    let mut wanted = Wanted { skip: 0, rows: rows.len(), seen: 0 };
                    wanted.take(&room.runs, widths.depth, out.len() / widths.width, starts)?;
                }
                value.len().checked_mul(there).ok_or(Irregular("more values than memory"))?;
                out.repeat_slice_n_times(value, there);
                Ok(())
            }
            PageLayout::Chunks(chunks) => {
                let index = self.chunk_index(chunks, input, widths.size, room)?;
                chunks.read(index, input, rows, widths, room, out, starts)
            }
        }
    }
}

/// The definition level of rows below `depth` lists that are null as a whole, 0 where none is, by the layers from the
/// values outwards: nulls are of the outermost struct, and of the outermost list, which Lance makes null with it. `None`
/// where anything else may be null or empty.
pub(super) fn null_level(layers: &[i32], depth: usize) -> Option<u16> {
    use RepDefLayer::{
        RepdefAllValidItem as Item, RepdefAllValidList as List, RepdefNullableItem as NullItem,
        RepdefNullableList as NullList,
    };
    let layers = layers.iter().map(|&layer| RepDefLayer::try_from(layer).ok()).collect::<Option<Vec<_>>>()?;
    let (inner, level) = match layers.as_slice() {
        [inner @ .., NullList, NullItem] => (inner, 2),
        [inner @ .., List, NullItem] => (inner, 1),
        all => (all, 0),
    };
    let lists = inner.iter().filter(|&&layer| layer == List).count() + usize::from(level > 0);
    (lists == depth && inner.iter().all(|&layer| layer == List || layer == Item)).then_some(level)
}

impl ConstantIndex {
    fn new(
        page: &Page,
        input: &Input,
        (repeated, defined): (&Stored, Option<&Stored>),
        depth: usize,
        room: &mut Room,
    ) -> Result<Self, Fault> {
        repeated.runs(input, &room.ahead, &mut room.raw, &mut room.runs)?;
        if let Some(defined) = defined {
            defined.runs(input, &room.ahead, &mut room.raw, &mut room.defined)?;
            mark_absent(&mut room.runs, &room.defined, page.null, &mut room.marked)?;
        }
        let levels = room.runs.iter().flat_map(|&(level, n)| std::iter::repeat_n(level, n));
        let levels: Vec<u16> = levels.collect();
        let starts = levels.iter().enumerate().filter(|(_, l)| usize::from(**l & !ABSENT) == depth);
        let mut rows: Vec<u32> = starts.map(|(i, _)| i as u32).collect();
        if rows.len() != page.rows || rows.first() != Some(&0) || levels.len() != page.values {
            return Err(Irregular("levels do not fit the rows"));
        }
        rows.push(levels.len() as u32);
        Ok(Self { levels, rows })
    }
}

impl ChunkIndex {
    fn new(page: &Page, chunks: &Chunks, input: &Input, size: usize, room: &mut Room) -> Result<Self, Fault> {
        let dictionary = match &chunks.dictionary {
            Some((extent, codec, count)) => {
                let raw = fetched(input, *extent, &room.ahead, &mut room.raw)?;
                Some(Dictionary::new(codec.as_ref(), raw, *count, size)?)
            }
            None => None,
        };
        let wide = if chunks.large { 4 } else { 2 };
        let count = chunks.sizes.1 as usize / wide;
        let raw = fetched(input, chunks.sizes, &room.ahead, &mut room.raw)?;
        let mut bytes = vec![0u32];
        let mut values = vec![0u32];
        let (mut end, mut seen) = (0u64, 0u64);
        for (i, word) in raw.chunks_exact(wide).enumerate() {
            let word = little_endian(word);
            end += ((word >> 4) + 1) * ALIGNMENT as u64;
            // The last chunk has what is left.
            seen = if i + 1 == count { page.values as u64 } else { seen + (1 << (word & 15)) };
            if end > chunks.data.1 || seen > page.values as u64 {
                return Err(Irregular("chunks larger than their page"));
            }
            bytes.push(end as u32);
            values.push(seen as u32);
        }
        if end != chunks.data.1 || count == 0 {
            return Err(Irregular("chunks that do not fill their page"));
        }
        let Some((extent, stored)) = chunks.repetition else {
            let goes_on = vec![false; count];
            return if page.values == page.rows {
                Ok(Self { bytes, rows: values.clone(), values, goes_on, dictionary })
            } else {
                Err(Irregular("values do not fit the rows"))
            };
        };
        // For each chunk: rows that end in it, values of the one that goes on, and as much for inner lists.
        let stride = (stored + 1) * 8;
        let raw = fetched(input, extent, &room.ahead, &mut room.raw)?;
        if raw.len() != count * stride {
            return Err(Irregular("a repetition index of another size"));
        }
        let mut rows = vec![0u32];
        let mut goes_on = vec![false];
        let mut started = 0u64;
        for entry in raw.chunks_exact(stride) {
            let word = |i: usize| little_endian(&entry[i * 8..(i + 1) * 8]);
            let (ended, left) = (word(0), word(1) > 0);
            let before = u64::from(goes_on.last() == Some(&true));
            // A row that goes on through the whole chunk is neither started nor ended by it.
            let total = ended.checked_add(u64::from(left)).and_then(|n| n.checked_sub(before));
            started = total.and_then(|n| n.checked_add(started)).unwrap_or(u64::MAX);
            if started > page.rows as u64 {
                return Err(Irregular("more rows than the page has"));
            }
            rows.push(started as u32);
            goes_on.push(left);
        }
        if started == page.rows as u64 {
            Ok(Self { bytes, values, rows, goes_on, dictionary })
        } else {
            Err(Irregular("fewer rows than the page has"))
        }
    }

    /// The chunks that hold `rows`, of those in the page.
    fn chunks(&self, rows: &Range<usize>) -> Range<usize> {
        let of = |row: usize| self.rows.partition_point(|&start| start as usize <= row) - 1;
        let first = of(rows.start);
        let mut end = of(rows.end - 1) + 1;
        // Where no other row starts behind the last one, it may go on in the next chunk.
        let mut last = self.rows[end] as usize == rows.end;
        while last && self.goes_on.get(end) == Some(&true) && end + 1 < self.bytes.len() {
            last = self.rows[end] == self.rows[end + 1];
            end += 1;
        }
        first..end
    }
}

impl Chunks {
    /// Where some of them lie in the file.
    fn extent(&self, index: &ChunkIndex, chunks: &Range<usize>) -> Extent {
        let first = index.bytes[chunks.start];
        (self.data.0 + u64::from(first), u64::from(index.bytes[chunks.end] - first))
    }

    fn read(
        &self,
        index: &ChunkIndex,
        input: &Input,
        rows: Range<usize>,
        widths: LeafWidths,
        room: &mut Room,
        out: &mut MutableBuffer,
        starts: &mut Starts,
    ) -> Result<(), Fault> {
        let chunks = index.chunks(&rows);
        let first = index.bytes[chunks.start];
        let (offset, length) = self.extent(index, &chunks);
        let raw = fetched(input, (offset, length), &room.ahead, &mut room.raw)?;
        let mut wanted =
            Wanted { skip: rows.start - index.rows[chunks.start] as usize, rows: rows.len(), seen: 0 };
        out.reserve((index.values[chunks.end] - index.values[chunks.start]) as usize * widths.width);
        for chunk in chunks {
            let data = &raw[(index.bytes[chunk] - first) as usize..(index.bytes[chunk + 1] - first) as usize];
            let values = index.values[chunk] as usize..index.values[chunk + 1] as usize;
            let levels = usize::from(self.levels.is_some()) + usize::from(self.defined.is_some());
            let mut parts = Parts::new(data, levels, self.buffers, self.large)?;
            let range = if let Some(codec) = &self.levels {
                room.runs.clear();
                if let Some(defined) = &self.defined {
                    codec.decode_chunk(parts.next()?, parts.levels, &mut room.runs)?;
                    room.defined.clear();
                    defined.decode_chunk(parts.next()?, parts.levels, &mut room.defined)?;
                    let marked = &mut room.marked;
                    if mark_absent(&mut room.runs, &room.defined, self.null, marked)? != values.len() {
                        return Err(Irregular("more or fewer levels than values"));
                    }
                } else {
                    codec.decode(parts.next()?, Some(values.len()), &mut room.runs)?;
                }
                wanted.take(&room.runs, widths.depth, out.len() / widths.width, starts)?
            } else {
                let start = rows.start.max(values.start) - values.start;
                let end = rows.end.min(values.end) - values.start;
                wanted.seen += end - start;
                start..end
            };
            if range.is_empty() {
                continue;
            }
            let mut buffers = [&[][..]; 4];
            let buffers = buffers.get_mut(..self.buffers).ok_or(Irregular("many buffers"))?;
            for buffer in &mut *buffers {
                *buffer = parts.next()?;
            }
            let Some(dictionary) = &index.dictionary else {
                let size = (widths.size, widths.width);
                self.values.decode(buffers, values.len(), size, range, &mut room.decompressed, out)?;
                continue;
            };
            let indices = &mut room.indices;
            indices.clear();
            let size = (INDEX_SIZE, INDEX_SIZE);
            self.values.decode(buffers, values.len(), size, range, &mut room.decompressed, indices)?;
            dictionary.look_up(indices.typed_data(), widths.size, widths.width, out)?;
        }
        if wanted.seen == rows.len() { Ok(()) } else { Err(Irregular("rows are missing")) }
    }
}
