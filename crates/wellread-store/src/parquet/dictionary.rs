//! Dictionary pages: the dictionary narrowed once, indices looked up in it.

use super::levels::{Run, Runs};
use super::unpack::{Unpacker, one_by_one};
use crate::numbers::{BadValue, LeafType, Pixel, Stored, dispatch, out_of_range};
use std::ops::Range;
use wellread_image::PixelType;

/// A dictionary, narrowed to the pixel type.
#[derive(Debug)]
pub(super) struct Table {
    /// The pixel type.
    pub dtype: PixelType,
    /// Pixels, `dtype.size()` bytes each, padded with zeros to 256 entries at least.
    pixels: Vec<u8>,
    /// Entries that the dictionary has; larger indices are corrupt.
    entries: usize,
    /// Entries that do not fit the pixel type, ascending, with their values in words. They are an error
    /// only where a pixel uses them: a dictionary is shared by all images of a row group.
    unfit: Vec<(u32, String)>,
}

impl Table {
    /// Narrows a dictionary page of `count` plain values.
    pub fn new(bytes: &[u8], leaf: LeafType, count: usize, dtype: PixelType) -> Result<Self, BadValue> {
        let bytes = count
            .checked_mul(leaf.size())
            .and_then(|n| bytes.get(..n))
            .ok_or(BadValue::Corrupt("the dictionary holds fewer values than it declares"))?;
        let mut pixels = vec![0; count.max(256) * dtype.size()];
        let mut unfit = vec![];
        dispatch!(leaf, dtype, S, P => {
            let slots = pixels.chunks_exact_mut(<P as Pixel>::SIZE);
            for (i, (v, slot)) in bytes.chunks_exact(size_of::<S>()).zip(slots).enumerate() {
                let value = <S as Stored<P>>::get(v);
                let (pixel, fits) = <S as Stored<P>>::narrow(value);
                pixel.put(slot);
                if !fits {
                    unfit.push((i as u32, value.to_string()));
                }
            }
        });
        Ok(Self { dtype, pixels, entries: count, unfit })
    }

    /// Bytes that it keeps.
    pub fn bytes(&self) -> usize {
        self.pixels.len() + self.unfit.len() * 48
    }

    /// Looks indices up, as many as `out` has pixels.
    fn pixels_of<P: Pixel, I: Copy + Ord + Default + Into<u32>>(
        &self,
        indices: &[I],
        out: &mut [u8],
    ) -> Result<(), BadValue> {
        let largest: u32 = indices.iter().fold(I::default(), |a, &b| a.max(b)).into();
        if !self.unfit.is_empty() || largest as usize >= self.entries {
            indices.iter().try_for_each(|&index| self.check(index.into()))?;
        }
        assert!(self.pixels.len() >= self.entries * P::SIZE);
        for (out, &index) in out.chunks_exact_mut(P::SIZE).zip(indices) {
            let at = Into::<u32>::into(index) as usize * P::SIZE;
            // SAFETY: no index is above the largest, which is below the number of entries, and the table has a pixel for
            // each. Checked one by one, a look-up takes twice as long.
            out.copy_from_slice(unsafe { self.pixels.get_unchecked(at..at + P::SIZE) });
        }
        Ok(())
    }

    /// The error of an index, if it has one.
    fn check(&self, index: u32) -> Result<(), BadValue> {
        if index as usize >= self.entries {
            return Err(BadValue::Corrupt("a pixel refers to a dictionary entry that does not exist"));
        }
        match self.unfit.binary_search_by_key(&index, |u| u.0) {
            Ok(at) => Err(out_of_range(&self.unfit[at].1, self.dtype)),
            Err(_) => Ok(()),
        }
    }
}

/// Indices that are unpacked at once: all of a run as libraries write them, in memory that stays in the nearest cache.
const BLOCK: usize = 512;

/// How indices are unpacked.
enum Indices {
    Narrow(Unpacker),
    /// For dictionaries of more than 65,536 entries: floats, mostly.
    Wide(u32),
}

