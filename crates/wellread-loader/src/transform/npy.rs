//! NumPy's files of one array, `.npy`, as CellProfiler writes illumination functions.

use std::path::Path;
use wellread_store::{Error, Result, place};

/// The beginning of a file.
const MAGIC: &[u8] = b"\x93NUMPY";
/// Bytes of a header at most.
const LONGEST_HEADER: usize = 1 << 16;

/// Whether a path is called so.
pub(super) fn is_one(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}

/// Planes, rows and columns of an array of two or three axes, and its values in C order; of `most` values at most.
///
/// # Errors
/// A file that cannot be read or is damaged, an array of other axes or of other numbers.
pub(super) fn read(path: &Path, most: usize) -> Result<([usize; 3], Vec<f32>)> {
    let cannot = |e: std::io::Error| Error::io(path, "cannot read", &e);
    let length = place::metadata(path).map_err(cannot)?.length;
    if length > (most * 8 + LONGEST_HEADER) as u64 {
        return Err(Error::new(path, format_args!("{length} bytes are too many for an illumination field")));
    }
    let bytes = place::read(path).map_err(cannot)?;
    parse(&bytes, most).map_err(|why| Error::new(path, format_args!("is no field as .npy: {why}")))
}

fn parse(bytes: &[u8], most: usize) -> Result<([usize; 3], Vec<f32>), String> {
    let cut = || "it ends too soon".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as NumPy's files do")?;
    let (start, length) = match rest {
        [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        [version, _, ..] => return Err(format!("it is of version {version}")),
        _ => return Err(cut()),
    };
    if length > LONGEST_HEADER {
        return Err(format!("its header has {length} bytes"));
    }
    let header = bytes.get(start..start + length).ok_or_else(cut)?;
    let data = &bytes[start + length..];
    let header = String::from_utf8_lossy(header);
    let value = |name: &str| {
        let (_, rest) = header.split_once(&format!("'{name}':"))?;
        Some(rest.trim_start())
    };
    let lacks = |name: &str| format!("its header has no {name}");
    let descr = value("descr").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
    let (descr, _) = descr.ok_or_else(|| lacks("descr"))?;
    let is_fortran = value("fortran_order").ok_or_else(|| lacks("fortran_order"))?.starts_with("True");
    let shape = value("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or_else(|| lacks("shape"))?;
    let axes = shape.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    let axes: Vec<usize> = axes
        .map(|axis| axis.parse().map_err(|_| format!("its shape is ({shape})")))
        .collect::<Result<_, _>>()?;
    let size = match axes[..] {
        [y, x] => [1, y, x],
        [c, y, x] => [c, y, x],
        _ => {
            return Err(format!(
                "its shape is ({shape}), and a field has (rows, columns) or one more before"
            ));
        }
    };
    let values = size.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)).filter(|&n| n <= most && n > 0);
    let values = values.ok_or_else(|| format!("a field of ({shape}) is too large, or empty"))?;
    let number = Number::of(descr).ok_or_else(|| {
        format!("its numbers are {descr}: write it with whole or real numbers (.astype(\"float32\"))")
    })?;
    let there = data.len();
    if there < values * number.size {
        return Err(format!("it has {there} bytes of numbers, and its shape needs {}", values * number.size));
    }
    let at = |i: usize| number.at(&data[i * number.size..(i + 1) * number.size]);
    if !is_fortran {
        return Ok((size, (0..values).map(at).collect()));
    }
    let [planes, rows, columns] = size;
    let order = (0..planes)
        .flat_map(|c| (0..rows).flat_map(move |y| (0..columns).map(move |x| c + planes * (y + rows * x))));
    Ok((size, order.map(at).collect()))
}

/// How a number is stored.
#[derive(Clone, Copy)]
struct Number {
    is_big: bool,
    kind: u8,
    size: usize,
}

