//! Pieces of columns, opened up so that rows can be gathered from them: bounds of lists as plain numbers, values as
//! they are compressed.
//!
//! The encodings that the library chooses by itself (bit-packing, frame of reference, constants …) are cut without
//! being decompressed. They decompress faster than memory takes the result. Those of its compact mode (Pco, Zstd)
//! have pages of thousands of values. So pieces of them are decompressed once, where all of them can be kept.

use crate::session::Cause;
use std::ops::Range;
use vortex::array::arrays::bool::BoolArrayExt;
use vortex::array::arrays::list::ListArraySlotsExt;
use vortex::array::arrays::listview::ListViewArraySlotsExt;
use vortex::array::arrays::{Bool, List, ListView, Primitive, PrimitiveArray, Struct};
use vortex::array::builtins::ArrayBuiltins;
use vortex::array::matcher::Matcher;
use vortex::array::{ArrayRef, Canonical, ExecutionCtx, IntoArray};
use vortex::buffer::{BitBuffer, ByteBuffer};
use vortex::dtype::{DType, FieldNames, Nullability, PType};
use vortex::mask::Mask;
use wellread_store::place;

/// Bytes of values up to which they are decompressed when the piece is opened: coordinates, sizes, flags.
const MAX_EAGER_BYTES: usize = 64 << 10;
/// The same, at most, for values whose encoding does not let single rows be decompressed cheaply.
const SMALL_ENOUGH: usize = 4 << 20;
/// The assumed size of a value of no fixed size.
const SOME_BYTES: usize = 16;

/// Some rows of a column.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Lists: of each row, where its elements begin and end.
    List { bounds: Box<[(usize, usize)]>, validity: Mask, elements: Box<Piece> },
    /// Structs, by their fields, which are named as those of all pieces of a column are: by the same memory.
    Struct { names: FieldNames, fields: Vec<Piece>, validity: Mask },
    /// Anything else.
    Leaf(Leaf),
}

/// Values of a piece.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub values: ArrayRef,
    /// Bytes of one value, decompressed.
    pub width: usize,
    /// Bytes of memory that decompressed values take.
    owned: usize,
    /// Bytes of the mapped file that values lie in, where they stay there.
    mapped: usize,
    /// Bytes of memory that they lie in instead, where the file is not mapped.
    held: usize,
    /// The values, where they are plain numbers and none is null.
    pub plain: Option<Plain>,
}

/// Values of which none is null.
#[derive(Debug)]
pub(crate) enum Plain {
    /// Numbers, one after the other.
    Each(PType, ByteBuffer),
    /// All are this number, of which the first bytes count. Coordinates and sizes of images are alike in most sets;
    /// looking a value up among a million would be waiting for memory.
    Same(PType, [u8; 8]),
    /// Truth values.
    Bits(BitBuffer),
}

impl Leaf {
    fn new(values: ArrayRef, width: usize, owned: usize, mapped: usize, is_tested: bool) -> Self {
        let plain = if is_tested { plain(&values, width, owned > 0) } else { None };
        Self { values, width, owned, mapped, held: 0, plain }
    }

    /// Has the processor fetch the first bytes of some rows that are going to be copied. Those of random images lie
    /// in no cache, and would be waited for one after the other.
    pub fn prefetch(&self, rows: &Range<usize>) {
        if let Some(Plain::Each(_, bytes)) = &self.plain
            && let Some(bytes) = bytes.get(rows.start * self.width..rows.end * self.width)
        {
            wellread_store::prefetch(bytes);
        }
    }

    /// Notes that some rows are read: their share of the bytes that the values lie in.
    pub fn count_read(&self, rows: usize) {
        if self.mapped == 0 {
            return;
        }
        let share = self.mapped as u128 * rows as u128 / self.values.len().max(1) as u128;
        place::count_read(share as usize);
    }
}

/// Values that can be copied as they are. Whether all of them are the same is looked at where they are `decompressed`;
/// values in the file are not touched before they are wanted.
fn plain(values: &ArrayRef, width: usize, decompressed: bool) -> Option<Plain> {
    if !values.validity().is_ok_and(|v| v.definitely_no_nulls()) {
        return None;
    }
    if let Some(bits) = values.as_opt::<Bool>() {
        return Some(Plain::Bits(bits.to_bit_buffer()));
    }
    let numbers = values.as_opt::<Primitive>()?;
    let bytes = numbers.buffer_handle().as_host_opt()?;
    if bytes.len() != values.len() * width {
        return None;
    }
    let same = if decompressed { same(bytes, width) } else { None };
    Some(match same {
        Some(number) => Plain::Same(numbers.ptype(), number),
        None => Plain::Each(numbers.ptype(), bytes.clone()),
    })
}

