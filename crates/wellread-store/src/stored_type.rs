//! Types in which files hold pixels, and their conversion to those of images.
//!
//! ```text
//!  strip, tile, chunk ─▶ codec, predictor, order ─▶ values of a StoredType ──pixels──▶ those of a PixelType ─▶ sink
//!                                                                              └─ a value that does not fit: Unfit
//! ```
//!
//! Label images are often `int64`, the type of `skimage.measure.label`, and intensities are kept as `float16`. Images have
//! neither. `float16` is read as `float32`, which holds each of its values. `int64` is read as `int32`, and `uint64` as
//! `uint32`: each value is checked. Readers decode what is stored, and convert what they hand on last, in one place.

use crate::numbers::{BadValue, Stored, narrow_all};
use crate::{Error, try_alloc};
use half::f16;
use std::path::Path;
use wellread_image::{PixelType, Region, clip_runs};
use wellread_trace::{Kind, span};

/// The type of a pixel in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredType {
    /// That of the image.
    Pixel(PixelType),
    F16,
    I64,
    U64,
}

/// Why stored values are no pixels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// A value that the image's type does not hold, in words.
    Value(String),
    /// There is not enough memory for them, in words.
    Memory(String),
}

/// Converts values, little-endian, all of them.
type Convert = fn(&[u8], PixelType, &mut [u8]) -> Result<(), BadValue>;

impl StoredType {
    /// All of them.
    #[cfg(feature = "ome-zarr")]
    pub const ALL: [Self; 11] = [
        Self::Pixel(PixelType::U8),
        Self::Pixel(PixelType::I8),
        Self::Pixel(PixelType::U16),
        Self::Pixel(PixelType::I16),
        Self::Pixel(PixelType::U32),
        Self::Pixel(PixelType::I32),
        Self::U64,
        Self::I64,
        Self::F16,
        Self::Pixel(PixelType::F32),
        Self::Pixel(PixelType::F64),
    ];

    /// The type in which such pixels are read.
    pub const fn dtype(self) -> PixelType {
        match self {
            Self::Pixel(dtype) => dtype,
            Self::F16 => PixelType::F32,
            Self::I64 => PixelType::I32,
            Self::U64 => PixelType::U32,
        }
    }

    /// Bytes of one value.
    pub const fn size(self) -> usize {
        match self {
            Self::Pixel(dtype) => dtype.size(),
            Self::F16 => 2,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// The NumPy name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pixel(dtype) => dtype.name(),
            Self::F16 => "float16",
            Self::I64 => "int64",
            Self::U64 => "uint64",
        }
    }

    /// A remark for descriptions of files whose pixels are read in another type; empty where they are not.
    pub fn remark(self) -> String {
        if let Self::Pixel(_) = self { String::new() } else { format!(", pixels stored as {}", self.name()) }
    }

    /// The pixels of `block`, whose values are `data`: there, or in `out`. Those outside of `wanted` may be anything, and
    /// their values need not fit.
    ///
    /// # Errors
    /// A value that the image's type does not hold.
    pub fn pixels<'a>(
        self,
        data: &'a [u8],
        block: &Region,
        wanted: &Region,
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Unfit> {
        let convert: Convert = match self {
            Self::Pixel(_) => return Ok(data),
            Self::F16 => narrow_all::<f16, f32>,
            Self::I64 => narrow_all::<i64, i32>,
            Self::U64 => narrow_all::<u64, u32>,
        };
        let dtype = self.dtype();
        let (from, to) = (self.size(), dtype.size());
        let bytes = block.pixels() * to;
        try_alloc::grow(out, bytes).map_err(Unfit::Memory)?;
        let out = &mut out[..bytes];
        let _decode = span(Kind::Decode).with(bytes as u64, 0);
        let mut done = Ok(());
        clip_runs(block, wanted, |at, _, n| {
            if done.is_ok() {
                done = convert(&data[at * from..(at + n) * from], dtype, &mut out[at * to..(at + n) * to]);
            }
        });
        match done {
            Ok(()) => Ok(out),
            Err(BadValue::Range(cause)) => {
                Err(Unfit::Value(format!("{cause}, the type in which pixels of {} are read", self.name())))
            }
            Err(BadValue::Corrupt(cause)) => Err(Unfit::Value(cause.to_owned())),
        }
    }
}

