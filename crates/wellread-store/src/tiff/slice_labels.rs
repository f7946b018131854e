//! Labels of slices, which ImageJ writes into two tags of the first page and shows above each slice.
//!
//! ```text
//!  tag 50838   numbers of bytes: of the header, then of each value
//!  tag 50839   header (IJIJ, then a kind and how many values are of it, such as info 1, labl 6), then the values, kind by kind
//! ```
//!
//! Kinds and numbers are in the byte order of the file, and labels in its UTF-16. Compatible implementations: ImageJ, tifffile.

use super::endian::Endian;
use super::ifd::{FileView, Ifd, tag};

/// Values of a tag that are looked at. Outlines and colours of a large file lie behind the labels.
const MAX_VALUES: u64 = 1 << 18;

/// The labels of the planes of a stack, in their order; none of a file that has none, or has them in another form.
pub(super) fn read(view: &mut FileView<'_>, endian: Endian, ifd: &Ifd) -> Vec<String> {
    let mut numbers = |tag| ifd.numbers(view, endian, tag, MAX_VALUES).ok().flatten();
    let Some(lengths) = numbers(tag::IMAGE_J_BYTE_COUNTS) else { return vec![] };
    let bytes = numbers(tag::IMAGE_J_METADATA).unwrap_or_default();
    let bytes: Option<Vec<u8>> = bytes.into_iter().map(|byte| u8::try_from(byte).ok()).collect();
    bytes.and_then(|bytes| labels(&lengths, &bytes, endian)).unwrap_or_default()
}

fn labels(lengths: &[u64], bytes: &[u8], endian: Endian) -> Option<Vec<String>> {
    let (magic, kind_of_labels) = match endian {
        Endian::Big => (b"IJIJ", b"labl"),
        Endian::Little => (b"JIJI", b"lbal"),
    };
    let mut lengths = lengths.iter().map(|&length| usize::try_from(length).ok());
    let mut at = lengths.next()??;
    let kinds = bytes.get(..at)?.strip_prefix(magic)?;
    for kind in kinds.chunks_exact(8) {
        let is_label = kind.starts_with(kind_of_labels);
        let mut found = vec![];
        for _ in 0..endian.u32(&kind[4..]) {
            let end = at.checked_add(lengths.next()??)?;
            if is_label {
                found.push(first_line(bytes.get(at..end)?, endian));
            }
            at = end;
        }
        if is_label {
            return Some(found);
        }
    }
    None
}

/// A label as ImageJ shows it. Lines below the first are facts of the slice.
fn first_line(text: &[u8], endian: Endian) -> String {
    let units: Vec<u16> = text.chunks_exact(2).map(|unit| endian.u16(unit)).collect();
    let text = String::from_utf16_lossy(&units);
    let line = text.lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two tags of a stack with a text of information and these labels.
    fn tags(endian: Endian, written: &[&str]) -> (Vec<u64>, Vec<u8>) {
        let is_big = endian == Endian::Big;
        let number = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let text = |text: &str| -> Vec<u8> {
            let unit = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            text.encode_utf16().flat_map(unit).collect()
        };
        let kind = |name: &str| number(u32::from_be_bytes(name.as_bytes().try_into().unwrap()));
        let mut bytes =
            [kind("IJIJ"), kind("info"), number(1), kind("labl"), number(written.len() as u32)].concat();
        let mut lengths = vec![bytes.len() as u64];
        for value in ["About".to_owned()].into_iter().chain(written.iter().map(|&label| label.to_owned())) {
            let value = text(&value);
            lengths.push(value.len() as u64);
            bytes.extend(value);
        }
        (lengths, bytes)
    }

    #[test]
    fn labels_stand_behind_other_values() {
        for endian in [Endian::Big, Endian::Little] {
            let (lengths, bytes) = tags(endian, &["DAPI", "µ-GFP \nz = 1", ""]);
            assert_eq!(labels(&lengths, &bytes, endian).unwrap(), ["DAPI", "µ-GFP", ""]);
            // A file that is cut off or written otherwise has none.
            assert_eq!(labels(&lengths, &bytes[..bytes.len() - 1], endian), None);
            assert_eq!(labels(&lengths[..3], &bytes, endian), None);
            assert_eq!(labels(&[u64::MAX, u64::MAX], &bytes, endian), None);
            assert_eq!(labels(&lengths, &bytes[1..], endian), None);
            assert_eq!(labels(&[], &[], endian), None);
        }
    }
}