/// The number that all of `bytes` are, each of `width` bytes.
fn same(bytes: &[u8], width: usize) -> Option<[u8; 8]> {
    let first = bytes.get(..width)?;
    let mut one = [0; 8];
    one.get_mut(..width)?.copy_from_slice(first);
    // Each is as the one before.
    (bytes[width..] == bytes[..bytes.len() - width]).then_some(one)
}

/// How pieces are opened.
pub(crate) struct Opening<'a> {
    pub ctx: &'a mut ExecutionCtx,
    /// Most elements that a file of this size can have lists of; guards against corrupt numbers.
    pub limit: usize,
    /// The parts to decompress right away.
    pub decode: Decode,
    /// Whether values are copied as they lie. Else the library hands them on: see [`crate::file::OpenFile::is_tested`].
    pub is_tested: bool,
    /// Whether values lie in the mapped file. Else they take memory.
    pub is_mapped: bool,
}

/// The parts that are decompressed when a piece is opened.
#[derive(Clone, Copy)]
pub(crate) enum Decode {
    /// Nothing.
    Nothing,
    /// Small values, and values of which single rows cannot be decompressed cheaply, up to a number of bytes. As
    /// much may be kept of each piece that all can be kept. More would be decompressed again and again.
    UpTo(usize),
}

/// `List` or `ListView`.
struct AnyList;

impl Matcher for AnyList {
    type Match<'a> = ();

    fn try_match(array: &ArrayRef) -> Option<()> {
        (array.is::<List>() || array.is::<ListView>()).then_some(())
    }
}

impl Opening<'_> {
    /// Opens up an array.
    pub fn open(&mut self, array: ArrayRef) -> Result<Piece, Cause> {
        match array.dtype() {
            DType::List(..) => self.list(array),
            DType::Struct(..) => self.structure(array),
            _ => self.leaf(array).map(Piece::Leaf),
        }
    }

    fn list(&mut self, array: ArrayRef) -> Result<Piece, Cause> {
        let array = array.execute_until::<AnyList>(self.ctx)?;
        let len = array.len();
        let validity = self.validity(&array)?;
        let (elements, bounds): (_, Box<[_]>) = if let Some(list) = array.as_opt::<List>() {
            let offsets = self.integers(list.offsets())?;
            (list.elements().clone(), offsets.windows(2).map(|w| (w[0], w[1])).collect())
        } else if let Some(view) = array.as_opt::<ListView>() {
            let (offsets, sizes) = (self.integers(view.offsets())?, self.integers(view.sizes())?);
            let end = |(o, s): (usize, usize)| (o, o.saturating_add(s));
            (view.elements().clone(), offsets.into_iter().zip(sizes).map(end).collect())
        } else {
            return Err(format!("a list is encoded as {}, which is no list", array.encoding_id()).into());
        };
        let inside = bounds.iter().all(|&(start, end)| start <= end && end <= elements.len());
        if bounds.len() != len || !inside {
            return Err(Cause::from("lists reach beyond their elements".to_owned()));
        }
        Ok(Piece::List { bounds, validity, elements: Box::new(self.open(elements)?) })
    }

    fn structure(&mut self, array: ArrayRef) -> Result<Piece, Cause> {
        let array = array.execute_until::<Struct>(self.ctx)?;
        let validity = self.validity(&array)?;
        let Some(view) = array.as_opt::<Struct>() else {
            return Err(format!("a struct is encoded as {}, which is no struct", array.encoding_id()).into());
        };
        let parts = view.into_owned().into_data_parts();
        let names = parts.struct_fields.names().clone();
        let fields = parts.fields.into_iter().map(|field| self.open(field));
        Ok(Piece::Struct { names, fields: fields.collect::<Result<_, Cause>>()?, validity })
    }

    fn leaf(&mut self, values: ArrayRef) -> Result<Leaf, Cause> {
        let width = values.dtype().element_size();
        let bytes = values.len().saturating_mul(width.unwrap_or(SOME_BYTES));
        let bytes = if width.is_none() { bytes.saturating_add(values.nbytes() as usize) } else { bytes };
        let width = width.unwrap_or(SOME_BYTES);
        let decode = match self.decode {
            Decode::Nothing => false,
            Decode::UpTo(most) => {
                bytes <= MAX_EAGER_BYTES || (bytes <= most.min(SMALL_ENOUGH) && is_encoded_by_pages(&values))
            }
        };
        if decode {
            place::count_read(values.nbytes() as usize);
            let values = values.execute::<Canonical>(self.ctx)?.into_array();
            let owned = values.nbytes() as usize;
            return Ok(Leaf::new(values, width, owned, 0, self.is_tested));
        }
        let mapped = values.nbytes() as usize;
        let held = if self.is_mapped { 0 } else { mapped };
        Ok(Leaf { held, ..Leaf::new(values, width, 0, mapped, self.is_tested) })
    }

    fn validity(&mut self, array: &ArrayRef) -> Result<Mask, Cause> {
        self.plausible(array.len())?;
        Ok(array.validity()?.execute_mask(array.len(), self.ctx)?)
    }

    fn integers(&mut self, array: &ArrayRef) -> Result<Vec<usize>, Cause> {
        self.plausible(array.len())?;
        place::count_read(array.nbytes() as usize);
        // Negative numbers are refused by the cast.
        let array = array.cast(DType::Primitive(PType::U64, Nullability::NonNullable))?;
        let array = array.execute::<PrimitiveArray>(self.ctx)?;
        Ok(array.as_slice::<u64>().iter().map(|&n| usize::try_from(n)).collect::<Result<_, _>>()?)
    }

    fn plausible(&self, len: usize) -> Result<(), Cause> {
        if len > self.limit {
            return Err(format!("{len} lists or structs are more than the file can hold").into());
        }
        Ok(())
    }
}

