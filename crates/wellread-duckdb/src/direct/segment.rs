//! Segments of a column: some of its values, compressed together in a block.
//!
//! Segments that pack values in groups end in a table of where each group starts, last group first. So the groups that
//! hold the values asked for are read and nothing else. Small segments, and the tables of large ones, are kept in
//! memory.
//!
//! ```text
//!  bitpacking:  end of table (8 bytes) │ groups of 2,048 … │ table
//!  ALP:         end of table (4 bytes) │ vectors of 1,024 … │ table
//!  ALPRD:       end of table (4 bytes), widths, dictionary │ vectors of 1,024 … │ table
//!  RLE:         start of counts (8 bytes) │ values │ counts of 2 bytes
//! ```

use super::alp::{self, Split};
use super::bitpacking::{self, Group};
use super::bits::{Lane, fits};
use super::blocks::Blocks;
use std::ops::Range;
use std::sync::OnceLock;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::little_endian;

/// Bytes of a segment that is kept whole.
const MAX_WHOLE_BYTES: usize = 16 << 10;
/// Bytes of an entry in the table of groups.
const ENTRY: usize = 4;
/// Bytes of a run's length.
const COUNT: usize = 2;
/// Bytes at the start of a segment that tell how long it is, and those of ALPRD's dictionary.
const HEAD: usize = 24;

/// How the values of a segment are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// One value, whose bits these are; it has no block.
    Constant(u64),
    Plain,
    Rle,
    Bitpacking,
    Alp,
    AlpRd,
}

/// Values that follow one another in a column.
#[derive(Debug)]
pub(super) struct Segment {
    /// Number of the first value in the column of its row group.
    pub start: usize,
    pub count: usize,
    pub codec: Codec,
    pub block: u64,
    /// Where it starts in the data of its block.
    pub offset: usize,
    kept: OnceLock<Kept>,
}

/// The kept form of a segment.
#[derive(Debug)]
enum Kept {
    /// All of it.
    Whole(Box<[u8]>),
    /// The part before the groups, and their table.
    Index { head: Box<[u8]>, table: Box<[u8]> },
}

/// Bytes of a value: as it is stored, and as it is delivered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Width {
    pub stored: usize,
    pub delivered: usize,
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Index { head, table } => head.len() + table.len(),
        }
    }

    /// The first bytes of the segment.
    fn head(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Index { head, .. } => head,
        }
    }
}

impl Segment {
    pub fn new(start: usize, count: usize, codec: Codec, block: u64, offset: usize) -> Self {
        Self { start, count, codec, block, offset, kept: OnceLock::new() }
    }

    /// Reads the values `wanted` of the segment to `out`, which has room for just as many.
    ///
    /// # Errors
    /// Bytes that are not as they should be, and values that do not fit the width asked for.
    pub fn read(
        &self,
        blocks: &Blocks,
        wanted: Range<usize>,
        width: Width,
        raw: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        debug_assert!(wanted.start <= wanted.end && wanted.end <= self.count);
        match (width.stored, width.delivered) {
            (1, 1) => self.lanes::<u8>(blocks, wanted, 1, raw, out),
            (2, 2) => self.lanes::<u16>(blocks, wanted, 2, raw, out),
            (4, 4) => self.lanes::<u32>(blocks, wanted, 4, raw, out),
            (8, 8) => self.lanes::<u64>(blocks, wanted, 8, raw, out),
            (8, 1) => self.lanes::<u8>(blocks, wanted, 8, raw, out),
            (8, 2) => self.lanes::<u16>(blocks, wanted, 8, raw, out),
            _ => Err(Irregular("values of an odd size")),
        }
    }

