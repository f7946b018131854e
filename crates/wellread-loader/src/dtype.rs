//! The types of the numbers of a batch. [`Output`] is the choice, [`DType`] the result, [`Element`] the Rust
//! types that a batch's memory can be seen as.

use half::slice::HalfBitsSliceExt;
use std::fmt;
use std::str::FromStr;
use wellread_image::PixelType;

/// The type that a loader delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Output {
    /// IEEE single precision.
    #[default]
    F32,
    /// IEEE half precision: computed in `f32`, then rounded to nearest, ties to even. Beyond 65504 it is infinite.
    F16,
    /// The upper half of a `f32`: computed in `f32`, then rounded to nearest, ties to even.
    BF16,
    /// As stored: a quarter (`uint8`) or half (`uint16`) of the bytes of `f32` to move; scaling is left to the device.
    Stored,
}

impl Output {
    /// The type of the batches of a set of `stored` pixels.
    pub const fn dtype(self, stored: PixelType) -> DType {
        match (self, stored) {
            (Self::F32, _) | (Self::Stored, PixelType::F32) => DType::F32,
            (Self::F16, _) => DType::F16,
            (Self::BF16, _) => DType::BF16,
            (Self::Stored, PixelType::U8) => DType::U8,
            (Self::Stored, PixelType::I8) => DType::I8,
            (Self::Stored, PixelType::U16) => DType::U16,
            (Self::Stored, PixelType::I16) => DType::I16,
            (Self::Stored, PixelType::U32) => DType::U32,
            (Self::Stored, PixelType::I32) => DType::I32,
            (Self::Stored, PixelType::F64) => DType::F64,
        }
    }
}

impl FromStr for Output {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "float32" => Ok(Self::F32),
            "float16" => Ok(Self::F16),
            "bfloat16" => Ok(Self::BF16),
            "stored" => Ok(Self::Stored),
            _ => Err(format!("{name:?} is no output type; choose float32, float16, bfloat16 or stored")),
        }
    }
}

/// The type of a batch's numbers, little-endian as everywhere in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 16-bit integer.
    I16,
    /// Unsigned 32-bit integer.
    U32,
    /// Signed 32-bit integer.
    I32,
    /// IEEE half precision.
    F16,
    /// The upper half of a `f32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// The pixel type of the same numbers, or the name of a half precision, which no image is stored in.
    const fn stored(self) -> Result<PixelType, &'static str> {
        match self {
            Self::U8 => Ok(PixelType::U8),
            Self::I8 => Ok(PixelType::I8),
            Self::U16 => Ok(PixelType::U16),
            Self::I16 => Ok(PixelType::I16),
            Self::U32 => Ok(PixelType::U32),
            Self::I32 => Ok(PixelType::I32),
            Self::F32 => Ok(PixelType::F32),
            Self::F64 => Ok(PixelType::F64),
            Self::F16 => Err("float16"),
            Self::BF16 => Err("bfloat16"),
        }
    }

    /// Bytes of one number.
    pub const fn size(self) -> usize {
        match self.stored() {
            Ok(pixel) => pixel.size(),
            Err(_half) => 2,
        }
    }

    /// The name in NumPy and torch: `uint8`, `float16`, `bfloat16` …
    pub const fn name(self) -> &'static str {
        match self.stored() {
            Ok(pixel) => pixel.name(),
            Err(half) => half,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that a batch's memory can be seen as.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// Its type.
    const DTYPE: DType;

    /// Bytes of a batch as numbers.
    ///
    /// # Panics
    /// When the bytes are not aligned for the type, or end in the middle of a number.
    #[doc(hidden)]
    fn cast(bytes: &[u8]) -> &[Self];
}

macro_rules! element {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn cast(bytes: &[u8]) -> &[Self] {
                bytemuck::cast_slice(bytes)
            }
        }
    )*};
}
element!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, f64 => F64);

macro_rules! half_element {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            fn cast(bytes: &[u8]) -> &[Self] {
                bytemuck::cast_slice::<u8, u16>(bytes).reinterpret_cast()
            }
        }
    )*};
}
half_element!(half::f16 => F16, half::bf16 => BF16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_keeps_its_name_and_size() {
        for pixel in PixelType::ALL {
            let dtype = Output::Stored.dtype(pixel);
            assert_eq!((dtype.name(), dtype.size()), (pixel.name(), pixel.size()));
        }
        for (output, name) in [(Output::F16, "float16"), (Output::BF16, "bfloat16")] {
            let dtype = output.dtype(PixelType::U16);
            assert_eq!((dtype.name(), dtype.size()), (name, 2));
            assert_eq!(name.parse(), Ok(output));
        }
    }
}
