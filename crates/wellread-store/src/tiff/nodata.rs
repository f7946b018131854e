//! The value of strips and tiles that were never written: that of the `GDAL_NODATA` tag, or 0.
//!
//! The tag is a number as text. One that the stored type does not hold counts as none, as in tifffile.

use crate::stored_type::StoredType;
use half::f16;
use wellread_image::PixelType;

/// The little-endian bytes of a pixel of this value, padded with zeros; zeros where the type does not hold it.
pub(super) fn pixel(text: &str, stored: StoredType) -> [u8; 8] {
    fn padded<const N: usize>(bytes: [u8; N]) -> [u8; 8] {
        let mut all = [0; 8];
        all[..N].copy_from_slice(&bytes);
        all
    }
    use StoredType::Pixel;
    // Some writers have a comma for the decimal point.
    let text = text.trim().replace(',', ".");
    let float = || text.parse::<f64>().ok();
    let found = match stored {
        Pixel(PixelType::U8) => text.parse::<u8>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::I8) => text.parse::<i8>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::U16) => text.parse::<u16>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::I16) => text.parse::<i16>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::U32) => text.parse::<u32>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::I32) => text.parse::<i32>().ok().map(|v| padded(v.to_le_bytes())),
        Pixel(PixelType::F32) => {
            let held = float().filter(|v| (*v as f32).is_finite() == v.is_finite());
            held.map(|v| padded((v as f32).to_le_bytes()))
        }
        Pixel(PixelType::F64) => float().map(|v| padded(v.to_le_bytes())),
        StoredType::U64 => text.parse::<u64>().ok().map(u64::to_le_bytes),
        StoredType::I64 => text.parse::<i64>().ok().map(i64::to_le_bytes),
        StoredType::F16 => {
            let held = float().filter(|v| f16::from_f64(*v).is_finite() == v.is_finite());
            held.map(|v| padded(f16::from_f64(v).to_le_bytes()))
        }
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_the_type_holds_are_its_pixels() {
        for (text, dtype, expected) in [
            ("255", PixelType::U8, 255.0),
            (" 7 ", PixelType::U8, 7.0),
            ("256", PixelType::U8, 0.0),
            ("-1", PixelType::U16, 0.0),
            ("65535", PixelType::U16, 65535.0),
            ("-9999", PixelType::I16, -9999.0),
            ("1.5", PixelType::I16, 0.0),
            ("-128", PixelType::I8, -128.0),
            ("4294967295", PixelType::U32, 4_294_967_295.0),
            ("-2147483648", PixelType::I32, -2_147_483_648.0),
            ("-9999", PixelType::F32, -9999.0),
            ("0,5", PixelType::F32, 0.5),
            ("-inf", PixelType::F32, f64::NEG_INFINITY),
            ("-1.7976931348623157e308", PixelType::F32, 0.0),
            ("-1.7976931348623157e308", PixelType::F64, f64::MIN),
            ("none", PixelType::F64, 0.0),
            ("", PixelType::U8, 0.0),
        ] {
            let value = dtype.value_at(&pixel(text, StoredType::Pixel(dtype))[..dtype.size()], 0);
            assert!(value.total_cmp(&expected).is_eq(), "{text:?} of {dtype}: {value}");
        }
        let nan = pixel("nan", StoredType::Pixel(PixelType::F32));
        assert!(PixelType::F32.value_at(&nan[..4], 0).is_nan());
        assert_eq!(pixel("-9223372036854775808", StoredType::I64), i64::MIN.to_le_bytes());
        assert_eq!(pixel("18446744073709551615", StoredType::U64), u64::MAX.to_le_bytes());
        assert_eq!(pixel("-1", StoredType::U64), [0; 8]);
        assert_eq!(pixel("-1.5", StoredType::F16)[..2], f16::from_f32(-1.5).to_le_bytes());
        assert_eq!(pixel("-9.5e9", StoredType::F16), [0; 8]);
    }
}
