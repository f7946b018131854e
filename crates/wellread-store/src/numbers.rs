//! Numbers as files and engines hold them, and their narrowing to pixels.
//!
//! ```text
//!  bytes of numbers of a stored type (LeafType) ──narrow──▶ bytes of the image's own type, or which value does not fit
//! ```
//!
//! Pixels are often stored wider than they are: Parquet has no type below 32 bits, and upstream infers 64-bit integers.
//! Every value must come back unchanged from the narrower type. [`dispatch`] lets a decoder be written once for all
//! stored types and all pixel types, and compiled for each pair.

use arrow_schema::DataType;
use wellread_image::PixelType;
use wellread_trace::{Kind, span};

/// Numbers of one type, one after another, none of them null.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a> {
    /// Their type: integers, or floats.
    pub data_type: &'a DataType,
    /// Their bytes, little-endian, of any alignment.
    pub bytes: &'a [u8],
}

impl Numbers<'_> {
    /// Whether [`Self::whole`] knows numbers of this type.
    pub fn are_whole(data_type: &DataType) -> bool {
        data_type.is_integer()
    }

    /// The whole number at `i`; `None` beyond the end, for other types, and where 64 bits with a sign do not hold it.
    pub fn whole(&self, i: usize) -> Option<i64> {
        macro_rules! at {
            ($t:ty) => {{
                let values = self.bytes.as_chunks::<{ size_of::<$t>() }>().0;
                i64::try_from(<$t>::from_le_bytes(*values.get(i)?)).ok()
            }};
        }
        match self.data_type {
            DataType::Int8 => at!(i8),
            DataType::Int16 => at!(i16),
            DataType::Int32 => at!(i32),
            DataType::Int64 => at!(i64),
            DataType::UInt8 => at!(u8),
            DataType::UInt16 => at!(u16),
            DataType::UInt32 => at!(u32),
            DataType::UInt64 => at!(u64),
            _ => None,
        }
    }
}

/// Type of stored values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafType {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl LeafType {
    /// Bytes of one value in `PLAIN` encoding.
    pub const fn size(self) -> usize {
        match self {
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// Whether its values are integers.
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64)
    }
}

/// Why values could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadValue {
    /// A value that the image's type cannot hold, in words.
    Range(String),
    /// Bytes that are not what the encoding prescribes.
    Corrupt(&'static str),
}

/// A pixel type as a Rust number.
pub(crate) trait Pixel: Copy + PartialEq + 'static {
    const SIZE: usize;
    fn put(self, out: &mut [u8]);
}

/// A stored type that narrows to pixel type `P`.
pub(crate) trait Stored<P>: Copy + std::fmt::Display {
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
pub(crate) use dispatch;

/// The error for a value that the type cannot hold.
pub(crate) fn out_of_range(value: impl std::fmt::Display, dtype: PixelType) -> BadValue {
    BadValue::Range(format!("the pixel value {value} does not fit {dtype}"))
}

/// `PLAIN`, all of `bytes`.
pub(crate) fn narrow_all<S: Stored<P>, P: Pixel>(
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

/// Narrows values that lie as `PLAIN` ones do: little-endian, `leaf` wide.
pub(crate) fn narrow(bytes: &[u8], leaf: LeafType, dtype: PixelType, out: &mut [u8]) -> Result<(), BadValue> {
    let bytes = &bytes[..bytes.len() / leaf.size() * leaf.size()];
    debug_assert_eq!(out.len(), bytes.len() / leaf.size() * dtype.size());
    let _decode = span(Kind::Decode).with(out.len() as u64, 0);
    dispatch!(leaf, dtype, S, P => narrow_all::<S, P>(bytes, dtype, out))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn whole_numbers_of_all_types_are_read_at_any_alignment() {
        let bytes: Vec<u8> = (0..17).map(|i| if i == 16 { 0x7f } else { 0xff }).collect();
        let at = |data_type: &DataType, i| Numbers { data_type, bytes: &bytes[1..] }.whole(i);
        for signed in [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64] {
            assert!(Numbers::are_whole(&signed));
            assert_eq!(at(&signed, 0), Some(-1), "{signed}");
        }
        assert_eq!(at(&DataType::UInt8, 0), Some(255));
        assert_eq!(at(&DataType::UInt16, 7), Some(0x7fff));
        assert_eq!(at(&DataType::UInt32, 0), Some(0xffff_ffff));
        assert_eq!((at(&DataType::UInt64, 0), at(&DataType::UInt64, 1)), (None, Some(i64::MAX)));
        assert_eq!((at(&DataType::UInt64, 2), at(&DataType::Float32, 0)), (None, None));
        assert!(!Numbers::are_whole(&DataType::Float64));
    }
}
