//! Pages of chunks of a few KiB, each with its levels and values.
//!
//! ```text
//!  sizes of chunks, repetition index ─▶ ChunkIndex: where each chunk, value and row starts
//!  rows ─▶ the chunks that hold them, read at once ─▶ levels: which values ─▶ unpacked, or looked up in the dictionary
//! ```

use super::ahead::Extent;
use super::buffers::{DecodeBuffers, LeafWidths, fetched};
use super::chunk::{ALIGNMENT, Parts};
use super::claims::block_decompressor;
use super::input::Input;
use super::levels::{LevelCodec, Starts, Wanted, mark_absent, null_level};
use super::values::{Dictionary, ValueCodec};
use arrow_buffer::MutableBuffer;
use lance_encoding::compression::BlockDecompressor;
use lance_encoding::format::metadata::{CompressiveEncoding, MiniBlockLayout};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// Bytes of an index in a dictionary.
const INDEX_SIZE: usize = 4;

/// A page of chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Number of rows.
    rows: usize,
    /// Number of values.
    pub count: usize,
    values: ValueCodec,
    levels: Option<LevelCodec>,
    /// Definition levels, where rows may be null, and the level of those.
    defined: Option<LevelCodec>,
    pub null: u16,
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
pub(super) struct ChunkIndex {
    /// In bytes of the page's data.
    bytes: Vec<u32>,
    /// In values.
    values: Vec<u32>,
    /// In rows: the first row that starts in the chunk or after it.
    rows: Vec<u32>,
    /// Whether the chunk starts in the middle of a row.
    continues_row: Vec<bool>,
    dictionary: Option<Dictionary>,
}

impl ChunkIndex {
    fn new(chunks: &Chunks, input: &Input, size: usize, reused: &mut DecodeBuffers) -> Result<Self, Fault> {
        let dictionary = match &chunks.dictionary {
            Some((extent, codec, count)) => {
                let raw = fetched(input, *extent, &reused.ahead, &mut reused.raw)?;
                Some(Dictionary::new(codec.as_ref(), raw, *count, size)?)
            }
            None => None,
        };
        let wide = if chunks.large { 4 } else { 2 };
        let count = chunks.sizes.1 as usize / wide;
        let raw = fetched(input, chunks.sizes, &reused.ahead, &mut reused.raw)?;
        let mut bytes = vec![0u32];
        let mut values = vec![0u32];
        let (mut end, mut seen) = (0u64, 0u64);
        for (i, word) in raw.chunks_exact(wide).enumerate() {
            let word = little_endian(word);
            end += ((word >> 4) + 1) * ALIGNMENT as u64;
            // The last chunk has what is left.
            seen = if i + 1 == count { chunks.count as u64 } else { seen + (1 << (word & 15)) };
            if end > chunks.data.1 || seen > chunks.count as u64 {
                return Err(Irregular("chunks larger than their page"));
            }
            bytes.push(end as u32);
            values.push(seen as u32);
        }
        if end != chunks.data.1 || count == 0 {
            return Err(Irregular("chunks that do not fill their page"));
        }
        let Some((extent, stored)) = chunks.repetition else {
            let continues_row = vec![false; count];
            return if chunks.count == chunks.rows {
                Ok(Self { bytes, rows: values.clone(), values, continues_row, dictionary })
            } else {
                Err(Irregular("values do not fit the rows"))
            };
        };
        // For each chunk: rows that end in it, values of the one that goes on, and as much for inner lists.
        let stride = (stored + 1) * 8;
        let raw = fetched(input, extent, &reused.ahead, &mut reused.raw)?;
        if raw.len() != count * stride {
            return Err(Irregular("a repetition index of another size"));
        }
        let mut rows = vec![0u32];
        let mut continues_row = vec![false];
        let mut started = 0u64;
        for entry in raw.chunks_exact(stride) {
            let word = |i: usize| little_endian(&entry[i * 8..(i + 1) * 8]);
            let (ended, left) = (word(0), word(1) > 0);
            let before = u64::from(continues_row.last() == Some(&true));
            // A row that goes on through the whole chunk is neither started nor ended by it.
            let total = ended.checked_add(u64::from(left)).and_then(|n| n.checked_sub(before));
            started = total.and_then(|n| n.checked_add(started)).unwrap_or(u64::MAX);
            if started > chunks.rows as u64 {
                return Err(Irregular("more rows than the page has"));
            }
            rows.push(started as u32);
            continues_row.push(left);
        }
        if started == chunks.rows as u64 {
            Ok(Self { bytes, values, rows, continues_row, dictionary })
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
        while last && self.continues_row.get(end) == Some(&true) && end + 1 < self.bytes.len() {
            last = self.rows[end] == self.rows[end + 1];
            end += 1;
        }
        first..end
    }
}

impl Chunks {
    /// A page of values of `size` bytes below `depth` lists; `None` for one of another kind.
    pub fn new(
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
                let count = u32::try_from(layout.num_dictionary_items).ok()? as usize;
                Some((*extents.get(2)?, block_decompressor(encoding)?, count))
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
        let count = u32::try_from(layout.num_items).ok()? as usize;
        Some(Self {
            rows,
            count,
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
        })
    }