impl Indices {
    fn new(width: u32) -> Self {
        if width <= Unpacker::MAX_WIDTH { Self::Narrow(Unpacker::new(width)) } else { Self::Wide(width) }
    }
}

/// Where a walk through the runs or blocks of a page stands, so that its next values need not be looked for from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageCursor {
    /// Values before the run or block.
    pub value: usize,
    /// Bytes before it.
    pub byte: usize,
    /// The value before it, where its values are differences.
    pub before: u64,
}

/// Dictionary indices: a byte with their bit width, then runs of the hybrid. `walk` is of the same page.
pub(super) fn look_up(
    bytes: &[u8],
    table: &Table,
    count: usize,
    range: Range<usize>,
    out: &mut [u8],
    walk: &mut PageCursor,
) -> Result<(), BadValue> {
    if range.is_empty() {
        return Ok(());
    }
    let (&width, bytes) =
        bytes.split_first().ok_or(BadValue::Corrupt("a page of dictionary indices is empty"))?;
    if width > 32 {
        return Err(BadValue::Corrupt("dictionary indices are wider than 32 bits"));
    }
    let width = u32::from(width);
    let unpacker = Indices::new(width);
    let size = table.dtype.size();
    if walk.value > range.start {
        *walk = PageCursor::default();
    }
    let mut at = walk.value;
    let mut runs = Runs::new(bytes.get(walk.byte..).unwrap_or_default(), width, count - at);
    loop {
        *walk = PageCursor { value: at, byte: bytes.len() - runs.rest(), before: 0 };
        let Some(run) = runs.next() else { break };
        let run = run.ok_or(BadValue::Corrupt("dictionary indices end early"))?;
        let end = at + run.count();
        if end > range.start {
            // The part of this run that was asked for, in values from the start of the run.
            let from = range.start.max(at) - at;
            let to = range.end.min(end) - at;
            let place = at + from - range.start;
            let out = &mut out[place * size..(place + to - from) * size];
            match run {
                Run::Repeat { value, .. } => {
                    table.check(value)?;
                    let pixel = &table.pixels[value as usize * size..][..size];
                    out.chunks_exact_mut(size).for_each(|slot| slot.copy_from_slice(pixel));
                }
                Run::Packed { bytes, .. } => dispatch!(pixel table.dtype, P => {
                    unpack::<P>(bytes, &unpacker, from..to, table, out)?;
                }),
            }
        }
        at = end;
        if at >= range.end {
            break;
        }
    }
    Ok(())
}

