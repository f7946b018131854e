//! Stored values to pixels: decoding and narrowing in one pass.
//!
//! Parquet has no type below 32 bits and upstream infers 64-bit integers, so pixels are stored wider than they
//! are. Each decoder here writes the image's own type at once and checks that nothing was lost: every value
//! must come back unchanged from the narrower type.
//!
//! | encoding | how |
//! |---|---|
//! | `PLAIN` | narrowed and compared, a block at a time |
//! | dictionary | the dictionary is narrowed once into a [`Table`]; indices are [unpacked](super::unpack) side by side and looked up in it |
//! | `DELTA_BINARY_PACKED` | differences are unpacked and [summed up](super::delta) a block at a time, sums narrowed as plain values are |
//! | `BYTE_STREAM_SPLIT` | the byte streams that the pixel type has are interleaved; the others must be its sign or zero |

use super::delta;
use super::dictionary::{Table, Walk, look_up};
pub(crate) use super::schema::LeafType;
use std::ops::Range;
use wellread_image::PixelType;
use wellread_trace::{Kind, span};

/// Why values could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadValue {
    /// A value that the image's type cannot hold, in words.
    Range(String),
    /// Bytes that are not what the encoding prescribes.
    Corrupt(&'static str),
}

/// A pixel type as a Rust number.
pub(super) trait Pixel: Copy + PartialEq + 'static {
    const SIZE: usize;
    fn put(self, out: &mut [u8]);
}

/// A stored type that narrows to pixel type `P`.
pub(super) trait Stored<P>: Copy + std::fmt::Display {
    fn get(bytes: &[u8]) -> Self;
    /// The narrowed value, and whether it is the same number.
    fn narrow(self) -> (P, bool);
}