impl Number {
    /// By NumPy's name, such as `<f8`.
    fn of(descr: &str) -> Option<Self> {
        let (is_big, kind, size) = match descr.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), kind, size] => (*order == b'>', *kind, *size),
            _ => return None,
        };
        let is_known =
            matches!((kind, size), (b'f', b'2' | b'4' | b'8') | (b'u' | b'i', b'1' | b'2' | b'4' | b'8'));
        is_known.then(|| Self { is_big, kind, size: usize::from(size - b'0') })
    }

    fn at(self, bytes: &[u8]) -> f32 {
        // Little-endian, at the beginning.
        let mut own = [0u8; 8];
        for (i, byte) in bytes.iter().enumerate() {
            own[if self.is_big { self.size - 1 - i } else { i }] = *byte;
        }
        let [a, b, c, d, ..] = own;
        match (self.kind, self.size) {
            (b'f', 2) => half(u16::from_le_bytes([a, b])),
            (b'f', 4) => f32::from_le_bytes([a, b, c, d]),
            (b'f', _) => f64::from_le_bytes(own) as f32,
            (b'u', _) => u64::from_le_bytes(own) as f32,
            (_, 1) => f32::from(a as i8),
            (_, 2) => f32::from(i16::from_le_bytes([a, b])),
            (_, 4) => i32::from_le_bytes([a, b, c, d]) as f32,
            _ => i64::from_le_bytes(own) as f32,
        }
    }
}

/// A number of half precision, which single precision holds.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from((bits >> 10) & 31), f32::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as NumPy writes it.
    fn file(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        while !(10 + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn arrays_are_read_in_their_order_and_type() {
        let doubles: Vec<u8> =
            [1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let read = |bytes: &[u8]| parse(bytes, 100).unwrap();
        let plain = read(&file("<f8", "False", "(2, 3)", &doubles));
        assert_eq!(plain, ([1, 2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let turned = read(&file("<f8", "True", "(2, 3)", &doubles));
        assert_eq!(turned, ([1, 2, 3], vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
        let turned = read(&file("<f8", "True", "(3, 1, 2)", &doubles));
        assert_eq!(turned, ([3, 1, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
        assert_eq!(read(&file(">i2", "False", "(1, 2)", &[0xff, 0xfe, 1, 0])).1, [-2.0, 256.0]);
        assert_eq!(read(&file("|u1", "False", "(1, 2)", &[255, 1])).1, [255.0, 1.0]);
        assert_eq!(
            read(&file("<i8", "False", "(1, 2)", &[[0xffu8; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat())).1,
            [-1.0, 2.0]
        );
        let halves = [0x3c00u16, 0xc000, 0x7bff, 0x0001, 0x7c00].map(u16::to_le_bytes).concat();
        let smallest = 2f32.powi(-24);
        let read_halves = read(&file("<f2", "False", "(1, 5)", &halves)).1;
        assert_eq!(read_halves, [1.0, -2.0, 65504.0, smallest, f32::INFINITY]);
        assert_eq!(read(&file(">f4", "False", "(1, 1)", &1.5f32.to_be_bytes())).1, [1.5]);
        // The second version has a longer number before its header.
        let first = file("|u1", "False", "(1, 1)", &[7]);
        let length = u32::from(u16::from_le_bytes([first[8], first[9]])).to_le_bytes();
        let second = [MAGIC, &[2, 0], &length, &first[10..]].concat();
        assert_eq!(read(&second).1, [7.0]);
    }

    #[test]
    fn what_is_no_field_is_said() {
        let refuse = |bytes: &[u8]| parse(bytes, 100).unwrap_err();
        assert!(refuse(b"abc").contains("begin"));
        assert!(refuse(&file("<f8", "False", "(2, 3)", &[0; 8])).contains("8 bytes of numbers"));
        assert!(refuse(&file("<c16", "False", "(1, 1)", &[0; 16])).contains("<c16"));
        assert!(refuse(&file("<f8", "False", "(4,)", &[0; 32])).contains("(4,)"));
        assert!(refuse(&file("<f8", "False", "(99, 99)", &[0; 8])).contains("too large"));
        assert!(refuse(&file("<f8", "False", "(18446744073709551615, 9)", &[])).contains("too large"));
        let whole = file("<f4", "False", "(1, 2)", &[0; 8]);
        for end in 0..whole.len() {
            assert!(parse(&whole[..end], 100).is_err(), "{end}");
        }
    }
}
