//! Repetition levels: where lists start.
//!
//! A leaf below `d` lists has one level for each of its values. It is `d` where a row starts, `k` where the list
//! that is `k`-th from the leaf starts (and all below it). It is 0 where the innermost list goes on. Pixels come in
//! the ten thousands per list, so levels are handled as runs: the cost is by lists, not by pixels.
//!
//! A row that is null has a level and no value. Definition levels, beside the others, tell which rows those are.

use super::claims::block_decompressor;
use super::packing::{PACK, packed};
use lance_bitpacking::BitPacking;
use lance_encoding::buffer::LanceBuffer;
use lance_encoding::compression::BlockDecompressor;
use lance_encoding::data::DataBlock;
use lance_encoding::format::metadata::compressive_encoding::Compression;
use lance_encoding::format::metadata::{CompressiveEncoding, RepDefLayer};
use std::ops::Range;
use std::sync::Arc;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// A level and how often it comes in a row.
pub(super) type Run = (u16, usize);

const UNCOUNTED: Fault = Irregular("levels without a number");

/// Set in the level of a row that is null.
pub(super) const ABSENT: u16 = 1 << 15;

/// How levels are stored.
#[derive(Debug)]
pub(super) enum LevelCodec {
    /// Run lengths of so many bytes.
    Runs(usize),
    /// One by one, as they are.
    Flat,
    /// One by one, packed to so many bits, 1,024 at a time; those left at the end may not be packed.
    Packed(usize),
    /// One by one, no more than 1,024 of them, packed to a number of bits that stands before them.
    PackedOnce,
    /// One by one, in an encoding that the engine undoes.
    Engine(Arc<dyn BlockDecompressor>),
}

impl LevelCodec {
    /// The codec of a page; `None` for one that the engine refuses.
    pub fn new(encoding: &CompressiveEncoding) -> Option<Self> {
        let flat = |of: Option<&CompressiveEncoding>| match of?.compression.as_ref()? {
            Compression::Flat(flat) if flat.data.is_none() => Some(flat.bits_per_value),
            _ => None,
        };
        if let Compression::Rle(rle) = encoding.compression.as_ref()?
            && flat(rle.values.as_deref()) == Some(16)
            && let Some(bits @ (8 | 16 | 32)) = flat(rle.run_lengths.as_deref())
        {
            return Some(Self::Runs(bits as usize / 8));
        }
        if flat(Some(encoding)) == Some(16) {
            return Some(Self::Flat);
        }
        if let Compression::OutOfLineBitpacking(packed) = encoding.compression.as_ref()?
            && packed.uncompressed_bits_per_value == 16
            && let Some(bits @ 0..=16) = flat(packed.values.as_deref())
        {
            return Some(Self::Packed(bits as usize));
        }
        if let Compression::InlineBitpacking(packed) = encoding.compression.as_ref()?
            && packed.values.is_none()
            && packed.uncompressed_bits_per_value == 16
        {
            return Some(Self::PackedOnce);
        }
        block_decompressor(encoding).map(Self::Engine)
    }

    /// Appends the runs of the levels in a chunk that says it has so many, modulo 65,536.
    pub fn decode_chunk(&self, data: &[u8], said: usize, out: &mut Vec<Run>) -> Result<(), Fault> {
        let first = out.len();
        let count = match self {
            Self::Runs(_) => None,
            Self::Flat | Self::Packed(_) | Self::PackedOnce | Self::Engine(_) => Some(said),
        };
        self.decode(data, count, out)?;
        let found: usize = out[first..].iter().map(|r| r.1).sum();
        if found & 0xffff == said & 0xffff {
            Ok(())
        } else {
            Err(Irregular("a chunk that has not the levels it says"))
        }
    }

