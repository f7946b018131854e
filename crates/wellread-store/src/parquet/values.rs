//! Stored values to pixels: decoding and narrowing in one pass.
//!
//! Parquet has no type below 32 bits and upstream infers 64-bit integers, so pixels are stored wider than they
//! are. Each decoder here writes the image's own type at once and checks that nothing was lost ([`crate::numbers`]).
//!
//! | encoding | how |
//! |---|---|
//! | `PLAIN` | narrowed and compared, a block at a time |
//! | dictionary | the dictionary is narrowed once into a [`Table`]; indices are [unpacked](super::unpack) side by side and looked up in it |
//! | `DELTA_BINARY_PACKED` | differences are unpacked and [summed up](super::delta) a block at a time, sums narrowed as plain values are |
//! | `BYTE_STREAM_SPLIT` | the byte streams that the pixel type has are interleaved; the others must be its sign or zero |

use super::delta;
use super::dictionary::{PageCursor, Table, look_up};
use crate::numbers::{BadValue, LeafType, dispatch, narrow_all};
use std::ops::Range;
use wellread_image::PixelType;
use wellread_trace::{Kind, span};

/// How the values of a page are encoded, with what decoding them needs.
#[derive(Clone, Copy)]
pub(super) enum Coding<'a> {
    Plain,
    Dictionary(&'a Table),
    /// `DELTA_BINARY_PACKED`, of integers only.
    Delta,
    ByteStreamSplit,
}

/// Decodes values `range` of the `count` in `bytes` into `out`: `range.len() * dtype.size()` bytes.
pub(super) fn decode(
    bytes: &[u8],
    coding: Coding<'_>,
    leaf: LeafType,
    count: usize,
    range: Range<usize>,
    dtype: PixelType,
    out: &mut [u8],
) -> Result<(), BadValue> {
    decode_on(bytes, coding, leaf, count, range, dtype, out, &mut PageCursor::default())
}

/// As [`decode`], of values that come after those of which `walk` is, as far as they do.
pub(super) fn decode_on(
    bytes: &[u8],
    coding: Coding<'_>,
    leaf: LeafType,
    count: usize,
    range: Range<usize>,
    dtype: PixelType,
    out: &mut [u8],
    walk: &mut PageCursor,
) -> Result<(), BadValue> {
    debug_assert!(range.start <= range.end && range.end <= count);
    debug_assert_eq!(out.len(), range.len() * dtype.size());
    let _decode = span(Kind::Decode).with(out.len() as u64, 0);
    match coding {
        Coding::Plain => {
            let size = leaf.size();
            let bytes = range
                .end
                .checked_mul(size)
                .and_then(|end| bytes.get(range.start * size..end))
                .ok_or(BadValue::Corrupt("a page holds fewer values than it declares"))?;
            dispatch!(leaf, dtype, S, P => narrow_all::<S, P>(bytes, dtype, out))
        }
        Coding::Dictionary(table) => {
            debug_assert_eq!(table.dtype, dtype);
            look_up(bytes, table, count, range, out, walk)
        }
        Coding::Delta => delta::sum(bytes, leaf, count, range, dtype, out, walk),
        Coding::ByteStreamSplit => {
            let needed = count.checked_mul(leaf.size());
            if needed.is_none_or(|n| n > bytes.len()) {
                return Err(BadValue::Corrupt("a page holds fewer values than it declares"));
            }
            unsplit(bytes, leaf, count, range, dtype, out)
        }
    }
}

/// `BYTE_STREAM_SPLIT`: byte `b` of value `i` lies at `b * count + i`.
fn unsplit(
    bytes: &[u8],
    leaf: LeafType,
    count: usize,
    range: Range<usize>,
    dtype: PixelType,
    out: &mut [u8],
) -> Result<(), BadValue> {
    let stream = |b: usize| &bytes[b * count + range.start..b * count + range.end];
    // Unsigned pixels of one or two bytes: the low streams are the pixels, all others must be zero.
    if leaf.is_integer() && matches!(dtype, PixelType::U8 | PixelType::U16) {
        let high = (dtype.size()..leaf.size()).map(stream);
        if high.flat_map(|s| s.iter()).fold(0, |a, &b| a | b) == 0 {
            if dtype == PixelType::U8 {
                out.copy_from_slice(stream(0));
            } else {
                for ((o, &low), &high) in out.chunks_exact_mut(2).zip(stream(0)).zip(stream(1)) {
                    o[0] = low;
                    o[1] = high;
                }
            }
            return Ok(());
        }
    }
    // Everything else is put together block by block and narrowed as plain values are.
    const BLOCK: usize = 256;
    let size = leaf.size();
    let mut plain = [0u8; BLOCK * 8];
    for (start, out) in (0..range.len()).step_by(BLOCK).zip(out.chunks_mut(BLOCK * dtype.size())) {
        let n = out.len() / dtype.size();
        for b in 0..size {
            for (i, &byte) in stream(b)[start..start + n].iter().enumerate() {
                plain[i * size + b] = byte;
            }
        }
        decode(&plain[..n * size], Coding::Plain, leaf, n, 0..n, dtype, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain<S: Copy, const N: usize>(values: &[S], bytes: impl Fn(S) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| bytes(v)).collect()
    }

    proptest! {
        #[test]
        fn any_part_of_a_split_page(
            values in prop::collection::vec(-300i32..70_000, 1..900),
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
            dtype in prop::sample::select(PixelType::ALL.to_vec()),
            leaf in prop::sample::select(vec![LeafType::I32, LeafType::I64, LeafType::F32, LeafType::F64]),
        ) {
            let bytes: Vec<u8> = values.iter().flat_map(|&v| match leaf {
                LeafType::I32 => v.to_le_bytes().to_vec(),
                LeafType::F32 => (v as f32).to_le_bytes().to_vec(),
                LeafType::F64 => f64::from(v).to_le_bytes().to_vec(),
                _ => i64::from(v).to_le_bytes().to_vec(),
            }).collect();
            let (n, size) = (values.len(), leaf.size());
            let split: Vec<u8> = (0..size).flat_map(|b| (0..n).map(move |i| (b, i)))
                .map(|(b, i)| bytes[i * size + b]).collect();
            let (a, b) = (cut.0.index(n + 1), cut.1.index(n + 1));
            let range = a.min(b)..a.max(b);
            let run = |bytes: &[u8], coding| {
                let mut out = vec![0; range.len() * dtype.size()];
                decode(bytes, coding, leaf, n, range.clone(), dtype, &mut out).map(|()| out)
            };
            prop_assert_eq!(run(&split, Coding::ByteStreamSplit), run(&bytes, Coding::Plain));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), count in 0usize..2000) {
            let dictionary = plain(&[1i32, 2, 3], i32::to_le_bytes);
            let table = Table::new(&dictionary, LeafType::I32, 3, PixelType::U16).unwrap();
            let mut out = vec![0; count * 2];
            for coding in [Coding::Plain, Coding::Dictionary(&table), Coding::Delta, Coding::ByteStreamSplit] {
                let _ = decode(&bytes, coding, LeafType::I32, count, 0..count, PixelType::U16, &mut out);
            }
        }
    }
}