/// Values `range` of a bit-packed run, looked up.
fn unpack<P: Pixel>(
    bytes: &[u8],
    unpacker: &Indices,
    range: Range<usize>,
    table: &Table,
    out: &mut [u8],
) -> Result<(), BadValue> {
    let blocks = range.step_by(BLOCK).zip(out.chunks_mut(BLOCK * P::SIZE));
    match unpacker {
        Indices::Narrow(unpacker) => {
            let mut indices = [0u16; BLOCK];
            for (start, out) in blocks {
                let indices = &mut indices[..out.len() / P::SIZE];
                unpacker.unpack(bytes, start, indices);
                table.pixels_of::<P, u16>(indices, out)?;
            }
        }
        Indices::Wide(width) => {
            let mut indices = [0u32; BLOCK];
            for (start, out) in blocks {
                let indices = &mut indices[..out.len() / P::SIZE];
                one_by_one(bytes, *width, start, indices, |index| index);
                table.pixels_of::<P, u32>(indices, out)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::values::{Coding, decode};
    use super::*;
    use proptest::prelude::*;

    fn plain<S: Copy, const N: usize>(values: &[S], bytes: impl Fn(S) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| bytes(v)).collect()
    }

    #[test]
    fn dictionary_entries_matter_only_where_used() {
        let dictionary = plain(&[7i32, 300, 9], i32::to_le_bytes);
        let table = Table::new(&dictionary, LeafType::I32, 3, PixelType::U8).unwrap();
        // Eight packed indices of two bits: 0 2 0 2 1 3 0 0.
        let page = [2, 0b11, 0b1000_1000, 0b0000_1101];
        let get = |range: Range<usize>| {
            let mut out = vec![0; range.len()];
            decode(&page, Coding::Dictionary(&table), LeafType::I32, 8, range, PixelType::U8, &mut out)
                .map(|()| out)
        };
        assert_eq!(get(0..4), Ok(vec![7, 9, 7, 9]));
        assert_eq!(get(6..8), Ok(vec![7, 7]));
        assert_eq!(get(3..5), Err(BadValue::Range("the pixel value 300 does not fit uint8".into())));
        assert!(matches!(get(5..6), Err(BadValue::Corrupt(_))));
        assert!(Table::new(&dictionary, LeafType::I32, 4, PixelType::U8).is_err());
    }

    proptest! {
        /// Indices of every width, any part of a page: the same as one by one.
        #[test]
        fn any_part_of_a_dictionary_page(
            width in 0u32..=20,
            raw in prop::collection::vec(any::<u32>(), 1..600),
            repeat in 0usize..40,
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let mask = ((1u64 << width) - 1) as u32;
            let packed: Vec<u32> = raw.iter().map(|v| v & mask).collect();
            let mut page = vec![width as u8];
            if repeat > 0 {
                page.push((repeat as u8) << 1);
                page.extend(&packed[0].to_le_bytes()[..width.div_ceil(8) as usize]);
            }
            let groups = packed.len().div_ceil(8);
            let mut header = (groups << 1 | 1) as u32;
            while header > 0x7f {
                page.push(header as u8 | 0x80);
                header >>= 7;
            }
            page.push(header as u8);
            let mut bits = vec![0u8; groups * width as usize];
            for (i, v) in packed.iter().enumerate() {
                for b in 0..width as usize {
                    let at = i * width as usize + b;
                    bits[at / 8] |= ((v >> b & 1) as u8) << (at % 8);
                }
            }
            page.extend(bits);
            let indices: Vec<u32> = std::iter::repeat_n(packed[0], repeat).chain(packed).collect();
            let (a, b) = (cut.0.index(indices.len() + 1), cut.1.index(indices.len() + 1));
            let range = a.min(b)..a.max(b);
            for dtype in [PixelType::U32, PixelType::U8] {
                // Index i stands for the value i (u32) or i % 251 (u8).
                let value = |i: u32| if dtype == PixelType::U8 { i % 251 } else { i };
                let dictionary: Vec<u32> = (0..1 << width).map(value).collect();
                let plain = plain(&dictionary, u32::to_le_bytes);
                let table = Table::new(&plain, LeafType::U32, dictionary.len(), dtype).unwrap();
                let mut out = vec![0; range.len() * dtype.size()];
                decode(&page, Coding::Dictionary(&table), LeafType::U32, indices.len(), range.clone(), dtype,
                    &mut out).unwrap();
                let expected: Vec<u8> = indices[range.clone()]
                    .iter()
                    .flat_map(|&i| value(i).to_le_bytes()[..dtype.size()].to_vec())
                    .collect();
                prop_assert_eq!(&out, &expected);
                // The values after it, then before it, in one walk.
                let mut walk = PageCursor::default();
                for range in [range.clone(), range.end..indices.len(), 0..range.start, range.clone()] {
                    let mut out = vec![0; range.len() * dtype.size()];
                    look_up(&page, &table, indices.len(), range.clone(), &mut out, &mut walk).unwrap();
                    let each = indices[range].iter();
                    let expected: Vec<u8> = each.flat_map(|&i| value(i).to_le_bytes()[..dtype.size()].to_vec()).collect();
                    prop_assert_eq!(out, expected);
                }
            }
        }
    }
}
