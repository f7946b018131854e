//! Page headers, parsed from Thrift's compact protocol.
//!
//! This module parses only [`PageHeader`] and the offset index, from a byte slice that bounds every length. The
//! `parquet` crate parses the footer, but does not report whether columns are encrypted; this module reads that.
//! Specification: [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
//! and [compact protocol](https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).

use super::varint;

/// Encoding of values or levels, as numbered in `parquet.thrift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// `RLE_DICTIONARY`, and `PLAIN_DICTIONARY` on data pages: indices in the RLE/bit-packed hybrid.
    Dictionary,
    Rle,
    /// `DELTA_BINARY_PACKED`.
    Delta,
    ByteStreamSplit,
    /// Anything else; left to the general reader.
    Other(i32),
}

impl From<i32> for Encoding {
    fn from(code: i32) -> Self {
        match code {
            0 => Self::Plain,
            2 | 8 => Self::Dictionary,
            3 => Self::Rle,
            5 => Self::Delta,
            9 => Self::ByteStreamSplit,
            other => Self::Other(other),
        }
    }
}

/// The kind of the page behind a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Levels and values, compressed together.
    V1 { levels: [Encoding; 2] },
    /// Levels first, never compressed, then values.
    V2 { repetition_bytes: usize, definition_bytes: usize, compressed: bool },
    /// Values of the dictionary.
    Dictionary,
    /// An index page or a kind of page that is not known: skipped.
    Unknown,
}

/// The header in front of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub kind: PageKind,
    /// Bytes after decompression, levels included.
    pub uncompressed: usize,
    /// Bytes in the file after the header.
    pub compressed: usize,
    /// Number of levels, nulls included; of dictionary values in a dictionary page.
    pub values: usize,
    pub encoding: Encoding,
    /// CRC-32 of the bytes in the file after the header.
    pub crc: Option<u32>,
    /// Bytes of the header itself.
    pub length: usize,
}

/// Why a header could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// The slice ends within the header: give more bytes.
    Short,
    /// No valid header, whatever follows.
    Corrupt(&'static str),
}

impl PageHeader {
    /// Parses the header at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut input = Input { bytes, at: 0 };
        let (mut kind, mut uncompressed, mut compressed, mut crc) = (None, None, None, None);
        let (mut v1, mut v2, mut dictionary) = (None, None, None);
        let mut last = 0;
        while let Some((id, ty)) = input.field(&mut last)? {
            match (id, ty) {
                (1, I32) => kind = Some(input.i32()?),
                (2, I32) => uncompressed = Some(input.size()?),
                (3, I32) => compressed = Some(input.size()?),
                (4, I32) => crc = Some(input.i32()? as u32),
                (5, STRUCT) => v1 = Some(input.numbers()?),
                (7, STRUCT) => dictionary = Some(input.numbers()?),
                (8, STRUCT) => v2 = Some(input.numbers()?),
                _ => input.skip(ty, 0)?,
            }
        }
        let missing = HeaderError::Corrupt("a required field of the page header is missing");
        let size = |n: Option<i32>| n.and_then(|n| usize::try_from(n).ok()).ok_or(missing);
        let (kind, values, encoding) = match kind.ok_or(missing)? {
            0 => {
                let [n, encoding, def, rep, ..] = v1.ok_or(missing)?;
                let levels = [rep.ok_or(missing)?.into(), def.ok_or(missing)?.into()];
                (PageKind::V1 { levels }, size(n)?, encoding.ok_or(missing)?)
            }
            2 => {
                let [n, encoding, ..] = dictionary.ok_or(missing)?;
                (PageKind::Dictionary, size(n)?, encoding.ok_or(missing)?)
            }
            3 => {
                let [n, _, _, encoding, def, rep, compressed] = v2.ok_or(missing)?;
                let kind = PageKind::V2 {
                    repetition_bytes: size(rep)?,
                    definition_bytes: size(def)?,
                    compressed: compressed != Some(0),
                };
                (kind, size(n)?, encoding.ok_or(missing)?)
            }
            _ => (PageKind::Unknown, 0, 0),
        };
        Ok(Self {
            kind,
            uncompressed: uncompressed.ok_or(missing)?,
            compressed: compressed.ok_or(missing)?,
            values,
            encoding: encoding.into(),
            crc,
            length: input.at,
        })
    }
}