    /// Appends the runs of the levels in `data`, of `count` where that is known; runs tell it themselves.
    pub fn decode(&self, data: &[u8], count: Option<usize>, out: &mut Vec<Run>) -> Result<(), Fault> {
        let first = out.len();
        match self {
            Self::Runs(size) => {
                // Length of the values in bytes, the values, the lengths.
                let (head, rest) = data.split_first_chunk::<8>().ok_or(Irregular("runs without a header"))?;
                let bytes = usize::try_from(u64::from_le_bytes(*head)).unwrap_or(usize::MAX);
                let (values, lengths) =
                    rest.split_at_checked(bytes).ok_or(Irregular("runs longer than their page"))?;
                let values = values.as_chunks::<2>().0;
                if lengths.len() != values.len() * size {
                    return Err(Irregular("runs without lengths"));
                }
                for (value, length) in values.iter().zip(lengths.chunks_exact(*size)) {
                    add(out, first, u16::from_le_bytes(*value), little_endian(length) as usize)?;
                }
            }
            Self::Flat => {
                let (levels, []) = data.as_chunks::<2>() else { return Err(Irregular("half a level")) };
                for level in levels {
                    add(out, first, u16::from_le_bytes(*level), 1)?;
                }
            }
            Self::Packed(bits) => {
                let count = count.ok_or(UNCOUNTED)?;
                let words: &[u16] =
                    bytemuck::try_cast_slice(data).map_err(|_| Irregular("packed levels not aligned"))?;
                let each = bits * PACK / 16;
                let mut left = words;
                for start in (0..count).step_by(PACK) {
                    let wanted = (count - start).min(PACK);
                    if wanted < PACK && left.len() == wanted {
                        left.iter().try_for_each(|&level| add(out, first, level, 1))?;
                        left = &[];
                        break;
                    }
                    let ends = Irregular("packed levels that end early");
                    let (now, rest) = left.split_at_checked(each).ok_or(ends)?;
                    unpack(*bits, now, wanted, first, out)?;
                    left = rest;
                }
                if !left.is_empty() {
                    return Err(Irregular("more packed levels than values"));
                }
            }
            Self::PackedOnce if count == Some(0) => {}
            Self::PackedOnce => {
                let count = count.ok_or(UNCOUNTED)?;
                let (bits, words) = packed(data, count)?;
                unpack(bits, words, count, first, out)?;
            }
            Self::Engine(codec) => {
                let count = count.ok_or(UNCOUNTED)?;
                let block = codec.decompress(Some(LanceBuffer::copy_slice(data)), count as u64);
                let Ok(DataBlock::FixedWidth(block)) = block else { return Err(Irregular("levels")) };
                if block.bits_per_value != 16 || block.data.len() != count * 2 {
                    return Err(Irregular("levels of another size"));
                }
                for level in block.data.as_chunks::<2>().0 {
                    add(out, first, u16::from_le_bytes(*level), 1)?;
                }
            }
        }
        if count.is_none_or(|count| out[first..].iter().map(|r| r.1).sum::<usize>() == count) {
            Ok(())
        } else {
            Err(Irregular("more or fewer levels than values"))
        }
    }
}

/// Appends the first `wanted` of 1,024 levels that are packed to `bits`.
fn unpack(bits: usize, words: &[u16], wanted: usize, first: usize, out: &mut Vec<Run>) -> Result<(), Fault> {
    if bits > 16 || words.len() * 16 != bits * PACK || wanted > PACK {
        return Err(Irregular("packed levels that do not fill their chunk"));
    }
    let mut room = [0u16; PACK];
    // SAFETY: the lengths are as the packing asks for.
    unsafe { u16::unchecked_unpack(bits, words, &mut room) };
    room[..wanted].iter().try_for_each(|&level| add(out, first, level, 1))
}

/// Appends a run, as a part of the one before it where the level is the same.
pub(super) fn add(out: &mut Vec<Run>, first: usize, level: u16, length: usize) -> Result<(), Fault> {
    if level >= ABSENT {
        return Err(Irregular("a level above any number of lists"));
    }
    match out[first..].last_mut() {
        Some(last) if last.0 == level => last.1 += length,
        _ => out.push((level, length)),
    }
    Ok(())
}

