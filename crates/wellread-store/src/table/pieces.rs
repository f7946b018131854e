//! Pixels of rows without Arrow arrays: what an engine that decodes them into memory of its own hands on.
//!
//! ```text
//!  file ──engine──▶ bytes of numbers, bounds of lists (used again from read to read) ──RowPieces──▶ Blocks
//! ```
//!
//! A record batch is a tree of arrays, and each of them is allocated. Where the pieces (chunks or planes) of a row are
//! asked for to be copied at once, that is the dearest part of reading a small image; so an engine may hand them on as they are.

use arrow_schema::DataType;

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

/// The pieces of one row: chunks or planes, as an engine has them in memory. Neither they nor their numbers nor pixels are
/// null. What is asked of a piece that is not there may panic.
pub trait RowPieces {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of a piece in the column that was asked for as number `column`, such as where it starts along X;
    /// `None` for one that is no whole number.
    fn number(&self, column: usize, piece: usize) -> Option<i64>;

    /// The pixels of a piece: the column that was asked for last.
    fn pixels(&self, piece: usize) -> Numbers<'_>;
}

#[cfg(test)]
mod tests {
    use super::*;

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