    fn lanes<L: Lane>(
        &self,
        blocks: &Blocks,
        wanted: Range<usize>,
        stored: usize,
        raw: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let out: &mut [L] = bytemuck::try_cast_slice_mut(out).map_err(|_| Irregular("values not aligned"))?;
        if wanted.is_empty() || wanted.len() != out.len() {
            return if out.is_empty() { Ok(()) } else { Err(Irregular("values of another size")) };
        }
        let at = self.offset.saturating_add(wanted.start.saturating_mul(stored));
        match self.codec {
            Codec::Constant(bits) => narrowed(std::iter::repeat_n(bits, wanted.len()), stored, out),
            Codec::Plain if stored == size_of::<L>() => {
                blocks.read_into(self.block, at, bytemuck::cast_slice_mut(out))
            }
            Codec::Plain => {
                let bytes = blocks.read(self.block, at, wanted.len() * stored, raw)?;
                narrowed(bytes.as_chunks::<8>().0.iter().map(|v| u64::from_le_bytes(*v)), stored, out)
            }
            Codec::Rle => {
                let mut own = None;
                let kept = self.kept(blocks, stored, raw, &mut own)?;
                let bytes = match kept {
                    Kept::Whole(bytes) => bytes,
                    Kept::Index { head, .. } => {
                        let length = self.length(blocks, head, stored)?;
                        blocks.read(self.block, self.offset, length, raw)?
                    }
                };
                runs(bytes, wanted, stored, out)
            }
            Codec::Bitpacking | Codec::Alp | Codec::AlpRd => self.groups(blocks, wanted, stored, raw, out),
        }
    }

    /// The kept form of the segment: read when it is first asked for. Where no more may be kept it is `own`.
    fn kept<'a>(
        &'a self,
        blocks: &Blocks,
        stored: usize,
        raw: &mut Vec<u8>,
        own: &'a mut Option<Kept>,
    ) -> Result<&'a Kept, Fault> {
        if let Some(kept) = self.kept.get() {
            return Ok(kept);
        }
        let room = blocks.room().saturating_sub(self.offset);
        let head = blocks.read(self.block, self.offset, HEAD.min(room), raw)?;
        let length = self.length(blocks, head, stored)?;
        let made = if length <= MAX_WHOLE_BYTES {
            Kept::Whole(blocks.read(self.block, self.offset, length, raw)?.into())
        } else {
            let head = head.into();
            let entries = if self.codec == Codec::Rle { 0 } else { self.count.div_ceil(self.group()) };
            let bytes = entries.checked_mul(ENTRY).filter(|bytes| *bytes <= length);
            let bytes = bytes.ok_or(Irregular("more groups than their segment has room for"))?;
            let table = blocks.read(self.block, self.offset + length - bytes, bytes, raw)?;
            Kept::Index { head, table: table.into() }
        };
        if blocks.keep(made.bytes()) { Ok(self.kept.get_or_init(|| made)) } else { Ok(own.insert(made)) }
    }

    /// Bytes of the segment, by what stands in its `head`.
    fn length(&self, blocks: &Blocks, head: &[u8], stored: usize) -> Result<usize, Fault> {
        let room = blocks.room().saturating_sub(self.offset);
        let number = match self.codec {
            Codec::Alp | Codec::AlpRd => head.first_chunk::<4>().map(|b| u32::from_le_bytes(*b) as usize),
            _ => head.first_chunk::<8>().and_then(|b| usize::try_from(u64::from_le_bytes(*b)).ok()),
        };
        let number = number.filter(|n| *n <= room && *n >= self.header());
        let number = number.ok_or(Irregular("a segment that ends outside of its block"))?;
        // Counts of runs go on to where there are as many as values.
        let counts = if self.codec == Codec::Rle { (number - self.header()) / stored * COUNT } else { 0 };
        Ok((number + counts).min(room))
    }

    /// Bytes before the values.
    fn header(&self) -> usize {
        if matches!(self.codec, Codec::Alp | Codec::AlpRd) { 4 } else { 8 }
    }

    /// Values of a group.
    fn group(&self) -> usize {
        if self.codec == Codec::Bitpacking { bitpacking::GROUP } else { alp::VECTOR }
    }

    fn groups<L: Lane>(
        &self,
        blocks: &Blocks,
        wanted: Range<usize>,
        stored: usize,
        raw: &mut Vec<u8>,
        mut out: &mut [L],
    ) -> Result<(), Fault> {
        let mut own = None;
        let kept = self.kept(blocks, stored, raw, &mut own)?;
        let each = self.group();
        let count = self.count.div_ceil(each);
        let (table, end) = match kept {
            Kept::Whole(bytes) => {
                let start = bytes.len().checked_sub(count * ENTRY);
                let start = start.ok_or(Irregular("more groups than their segment has room for"))?;
                (&bytes[start..], start)
            }
            Kept::Index { head, table } => (&**table, self.length(blocks, head, stored)? - table.len()),
        };
        // The table is written from its end.
        let entry = |group: usize| {
            let at = (count - 1 - group) * ENTRY;
            u32::from_le_bytes(table[at..at + ENTRY].try_into().expect("four bytes"))
        };
        // An entry of bit packing has the group's mode in its highest byte.
        let mask = if self.codec == Codec::Bitpacking { bitpacking::OFFSET_MASK } else { u32::MAX };
        let start_of = |group: usize| if group < count { (entry(group) & mask) as usize } else { end };
        let groups = wanted.start / each..wanted.end.div_ceil(each);
        let (first, last) = (start_of(groups.start), start_of(groups.end));
        if first < self.header() || first > last || last > end {
            return Err(Irregular("groups out of order"));
        }
        let bytes = match kept {
            Kept::Whole(bytes) => &bytes[first..last],
            Kept::Index { .. } => blocks.read(self.block, self.offset + first, last - first, raw)?,
        };
        let split = if self.codec == Codec::AlpRd { Some(Split::new(kept.head())?) } else { None };
        for group in groups {
            let (from, to) = (start_of(group), start_of(group + 1));
            let part = from.checked_sub(first).zip(to.checked_sub(first));
            let part =
                part.and_then(|(from, to)| bytes.get(from..to)).ok_or(Irregular("groups out of order"))?;
            let values = group * each..((group + 1) * each).min(self.count);
            let inside =
                wanted.start.max(values.start) - values.start..wanted.end.min(values.end) - values.start;
            let (now, rest) = out.split_at_mut(inside.len());
            out = rest;
            match &split {
                _ if self.codec == Codec::Bitpacking => {
                    Group::new(part, entry(group), stored)?.decode(inside, stored, now)?;
                }
                None => alp::decode(part, values.len(), inside, now)?,
                Some(split) => split.decode(part, values.len(), inside, now)?,
            }
        }
        Ok(())
    }
}