    /// Whether values are compressed into pieces that say how much memory they take.
    pub fn has_prefixes(&self) -> bool {
        self.values.has_prefixes()
    }

    /// Where the pieces lie that tell where its rows do, if they were not read yet.
    pub fn index_extents(&self) -> [Option<Extent>; 3] {
        if self.index.get().is_some() {
            return [None; 3];
        }
        let dictionary = self.dictionary.as_ref().map(|(extent, ..)| *extent);
        [Some(self.sizes), self.repetition.map(|(extent, _)| extent), dictionary]
    }

    /// Where its chunks lie, by pieces that are read at the first time.
    pub fn index(
        &self,
        input: &Input,
        size: usize,
        reused: &mut DecodeBuffers,
    ) -> Result<&ChunkIndex, Fault> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let made = ChunkIndex::new(self, input, size, reused)?;
        Ok(self.index.get_or_init(|| made))
    }

    /// Where the chunks of some rows of the page lie, once its index was read.
    pub fn extent_of(&self, rows: &Range<usize>) -> Option<Extent> {
        let index = self.index.get()?;
        Some(self.extent(index, &index.chunks(rows)))
    }

    /// Where some chunks lie in the file.
    fn extent(&self, index: &ChunkIndex, chunks: &Range<usize>) -> Extent {
        let first = index.bytes[chunks.start];
        (self.data.0 + u64::from(first), u64::from(index.bytes[chunks.end] - first))
    }

    /// Appends the values of some rows of the page, and where lists start.
    pub fn read(
        &self,
        input: &Input,
        rows: &Range<usize>,
        widths: LeafWidths,
        reused: &mut DecodeBuffers,
        out: &mut MutableBuffer,
        starts: &mut Starts,
    ) -> Result<(), Fault> {
        let index = self.index(input, widths.size, reused)?;
        let chunks = index.chunks(rows);
        let first = index.bytes[chunks.start];
        let (offset, length) = self.extent(index, &chunks);
        let raw = fetched(input, (offset, length), &reused.ahead, &mut reused.raw)?;
        let mut wanted =
            Wanted { skip: rows.start - index.rows[chunks.start] as usize, rows: rows.len(), seen: 0 };
        out.reserve((index.values[chunks.end] - index.values[chunks.start]) as usize * widths.width);
        for chunk in chunks {
            let data = &raw[(index.bytes[chunk] - first) as usize..(index.bytes[chunk + 1] - first) as usize];
            let values = index.values[chunk] as usize..index.values[chunk + 1] as usize;
            let levels = usize::from(self.levels.is_some()) + usize::from(self.defined.is_some());
            let mut parts = Parts::new(data, levels, self.buffers, self.large)?;
            let range = if let Some(codec) = &self.levels {
                reused.runs.clear();
                if let Some(defined) = &self.defined {
                    codec.decode_chunk(parts.next()?, parts.levels, &mut reused.runs)?;
                    reused.defined.clear();
                    defined.decode_chunk(parts.next()?, parts.levels, &mut reused.defined)?;
                    let marked = &mut reused.marked;
                    if mark_absent(&mut reused.runs, &reused.defined, self.null, marked)? != values.len() {
                        return Err(Irregular("more or fewer levels than values"));
                    }
                } else {
                    codec.decode(parts.next()?, Some(values.len()), &mut reused.runs)?;
                }
                wanted.take(&reused.runs, widths.depth, out.len() / widths.width, starts)?
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
                self.values.decode(buffers, values.len(), size, range, &mut reused.decompressed, out)?;
                continue;
            };
            let indices = &mut reused.indices;
            indices.clear();
            let size = (INDEX_SIZE, INDEX_SIZE);
            self.values.decode(buffers, values.len(), size, range, &mut reused.decompressed, indices)?;
            dictionary.look_up(indices.typed_data(), widths.size, widths.width, out)?;
        }
        if wanted.seen == rows.len() { Ok(()) } else { Err(Irregular("rows are missing")) }
    }
}