impl Unfit {
    /// The error about the file that holds them.
    pub fn error(&self, path: &Path) -> Error {
        match self {
            Self::Memory(cause) => Error::new(path, cause),
            Self::Value(cause) => Error::new(path, cause).unsupported().hint(
                "number labels anew from 1, as skimage.segmentation.relabel_sequential does, or write the image as float64, \
                 which holds whole numbers up to 2^53",
            ),
        }
    }
}

impl Stored<f32> for f16 {
    #[inline]
    fn get(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("a value of this size"))
    }
    #[inline]
    fn narrow(self) -> (f32, bool) {
        (self.to_f32(), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_image::Shape;

    #[test]
    fn every_half_is_the_same_single() {
        let region = Shape::plane(256, 256).full();
        let halves: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut out = vec![];
        let singles = StoredType::F16.pixels(&halves, &region, &region, &mut out).unwrap();
        for (bits, single) in (0..=u16::MAX).zip(singles.as_chunks::<4>().0) {
            let (half, single) = (f16::from_bits(bits), f32::from_le_bytes(*single));
            assert!(f64::from(single).total_cmp(&half.to_f64()).is_eq() || single.is_nan() && half.is_nan());
        }
        // By hand: the smallest number, 1, the largest, and infinity.
        for (bits, expected) in
            [(1, 2f32.powi(-24)), (0x3c00, 1.0), (0x7bff, 65504.0), (0xfc00, f32::NEG_INFINITY)]
        {
            assert_eq!(singles[bits * 4..][..4], expected.to_le_bytes(), "{bits:x}");
        }
    }

    #[test]
    fn labels_of_64_bits_are_the_same_numbers() {
        let region = Shape::plane(1, 4).full();
        let mut out = vec![];
        let signed = [0, 7, i64::from(i32::MAX), i64::from(i32::MIN)];
        let data = signed.map(i64::to_le_bytes).concat();
        let pixels = StoredType::I64.pixels(&data, &region, &region, &mut out).unwrap();
        assert_eq!(pixels, [0, 7, i32::MAX, i32::MIN].map(i32::to_le_bytes).concat());
        let unsigned = [0, 7, u64::from(u32::MAX), 1 << 31];
        let data = unsigned.map(u64::to_le_bytes).concat();
        let pixels = StoredType::U64.pixels(&data, &region, &region, &mut out).unwrap();
        assert_eq!(pixels, [0, 7, u32::MAX, 1 << 31].map(u32::to_le_bytes).concat());
        let data = [1, 2, 3, 4];
        let same = StoredType::Pixel(PixelType::U8).pixels(&data, &region, &region, &mut out).unwrap();
        assert_eq!(same.as_ptr(), data.as_ptr());
    }

    #[test]
    fn values_that_do_not_fit_are_named_where_they_are_wanted() {
        let block = Shape::plane(2, 3).full();
        let mut out = vec![];
        for value in [1 << 31, -(1 << 31) - 1, i64::MAX, i64::MIN] {
            let data = [1, 2, value, 4, 5, 6].map(i64::to_le_bytes).concat();
            let unfit = StoredType::I64.pixels(&data, &block, &block, &mut out).unwrap_err();
            let error = unfit.error(Path::new("labels.tif")).row(3);
            assert!(error.is_unsupported());
            let said = error.to_string();
            let start = format!("labels.tif: row 3: the pixel value {value} does not fit int32");
            assert!(said.starts_with(&start) && said.contains("relabel_sequential"), "{said}");
            // The columns beside it, as a tile may jut out of its image.
            let wanted = Region { size: [1, 1, 1, 2, 2], ..block };
            let pixels = StoredType::I64.pixels(&data, &block, &wanted, &mut out).unwrap();
            let at = |i: usize| i32::from_le_bytes(pixels[i * 4..][..4].try_into().unwrap());
            assert_eq!([0, 1, 3, 4].map(at), [1, 2, 4, 5]);
        }
        let region = Shape::plane(1, 1).full();
        for value in [1 << 32, u64::MAX] {
            let unfit = StoredType::U64.pixels(&value.to_le_bytes(), &region, &region, &mut out).unwrap_err();
            let said = format!(
                "the pixel value {value} does not fit uint32, the type in which pixels of uint64 are read"
            );
            assert_eq!(unfit, Unfit::Value(said));
        }
    }
}
