//! The value of chunks that are not there, from an array's metadata.

use crate::stored_type::StoredType;
use half::f16;
use serde_json::Value;
use wellread_image::PixelType;

/// The fill value as one little-endian pixel: a number, `null` (v2: undefined, taken as zero), a boolean,
/// `NaN`, `Infinity`, `-Infinity`. For floats it may be the bits in hexadecimal.
pub(super) fn pixel(value: &Value, stored: StoredType) -> Result<[u8; 8], String> {
    match stored {
        StoredType::F16 | StoredType::Pixel(PixelType::F32 | PixelType::F64) => float(value, stored),
        StoredType::Pixel(dtype) => {
            let (low, high) = dtype.range();
            whole(value, stored, low as i128, high as i128)
        }
        StoredType::I64 => whole(value, stored, i64::MIN.into(), i64::MAX.into()),
        StoredType::U64 => whole(value, stored, 0, u64::MAX.into()),
    }
}

fn wrong(value: &Value, stored: StoredType) -> String {
    format!("fill value {value} does not fit {}", stored.name())
}

fn float(value: &Value, stored: StoredType) -> Result<[u8; 8], String> {
    let wrong = || wrong(value, stored);
    let number = match value {
        Value::Null => 0.0,
        Value::Number(n) => n.as_f64().ok_or_else(wrong)?,
        Value::String(s) => match s.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            hex => {
                let bits = hex.strip_prefix("0x").and_then(|h| u64::from_str_radix(h, 16).ok());
                let bits = bits.filter(|bits| bits.leading_zeros() as usize >= 64 - stored.size() * 8);
                return bits.map(u64::to_le_bytes).ok_or_else(wrong);
            }
        },
        _ => return Err(wrong()),
    };
    let mut bytes = [0; 8];
    match stored.size() {
        2 => bytes[..2].copy_from_slice(&f16::from_f64(number).to_le_bytes()),
        4 => bytes[..4].copy_from_slice(&(number as f32).to_le_bytes()),
        _ => bytes = number.to_le_bytes(),
    }
    Ok(bytes)
}

fn whole(value: &Value, stored: StoredType, low: i128, high: i128) -> Result<[u8; 8], String> {
    let number = match value {
        Value::Null => Some(0),
        Value::Bool(b) => Some(i128::from(*b)),
        // Some writers put 0.0 for integers.
        Value::Number(n) => n
            .as_i128()
            .or_else(|| n.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 1e15).map(|f| f as i128)),
        _ => None,
    };
    let number = number.filter(|number| (low..=high).contains(number)).ok_or_else(|| wrong(value, stored))?;
    // Two's complement: the low bytes of the 64-bit number are the number in any narrower type.
    Ok((number as u64).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fill_values() {
        let fill = |v: Value, stored: StoredType| pixel(&v, stored).map(|b| b[..stored.size()].to_vec());
        let of = StoredType::Pixel;
        assert_eq!(fill(json!(7), of(PixelType::U16)), Ok(vec![7, 0]));
        assert_eq!(fill(json!(-1), of(PixelType::I16)), Ok(vec![255, 255]));
        assert_eq!(fill(json!(0.0), of(PixelType::U8)), Ok(vec![0]));
        assert_eq!(fill(Value::Null, of(PixelType::I32)), Ok(vec![0; 4]));
        assert_eq!(fill(json!("NaN"), of(PixelType::F32)), Ok(f32::NAN.to_le_bytes().to_vec()));
        assert_eq!(fill(json!("0x3f800000"), of(PixelType::F32)), Ok(1f32.to_le_bytes().to_vec()));
        assert_eq!(fill(json!("0x3ff0000000000000"), of(PixelType::F64)), Ok(1f64.to_le_bytes().to_vec()));
        assert_eq!(fill(json!(i64::MIN), StoredType::I64), Ok(i64::MIN.to_le_bytes().to_vec()));
        assert_eq!(fill(json!(u64::MAX), StoredType::U64), Ok(vec![255; 8]));
        assert_eq!(fill(json!(-1.0), StoredType::I64), Ok(vec![255; 8]));
        assert_eq!(fill(json!(-2.0), StoredType::F16), Ok(vec![0, 0xc0]));
        assert_eq!(fill(json!("-Infinity"), StoredType::F16), Ok(vec![0, 0xfc]));
        assert_eq!(fill(json!("0x7e00"), StoredType::F16), Ok(vec![0, 0x7e]));
        for (value, stored) in [
            (json!(256), of(PixelType::U8)),
            (json!("0x100000000"), of(PixelType::F32)),
            (json!([1]), of(PixelType::U8)),
            (json!(-1), StoredType::U64),
            (json!(u64::MAX), StoredType::I64),
            (json!("0x10000"), StoredType::F16),
        ] {
            let error = fill(value.clone(), stored).unwrap_err();
            assert!(error.contains(&value.to_string()) && error.contains(stored.name()), "{error}");
        }
    }
}
