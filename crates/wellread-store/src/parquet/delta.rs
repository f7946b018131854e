//! `DELTA_BINARY_PACKED`: sums of bit-packed differences
//! ([specification](https://parquet.apache.org/docs/file-format/data-pages/encodings/)).
//!
//! Writers of version 2 pages fall back to it where a dictionary of integers grows too large. A page begins with the
//! sizes and its first value. Blocks follow, each with its smallest difference and a bit width for each of its
//! miniblocks. The values of a miniblock are the differences less the smallest:
//!
//! ```text
//!  block, miniblocks, count, first │ smallest │ widths │ miniblock │ miniblock │ …   │ smallest │ …
//! ```
//!
//! A value is known only when all before it are summed up. So bands of a page go on from where the last one ended, at
//! the block that its end lies in ([`PageCursor`]).

use super::dictionary::PageCursor;
use super::unpack::{Unpacker, one_by_one};
use super::varint;
use crate::numbers::{BadValue, LeafType, dispatch, narrow_all};
use std::ops::Range;
use wellread_image::PixelType;

/// Values that are summed up at once, in memory that stays in the nearest cache.
const SUM_STEP: usize = 512;

/// Values of a block that are read here: libraries write 128 to 2,048. A band begins at a block, so larger ones would be
/// summed up again and again.
const MAX_BLOCK_VALUES: usize = 1 << 16;

const ENDS_EARLY: BadValue = BadValue::Corrupt("a page of differences ends early");

/// The start of a page.
struct Header {
    /// Values of a block.
    block: usize,
    /// Values of a miniblock.
    miniblock: usize,
    /// The first value.
    first: u64,
}

/// Whether a page has blocks of a size that is read here; damaged ones are to be told what is wrong with them.
pub(super) fn is_usual(bytes: &[u8]) -> bool {
    Input { bytes, at: 0 }.header(0).is_ok_and(|header| header.block <= MAX_BLOCK_VALUES)
}

/// Whether `count` values are there.
pub(super) fn is_complete(bytes: &[u8], count: usize) -> bool {
    let mut input = Input { bytes, at: 0 };
    let mut walk = || {
        let header = input.header(count)?;
        let mut at = 1;
        while at < count {
            input.zigzag()?;
            for &width in input.take(header.block / header.miniblock)? {
                let values = header.miniblock.min(count.saturating_sub(at));
                if values > 0 {
                    input.miniblock(header.miniblock, values, width)?;
                }
                at += values;
            }
        }
        Ok::<_, BadValue>(())
    };
    walk().is_ok()
}

/// Decodes values `range` of `count` into `out`. `walk` is of the same page.
///
/// # Errors
/// Pages that end early or say what the specification does not allow, and values that do not fit.
pub(super) fn sum(
    bytes: &[u8],
    leaf: LeafType,
    count: usize,
    range: Range<usize>,
    dtype: PixelType,
    out: &mut [u8],
    walk: &mut PageCursor,
) -> Result<(), BadValue> {
    if range.is_empty() {
        return Ok(());
    }
    let mut input = Input { bytes, at: 0 };
    let header = input.header(count)?;
    let mut summed = PrefixSumOutput { leaf, dtype, range: range.clone(), out, plain: [0; SUM_STEP * 8] };
    if walk.value == 0 || walk.value > range.start {
        *walk = PageCursor { value: 1, byte: input.at, before: header.first };
    }
    if range.start == 0 {
        summed.put(0, &[header.first])?;
    }
    input.at = walk.byte;
    let mut unpackers = [const { None }; Unpacker::MAX_WIDTH as usize + 1];
    let (mut narrow, mut differences) = ([0u16; SUM_STEP], [0u64; SUM_STEP]);
    while walk.value < range.end {
        let mut at = walk.value;
        let mut before = walk.before;
        let smallest = input.zigzag()? as u64;
        let widths = input.take(header.block / header.miniblock)?;
        // Widths stand there of all miniblocks, also of those that no value is left for.
        for &width in widths {
            let values = header.miniblock.min(count - at);
            if values == 0 {
                break;
            }
            let packed = input.miniblock(header.miniblock, values, width)?;
            for start in (0..values).step_by(SUM_STEP) {
                let values = SUM_STEP.min(values - start);
                let differences = &mut differences[..values];
                unpack(packed, width.into(), start, differences, &mut narrow, &mut unpackers);
                for value in &mut *differences {
                    before = before.wrapping_add(smallest).wrapping_add(*value);
                    *value = before;
                }
                summed.put(at, differences)?;
                at += values;
            }
            // Later values are not wanted now; the block begins anew when they are.
            if at >= range.end && at < count {
                return Ok(());
            }
        }
        *walk = PageCursor { value: at, byte: input.at, before };
        if at == count {
            break;
        }
    }
    Ok(())
}