macro_rules! pixels {
    ($($t:ty),*) => {$(
        impl Pixel for $t {
            const SIZE: usize = size_of::<$t>();
            #[inline(always)]
            fn put(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
pixels!(u8, i8, u16, i16, u32, i32, f32, f64);

macro_rules! stored {
    // Integers go by way of i64, where the sign tells an unsigned value that is too large.
    (int $s:ty => $($p:ty),*) => {$(
        impl Stored<$p> for $s {
            #[inline(always)]
            fn get(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("a value of this size"))
            }
            #[inline(always)]
            fn narrow(self) -> ($p, bool) {
                let wide = self as i64;
                let narrow = wide as $p;
                // The largest i64 is what floats above it saturate to on the way back.
                let fits = narrow as i64 == wide && wide != i64::MAX && (<$s>::MIN != 0 || wide >= 0);
                (narrow, fits)
            }
        }
    )*};
    (float $s:ty => $($p:ty),*) => {$(
        impl Stored<$p> for $s {
            #[inline(always)]
            fn get(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("a value of this size"))
            }
            #[inline(always)]
            fn narrow(self) -> ($p, bool) {
                let narrow = self as $p;
                // A NaN equals nothing; in a float image it is a value like any other.
                let nan = self.is_nan() && PixelType::is_float(type_of::<$p>());
                // Compared as f64, which holds every integer of 32 bits: saturation cannot hide in rounding.
                (narrow, narrow as f64 == self as f64 || nan)
            }
        }
    )*};
}
stored!(int i32 => u8, i8, u16, i16, u32, i32, f32, f64);
stored!(int u32 => u8, i8, u16, i16, u32, i32, f32, f64);
stored!(int i64 => u8, i8, u16, i16, u32, i32, f32, f64);
stored!(int u64 => u8, i8, u16, i16, u32, i32, f32, f64);
stored!(float f32 => u8, i8, u16, i16, u32, i32, f32, f64);
stored!(float f64 => u8, i8, u16, i16, u32, i32, f32, f64);

/// The pixel type of a Rust number; only ever called with one of the eight.
#[inline(always)]
fn type_of<P: 'static>() -> PixelType {
    use std::any::TypeId;
    let id = TypeId::of::<P>();
    match () {
        () if id == TypeId::of::<u8>() => PixelType::U8,
        () if id == TypeId::of::<i8>() => PixelType::I8,
        () if id == TypeId::of::<u16>() => PixelType::U16,
        () if id == TypeId::of::<i16>() => PixelType::I16,
        () if id == TypeId::of::<u32>() => PixelType::U32,
        () if id == TypeId::of::<i32>() => PixelType::I32,
        () if id == TypeId::of::<f32>() => PixelType::F32,
        () => PixelType::F64,
    }
}

/// Runs `$body` with `$S` and `$P` bound to the Rust types of a leaf and of pixels.
macro_rules! dispatch {
    (stored $s:ty, $dtype:expr, $S:ident, $P:ident => $body:expr) => {{
        type $S = $s;
        dispatch!(pixel $dtype, $P => $body)
    }};
    (pixel $dtype:expr, $P:ident => $body:expr) => {
        match $dtype {
            PixelType::U8 => { type $P = u8; $body }
            PixelType::I8 => { type $P = i8; $body }
            PixelType::U16 => { type $P = u16; $body }
            PixelType::I16 => { type $P = i16; $body }
            PixelType::U32 => { type $P = u32; $body }
            PixelType::I32 => { type $P = i32; $body }
            PixelType::F32 => { type $P = f32; $body }
            PixelType::F64 => { type $P = f64; $body }
        }
    };
    ($leaf:expr, $dtype:expr, $S:ident, $P:ident => $body:expr) => {
        match $leaf {
            LeafType::I32 => dispatch!(stored i32, $dtype, $S, $P => $body),
            LeafType::U32 => dispatch!(stored u32, $dtype, $S, $P => $body),
            LeafType::I64 => dispatch!(stored i64, $dtype, $S, $P => $body),
            LeafType::U64 => dispatch!(stored u64, $dtype, $S, $P => $body),
            LeafType::F32 => dispatch!(stored f32, $dtype, $S, $P => $body),
            LeafType::F64 => dispatch!(stored f64, $dtype, $S, $P => $body),
        }
    };
}
pub(super) use dispatch;

/// The error for a value that the type cannot hold.
pub(super) fn out_of_range(value: impl std::fmt::Display, dtype: PixelType) -> BadValue {
    BadValue::Range(format!("the pixel value {value} does not fit {dtype}"))
}

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
    decode_on(bytes, coding, leaf, count, range, dtype, out, &mut Walk::default())
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
    walk: &mut Walk,
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

/// `PLAIN`, all of `bytes`.
pub(super) fn narrow_all<S: Stored<P>, P: Pixel>(
    bytes: &[u8],
    dtype: PixelType,
    out: &mut [u8],
) -> Result<(), BadValue> {
    // Blocks short enough to stay in the first-level cache, long enough for the check to vanish.
    const BLOCK: usize = 1024;
    let size = size_of::<S>();
    for (from, to) in bytes.chunks(BLOCK * size).zip(out.chunks_mut(BLOCK * P::SIZE)) {
        let mut same = true;
        for (v, o) in from.chunks_exact(size).zip(to.chunks_exact_mut(P::SIZE)) {
            let (pixel, fits) = S::get(v).narrow();
            pixel.put(o);
            same &= fits;
        }
        if !same {
            let bad = from.chunks_exact(size).map(S::get).find(|v| !v.narrow().1);
            return Err(bad.map_or(BadValue::Corrupt("values are damaged"), |v| out_of_range(v, dtype)));
        }
    }
    Ok(())
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

/// Narrows values that the general reader has as an Arrow buffer: little-endian, `leaf` wide.
pub(crate) fn narrow(bytes: &[u8], leaf: LeafType, dtype: PixelType, out: &mut [u8]) -> Result<(), BadValue> {
    let count = bytes.len() / leaf.size();
    decode(bytes, Coding::Plain, leaf, count, 0..count, dtype, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain<S: Copy, const N: usize>(values: &[S], bytes: impl Fn(S) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| bytes(v)).collect()
    }

    fn all(bytes: &[u8], leaf: LeafType, dtype: PixelType) -> Result<Vec<u8>, BadValue> {
        let mut out = vec![0; bytes.len() / leaf.size() * dtype.size()];
        narrow(bytes, leaf, dtype, &mut out).map(|()| out)
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let bytes = plain(&[1i64, 300, 2], i64::to_le_bytes);
        let error = all(&bytes, LeafType::I64, PixelType::U8).unwrap_err();
        assert_eq!(error, BadValue::Range("the pixel value 300 does not fit uint8".into()));
        assert!(all(&bytes, LeafType::I64, PixelType::U16).is_ok());
        for (value, dtype, fits) in [
            (-1, PixelType::U8, false),
            (-128, PixelType::I8, true),
            (-129, PixelType::I8, false),
            (i64::from(u32::MAX), PixelType::U32, true),
            (i64::from(u32::MAX), PixelType::I32, false),
            (1 << 24, PixelType::F32, true),
            ((1 << 24) + 1, PixelType::F32, false),
            (i64::MAX, PixelType::F64, false),
            (i64::MIN, PixelType::F64, true),
        ] {
            assert_eq!(all(&value.to_le_bytes(), LeafType::I64, dtype).is_ok(), fits, "{value} {dtype}");
        }
        for value in [u64::MAX, u64::MAX - 127] {
            assert!(all(&value.to_le_bytes(), LeafType::U64, PixelType::I8).is_err());
        }
        assert!(all(&u32::MAX.to_le_bytes(), LeafType::U32, PixelType::I32).is_err());
        for (value, dtype, fits) in [
            (1.0, PixelType::U8, true),
            (1.5, PixelType::U8, false),
            (f32::NAN, PixelType::U8, false),
            (f32::NAN, PixelType::F64, true),
            (f32::INFINITY, PixelType::F32, true),
            (4_294_967_296.0, PixelType::U32, false),
            (2_147_483_648.0, PixelType::I32, false),
            (-2_147_483_648.0, PixelType::I32, true),
        ] {
            assert_eq!(all(&value.to_le_bytes(), LeafType::F32, dtype).is_ok(), fits, "{value} {dtype}");
        }
        assert!(all(&0.1f64.to_le_bytes(), LeafType::F64, PixelType::F32).is_err());
        assert!(all(&f64::NAN.to_le_bytes(), LeafType::F64, PixelType::F32).is_ok());
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