/// Whether any encoding in an array is one of whole pages.
fn is_encoded_by_pages(array: &ArrayRef) -> bool {
    array.depth_first_traversal().any(|a| {
        let id = a.encoding_id();
        ["vortex.pco", "vortex.zstd", "vortex.zstd_buffers"].contains(&id.as_ref())
    })
}

impl Piece {
    /// Bytes of memory that it takes beside the mapped file.
    pub fn bytes(&self) -> usize {
        const NODE: usize = 512;
        NODE + match self {
            Self::List { bounds, elements, .. } => size_of_val(&**bounds) + elements.bytes(),
            Self::Struct { fields, .. } => fields.iter().map(Self::bytes).sum(),
            Self::Leaf(leaf) => leaf.owned + leaf.held,
        }
    }

    /// A piece that says it takes `owned` bytes.
    #[cfg(test)]
    pub fn of_bytes(owned: usize) -> Self {
        let values = PrimitiveArray::empty::<u8>(Nullability::NonNullable).into_array();
        Self::Leaf(Leaf::new(values, 1, owned, 0, true))
    }

    /// The values of the last leaf along a path of field names, through structs and lists.
    pub fn leaf(&self, path: &[&str]) -> Option<&Leaf> {
        match self {
            Self::List { elements, .. } => elements.leaf(path),
            Self::Struct { names, fields, .. } => {
                let (name, rest) = path.split_first()?;
                fields.get(names.iter().position(|n| n.as_ref() == *name)?)?.leaf(rest)
            }
            Self::Leaf(leaf) => Some(leaf),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_versions_that_were_not_tested_are_left_to_the_library() {
        let leaf = |is_tested| {
            let values = PrimitiveArray::empty::<u8>(Nullability::NonNullable).into_array();
            Leaf::new(values, 1, 0, 0, is_tested)
        };
        assert!(leaf(true).plain.is_some() && leaf(false).plain.is_none());
    }

    #[test]
    fn values_are_the_same_or_not() {
        assert_eq!(same(&[3, 0, 3, 0, 3, 0], 2), Some([3, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(same(&[3, 0, 3, 0, 3, 1], 2), None);
        assert_eq!(same(&[3, 0, 0, 3, 3, 0], 2), None);
        assert_eq!(same(&[7; 8], 8), Some([7; 8]));
        assert_eq!(same(&[], 4), None);
    }
}