/// Writes values, stored in `stored` bytes, where they fit.
fn narrowed<L: Lane>(values: impl Iterator<Item = u64>, stored: usize, out: &mut [L]) -> Result<(), Fault> {
    let mut seen = 0;
    for (out, value) in out.iter_mut().zip(values) {
        seen |= value;
        *out = L::wrap(value);
    }
    fits::<L>(seen, stored)
}

/// Values of a segment of runs.
fn runs<L: Lane>(bytes: &[u8], wanted: Range<usize>, stored: usize, mut out: &mut [L]) -> Result<(), Fault> {
    let wrong = Irregular("runs that do not fill their segment");
    let start = bytes.first_chunk::<8>().map_or(u64::MAX, |b| u64::from_le_bytes(*b));
    let start = usize::try_from(start).ok().filter(|s| (8..=bytes.len()).contains(s)).ok_or(wrong)?;
    let values = bytes[8..start].chunks_exact(stored);
    let counts = bytes[start..].as_chunks::<COUNT>().0;
    let mut at = 0;
    let mut seen = 0;
    for (value, count) in values.zip(counts) {
        if out.is_empty() {
            break;
        }
        let end = at + usize::from(u16::from_le_bytes(*count));
        let skipped = wanted.start.max(at);
        if end > skipped {
            let n = (end - skipped).min(out.len());
            let value = little_endian(value);
            let (now, rest) = out.split_at_mut(n);
            now.fill(L::wrap(value));
            (out, seen) = (rest, seen | value);
        }
        at = end;
    }
    if out.is_empty() { fits::<L>(seen, stored) } else { Err(wrong) }
}
