//! Pixel types: the eight numeric types that OME knows and that models are fed with.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The numeric type of one pixel, as stored and as checksummed (little-endian).
///
/// Names follow NumPy and OME (`uint8`, `float32` …); see [`PixelType::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PixelType {
    /// Unsigned 8-bit integer.
    #[serde(rename = "uint8")]
    U8,
    /// Signed 8-bit integer.
    #[serde(rename = "int8")]
    I8,
    /// Unsigned 16-bit integer: what most microscope cameras write.
    #[serde(rename = "uint16")]
    U16,
    /// Signed 16-bit integer.
    #[serde(rename = "int16")]
    I16,
    /// Unsigned 32-bit integer.
    #[serde(rename = "uint32")]
    U32,
    /// Signed 32-bit integer.
    #[serde(rename = "int32")]
    I32,
    /// IEEE single precision.
    #[serde(rename = "float32")]
    F32,
    /// IEEE double precision.
    #[serde(rename = "float64")]
    F64,
}

impl PixelType {
    /// All pixel types, in order of definition.
    pub const ALL: [Self; 8] =
        [Self::U8, Self::I8, Self::U16, Self::I16, Self::U32, Self::I32, Self::F32, Self::F64];

    /// Bytes of one pixel: 1, 2, 4 or 8.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// The NumPy name: `uint8`, `int16`, `float32` …
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The name in OME-XML's `Pixels/@Type`: as [`Self::name`], but `float` and `double`.
    pub const fn ome_name(self) -> &'static str {
        match self {
            Self::F32 => "float",
            Self::F64 => "double",
            other => other.name(),
        }
    }

    /// The pixel number `index` of C-order little-endian `pixels`, as `f64`. For pictures and statistics, not
    /// for loading: one call per pixel is slow.
    ///
    /// # Panics
    /// When `index` is out of range.
    pub fn value_at(self, pixels: &[u8], index: usize) -> f64 {
        fn bytes<const N: usize>(pixels: &[u8], index: usize) -> [u8; N] {
            let mut out = [0; N];
            out.copy_from_slice(&pixels[index * N..(index + 1) * N]);
            out
        }
        match self {
            Self::U8 => f64::from(pixels[index]),
            Self::I8 => f64::from(i8::from_le_bytes(bytes(pixels, index))),
            Self::U16 => f64::from(u16::from_le_bytes(bytes(pixels, index))),
            Self::I16 => f64::from(i16::from_le_bytes(bytes(pixels, index))),
            Self::U32 => f64::from(u32::from_le_bytes(bytes(pixels, index))),
            Self::I32 => f64::from(i32::from_le_bytes(bytes(pixels, index))),
            Self::F32 => f64::from(f32::from_le_bytes(bytes(pixels, index))),
            Self::F64 => f64::from_le_bytes(bytes(pixels, index)),
        }
    }

    /// Whether the type is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Smallest and largest value of an integer type; `[0, 1]` by convention for floats.
    ///
    /// The loader scales to `[0, 1]` by these, the same for every image of a set. It never scales by an image's own
    /// maximum, which would scale a dark image differently from its neighbour.
    pub const fn range(self) -> (f64, f64) {
        match self {
            Self::U8 => (0.0, u8::MAX as f64),
            Self::I8 => (i8::MIN as f64, i8::MAX as f64),
            Self::U16 => (0.0, u16::MAX as f64),
            Self::I16 => (i16::MIN as f64, i16::MAX as f64),
            Self::U32 => (0.0, u32::MAX as f64),
            Self::I32 => (i32::MIN as f64, i32::MAX as f64),
            Self::F32 | Self::F64 => (0.0, 1.0),
        }
    }
}

impl fmt::Display for PixelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is no pixel type that wellread knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown pixel type {0:?}; known: uint8, int8, uint16, int16, uint32, int32, float32 (float), float64 (double)"
)]
pub struct UnknownPixelType(pub String);

impl FromStr for PixelType {
    type Err = UnknownPixelType;

    /// Accepts NumPy's names and OME's (`float`, `double`), in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "uint8" | "u8" => Ok(Self::U8),
            "int8" | "i8" => Ok(Self::I8),
            "uint16" | "u16" => Ok(Self::U16),
            "int16" | "i16" => Ok(Self::I16),
            "uint32" | "u32" => Ok(Self::U32),
            "int32" | "i32" => Ok(Self::I32),
            "float32" | "float" | "f32" => Ok(Self::F32),
            "float64" | "double" | "f64" => Ok(Self::F64),
            _ => Err(UnknownPixelType(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for dtype in PixelType::ALL {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(dtype.ome_name().parse(), Ok(dtype));
        }
        assert!("complex64".parse::<PixelType>().is_err());
    }
}