/// Marks the rows of `runs` that are null, which `defined`, definition levels, say by `null`. The number of values. `marked`
/// is room for the new runs.
pub(super) fn mark_absent(
    runs: &mut Vec<Run>,
    defined: &[Run],
    null: u16,
    marked: &mut Vec<Run>,
) -> Result<usize, Fault> {
    let mut defined = defined.iter().copied();
    let (mut absent, mut left, mut values) = (0, 0, 0);
    marked.clear();
    for &(level, mut length) in runs.iter() {
        while length > 0 {
            while left == 0 {
                (absent, left) = defined.next().ok_or(Irregular("fewer definition levels than others"))?;
            }
            let both = length.min(left);
            (length, left) = (length - both, left - both);
            if absent == 0 {
                values += both;
                marked.push((level, both));
            } else if absent == null {
                marked.push((level | ABSENT, both));
            } else {
                // Something is null that is no whole row.
                return Err(Fault::Unknown);
            }
        }
    }
    if left > 0 || defined.any(|run| run.1 > 0) {
        return Err(Irregular("more definition levels than others"));
    }
    std::mem::swap(runs, marked);
    Ok(values)
}

/// Where lists start, from the innermost outwards: indices of their first elements.
#[derive(Debug, Default)]
pub(super) struct Starts(pub Vec<Vec<i64>>);

impl Starts {
    /// Nothing yet, for a leaf below `depth` lists.
    pub fn reset(&mut self, depth: usize) {
        self.0.resize_with(depth, Vec::new);
        self.0.iter_mut().for_each(Vec::clear);
    }

    /// Lists of the `level` innermost kinds start at value number `value`.
    fn push(&mut self, level: usize, value: usize) {
        for k in (1..level).rev() {
            let below = self.0[k - 1].len() as i64;
            self.0[k].push(below);
        }
        if let Some(innermost) = self.0.first_mut() {
            innermost.push(value as i64);
        }
    }

    /// A row without elements, before value number `value`.
    fn push_null(&mut self, value: usize) {
        match self.0.as_mut_slice() {
            [] => {}
            [only] => only.push(value as i64),
            [.., below, outermost] => outermost.push(below.len() as i64),
        }
    }
}

/// Rows that are wanted of a stretch of chunks.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Rows that start before them in the first chunk.
    pub skip: usize,
    /// How many are wanted.
    pub rows: usize,
    /// How many have started.
    pub seen: usize,
}

impl Wanted {
    /// Goes through the levels of the next chunk: notes the lists that start in it and tells which of its values are
    /// wanted. `base` values were taken before.
    pub fn take(
        &mut self,
        runs: &[Run],
        depth: usize,
        base: usize,
        starts: &mut Starts,
    ) -> Result<Range<usize>, Fault> {
        let mut from = (self.seen > 0).then_some(0);
        let mut position = 0;
        for &(level, length) in runs {
            let is_null = level & ABSENT != 0;
            let level = usize::from(level & !ABSENT);
            if level > depth || (is_null && level < depth) {
                return Err(Irregular("a level above the number of lists, or a null in one of them"));
            }
            if level == depth {
                let skipped = length.min(self.skip);
                self.skip -= skipped;
                let left = length - skipped;
                let taken = left.min(self.rows - self.seen);
                // Nulls take no room among the values.
                let first = if is_null { position } else { position + skipped };
                if taken > 0 {
                    let from = *from.get_or_insert(first);
                    for i in 0..taken {
                        if is_null {
                            starts.push_null(base + first - from);
                        } else {
                            starts.push(level, base + first + i - from);
                        }
                    }
                    self.seen += taken;
                }
                if taken < left {
                    let end = if is_null { first } else { first + taken };
                    return Ok(from.unwrap_or(end)..end);
                }
            } else if let Some(from) = from.filter(|_| level > 0) {
                for value in position..position + length {
                    starts.push(level, base + value - from);
                }
            }
            if !is_null {
                position += length;
            }
        }
        Ok(from.unwrap_or(position)..position)
    }
}

/// The definition level of rows below `depth` lists that are null as a whole, 0 where none is, by the layers from the
/// values outwards. Nulls are those of the outermost struct, and of the outermost list, which Lance makes null with it.
/// `None` where anything else may be null or empty.
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

#[cfg(test)]
mod tests;