/// Where sums go that were asked for.
struct PrefixSumOutput<'a> {
    leaf: LeafType,
    dtype: PixelType,
    range: Range<usize>,
    out: &'a mut [u8],
    plain: [u8; SUM_STEP * 8],
}

impl PrefixSumOutput<'_> {
    /// Values from the one at `at` on: those in the range, narrowed.
    fn put(&mut self, at: usize, values: &[u64]) -> Result<(), BadValue> {
        let from = self.range.start.max(at);
        let to = self.range.end.min(at + values.len());
        if from >= to {
            return Ok(());
        }
        let values = &values[from - at..to - at];
        let size = self.leaf.size();
        let plain = &mut self.plain[..values.len() * size];
        // Sums of 32-bit integers wrap around as such: their upper half is of no account.
        match size {
            4 => {
                for (slot, value) in plain.as_chunks_mut().0.iter_mut().zip(values) {
                    *slot = (*value as u32).to_le_bytes();
                }
            }
            _ => {
                for (slot, value) in plain.as_chunks_mut().0.iter_mut().zip(values) {
                    *slot = value.to_le_bytes();
                }
            }
        }
        let dtype = self.dtype;
        let place =
            (from - self.range.start) * self.dtype.size()..(to - self.range.start) * self.dtype.size();
        let out = &mut self.out[place];
        dispatch!(self.leaf, dtype, S, P => narrow_all::<S, P>(plain, dtype, out))
    }
}

/// Values of `width` bits from `start` on, all of which lie in `bytes`.
fn unpack(
    bytes: &[u8],
    width: u32,
    start: usize,
    out: &mut [u64],
    narrow: &mut [u16; SUM_STEP],
    unpackers: &mut [Option<Unpacker>; Unpacker::MAX_WIDTH as usize + 1],
) {
    match width {
        0..=Unpacker::MAX_WIDTH => {
            let unpacker = unpackers[width as usize].get_or_insert_with(|| Unpacker::new(width));
            let narrow = &mut narrow[..out.len()];
            unpacker.unpack(bytes, start, narrow);
            for (out, &value) in out.iter_mut().zip(&*narrow) {
                *out = value.into();
            }
        }
        17..=32 => one_by_one(bytes, width, start, out, u64::from),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                let bit = (start + i) * width as usize;
                let mut word = [0; 16];
                let from = bit / 8;
                let n = (bytes.len() - from).min(16);
                word[..n].copy_from_slice(&bytes[from..from + n]);
                *out = ((u128::from_le_bytes(word) >> (bit % 8)) & ((1 << width) - 1)) as u64;
            }
        }
    }
}

/// Reads a page from the start.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], BadValue> {
        let taken = self.rest().get(..n).ok_or(ENDS_EARLY)?;
        self.at += n;
        Ok(taken)
    }

    /// A miniblock of so many values, of which the first `values` are wanted: all bytes from its first one on. The last
    /// one of a page may be cut behind the bytes that those values need.
    fn miniblock(&mut self, size: usize, values: usize, width: u8) -> Result<&'a [u8], BadValue> {
        if width > 64 {
            return Err(BadValue::Corrupt("differences are wider than 64 bits"));
        }
        let bytes = |values: usize| (values as u64 * u64::from(width)).div_ceil(8);
        let packed = self.rest();
        let (all, left) = (bytes(size), packed.len() as u64);
        if left < all && left < bytes(values) {
            return Err(ENDS_EARLY);
        }
        self.at += all.min(left) as usize;
        Ok(packed)
    }

    fn varint(&mut self) -> Result<u64, BadValue> {
        let next = || self.take(1).map(|byte| byte[0]);
        varint::unsigned(next, BadValue::Corrupt("a number in a page of differences does not end"))
    }

    fn zigzag(&mut self) -> Result<i64, BadValue> {
        self.varint().map(varint::signed)
    }

    /// The header of a page of `count` values.
    fn header(&mut self, count: usize) -> Result<Header, BadValue> {
        const SIZES: BadValue = BadValue::Corrupt("a page of differences has blocks of no valid size");
        let block = self.varint()?;
        let miniblocks = self.varint()?;
        let total = self.varint()?;
        let first = self.zigzag()? as u64;
        if total < count as u64 {
            return Err(BadValue::Corrupt("a page holds fewer values than it declares"));
        }
        // Larger ones than 2^30 no page can have, and products stay in range.
        if block == 0 || block > 1 << 30 || miniblocks == 0 || block % miniblocks != 0 {
            return Err(SIZES);
        }
        let (block, miniblock) = (block as usize, (block / miniblocks) as usize);
        if block % 128 != 0 || miniblock % 32 != 0 {
            return Err(SIZES);
        }
        Ok(Header { block, miniblock, first })
    }
}

#[cfg(test)]
mod tests;