/// `header`, which has no checksum and whose fields are in order, of a page of `compressed` bytes with the checksum `crc`, if there
/// is one. It is `None` where it is not so.
pub(super) fn of_bytes(header: &[u8], compressed: i32, crc: Option<u32>) -> Option<Vec<u8>> {
    const STEP: u8 = 0x10;
    let (mut at, mut size) = (0, 0);
    // Kind of page and the two sizes come first, each one field further and of up to five bytes.
    for _ in 0..3 {
        if header.get(at) != Some(&(STEP | I32)) {
            return None;
        }
        size = at;
        let number = &header[at + 1..];
        at += 2 + number.iter().position(|byte| byte & 0x80 == 0)?;
    }
    let (&next, after) = header[at..].split_first()?;
    if next < 2 * STEP {
        return None;
    }
    let mut out = header[..size].to_vec();
    put_i32(&mut out, STEP | I32, compressed);
    if let Some(crc) = crc {
        put_i32(&mut out, STEP | I32, crc as i32);
        // The field behind it is one less further.
        out.push(next - STEP);
    } else {
        out.push(next);
    }
    out.extend_from_slice(after);
    Some(out)
}

/// Appends a field that is a number of 32 bits.
fn put_i32(out: &mut Vec<u8>, field: u8, number: i32) {
    out.push(field);
    let mut rest = ((number << 1) ^ (number >> 31)) as u32;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Where a page of a column chunk is, as the offset index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageLocation {
    /// Offset of its header in the file.
    pub offset: u64,
    /// Bytes in the file, header included.
    pub size: u32,
    /// Index within the row group of its first row; a page begins with a row.
    pub first_row: u64,
}

/// Parses an `OffsetIndex`.
pub(super) fn page_locations(bytes: &[u8]) -> Result<Vec<PageLocation>, HeaderError> {
    let missing = HeaderError::Corrupt("a required field of the offset index is missing");
    let mut input = Input { bytes, at: 0 };
    let mut last = 0;
    let mut locations = vec![];
    while let Some((id, ty)) = input.field(&mut last)? {
        if (id, ty) != (1, LIST) {
            input.skip(ty, 0)?;
            continue;
        }
        let (n, element) = input.list()?;
        if element != STRUCT {
            return Err(missing);
        }
        // Each takes bytes of the input: a declared length cannot make this loop outrun it.
        for _ in 0..n {
            let (mut offset, mut size, mut first_row) = (None, None, None);
            let mut last = 0;
            while let Some((id, ty)) = input.field(&mut last)? {
                match (id, ty) {
                    (1, I64) => offset = u64::try_from(input.zigzag()?).ok(),
                    (2, I32) => size = u32::try_from(input.zigzag()?).ok(),
                    (3, I64) => first_row = u64::try_from(input.zigzag()?).ok(),
                    _ => input.skip(ty, 0)?,
                }
            }
            let (offset, size) = (offset.ok_or(missing)?, size.ok_or(missing)?);
            locations.push(PageLocation { offset, size, first_row: first_row.ok_or(missing)? });
        }
    }
    Ok(locations)
}

/// Whether a footer, readable itself, says that columns are encrypted.
pub(super) fn has_encrypted_columns(footer: &[u8]) -> bool {
    /// `encryption_algorithm` of `FileMetaData`.
    const ALGORITHM: i64 = 8;
    let mut input = Input { bytes: footer, at: 0 };
    let mut last = 0;
    while let Ok(Some((id, ty))) = input.field(&mut last) {
        if (id, ty) == (ALGORITHM, STRUCT) {
            return true;
        }
        if input.skip(ty, 0).is_err() {
            break;
        }
    }
    false
}

// Type codes of the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, HeaderError> {
        let byte = *self.bytes.get(self.at).ok_or(HeaderError::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn advance(&mut self, n: u64) -> Result<(), HeaderError> {
        let n = usize::try_from(n).map_err(|_| HeaderError::Corrupt("absurd length in a page header"))?;
        self.at = self.at.checked_add(n).filter(|&at| at <= self.bytes.len()).ok_or(HeaderError::Short)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, HeaderError> {
        varint::unsigned(|| self.byte(), HeaderError::Corrupt("a number in the page header does not end"))
    }

    fn zigzag(&mut self) -> Result<i64, HeaderError> {
        self.varint().map(varint::signed)
    }

    fn i32(&mut self) -> Result<i32, HeaderError> {
        i32::try_from(self.zigzag()?)
            .map_err(|_| HeaderError::Corrupt("a number in the page header exceeds 32 bits"))
    }

    fn size(&mut self) -> Result<usize, HeaderError> {
        usize::try_from(self.i32()?).map_err(|_| HeaderError::Corrupt("a page declares a negative size"))
    }

    /// Next field's id and type; `None` at the end of the struct.
    fn field(&mut self, last: &mut i64) -> Result<Option<(i64, u8)>, HeaderError> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match i64::from(byte >> 4) {
            0 => self.zigzag()?,
            delta => last.wrapping_add(delta),
        };
        Ok(Some((*last, byte & 0x0f)))
    }

    /// The integer and boolean fields 1 to 7 of a struct, by id; others are skipped.
    fn numbers(&mut self) -> Result<[Option<i32>; 7], HeaderError> {
        let mut out = [None; 7];
        let mut last = 0;
        while let Some((id, ty)) = self.field(&mut last)? {
            let slot = id.checked_sub(1).and_then(|i| usize::try_from(i).ok()).and_then(|i| out.get_mut(i));
            match (slot, ty) {
                (Some(slot), I32) => *slot = Some(self.i32()?),
                (Some(slot), TRUE | FALSE) => *slot = Some(i32::from(ty == TRUE)),
                (_, ty) => self.skip(ty, 0)?,
            }
        }
        Ok(out)
    }

    fn skip(&mut self, ty: u8, depth: usize) -> Result<(), HeaderError> {
        if depth > 16 {
            return Err(HeaderError::Corrupt("the page header is nested too deeply"));
        }
        match ty {
            TRUE | FALSE => Ok(()),
            I8 => self.advance(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.advance(8),
            BINARY => {
                let n = self.varint()?;
                self.advance(n)
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, ty)) = self.field(&mut last)? {
                    self.skip(ty, depth + 1)?;
                }
                Ok(())
            }
            LIST | SET => {
                let (n, element) = self.list()?;
                self.skip_elements(n, &[element], depth)
            }
            MAP => {
                let n = self.varint()?;
                if n == 0 {
                    return Ok(());
                }
                let types = self.byte()?;
                self.skip_elements(n, &[types >> 4, types & 0x0f], depth)
            }
            _ => Err(HeaderError::Corrupt("the page header has a field of unknown type")),
        }
    }

    /// Number and type of a list's elements.
    fn list(&mut self) -> Result<(u64, u8), HeaderError> {
        let head = self.byte()?;
        let n = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((n, head & 0x0f))
    }

    fn skip_elements(&mut self, n: u64, types: &[u8], depth: usize) -> Result<(), HeaderError> {
        for _ in 0..n {
            for &ty in types {
                // A boolean is a whole byte inside a list, and so takes input like everything else. A
                // declared length cannot make this loop outrun the slice.
                if matches!(ty, TRUE | FALSE) {
                    self.advance(1)?;
                } else {
                    self.skip(ty, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
