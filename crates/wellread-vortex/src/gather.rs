//! Arrow arrays of chosen rows from pieces of columns: lists' bounds are added up, values decompressed straight
//! into the new array.

use crate::piece::{Leaf, Piece, Plain};
use crate::session::Cause;
use crate::types::Type;
use std::ops::Range;
use std::sync::Arc;
use vortex::array::arrays::ChunkedArray;
use vortex::array::{ExecutionCtx, IntoArray};
use vortex::arrow::ArrowSessionExt;
use vortex::dtype::{FieldNames, PType};
use vortex::mask::Mask;
use vortex::session::VortexSession;
use wellread_store::direct::{WantedFields, joined};
use wellread_store::table::arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use wellread_store::table::arrow_array::{
    Array, ArrayRef as ArrowArray, BooleanArray, ListArray, PrimitiveArray, StructArray, new_empty_array,
};
use wellread_store::table::arrow_buffer::{
    ArrowNativeType, BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use wellread_store::table::arrow_schema::{DataType, Field, FieldRef};

/// Bytes of values above which memory is asked for before the library takes it, which ends the process where it is
/// refused.
const LARGE_ALLOCATION: usize = 64 << 20;

/// Some rows of a piece.
pub(crate) struct Part<'a> {
    pub piece: &'a Piece,
    pub rows: Range<usize>,
}

/// Lists in lists that [`prefetch`] goes into, at most: pixels in chunks of an image.
pub(crate) const LEVELS: usize = 2;

/// Has the processor fetch what lies below so many lists of some rows: bounds of lists, first bytes of values. The bounds of
/// the lists above them are read.
pub(crate) fn prefetch(piece: &Piece, rows: &Range<usize>, wanted: &WantedFields, level: usize) {
    match piece {
        Piece::List { bounds, elements, .. } => match (level.checked_sub(1), bounds.get(rows.clone())) {
            (None, Some(bounds)) => wellread_store::prefetch(bounds),
            (Some(level), Some(&[(start, end)])) => prefetch(elements, &(start..end), wanted, level),
            // Those of several rows lie together.
            _ => {}
        },
        Piece::Struct { names, fields, .. } => {
            for (name, field) in names.iter().zip(fields) {
                if let Some(wanted) = wanted.field(name.as_ref()) {
                    prefetch(field, rows, wanted, level);
                }
            }
        }
        Piece::Leaf(leaf) if level == 0 => leaf.prefetch(rows),
        Piece::Leaf(_) => {}
    }
}

/// Bytes that rows of a piece become.
pub(crate) fn weight(piece: &Piece, rows: &Range<usize>, wanted: &WantedFields) -> usize {
    match piece {
        Piece::List { bounds, elements, .. } => {
            let bounds = &bounds[rows.clone()];
            let below = if let [(start, end)] = *bounds {
                weight(elements, &(start..end), wanted)
            } else {
                let lists = joined(bounds.iter().map(|&(start, end)| start..end));
                lists.iter().map(|list| weight(elements, list, wanted)).sum()
            };
            below + 4 * rows.len()
        }
        Piece::Struct { names, fields, .. } => {
            let fields = names.iter().zip(fields);
            fields.map(|(name, f)| wanted.field(name.as_ref()).map_or(0, |w| weight(f, rows, w))).sum()
        }
        Piece::Leaf(leaf) => rows.len().saturating_mul(leaf.width),
    }
}

/// Gathers rows into Arrow arrays.
pub(crate) struct Gather<'a> {
    pub session: &'a VortexSession,
    pub ctx: ExecutionCtx,
    pub pool: &'a mut BufferPool,
}

impl Gather<'_> {
    /// The rows of all parts, one after the other, as an array of a type, which may have fewer fields than they.
    pub fn array(&mut self, parts: &[Part<'_>], of: &Type) -> Result<ArrowArray, Cause> {
        match of.field.data_type() {
            DataType::List(_) => self.list(parts, of.below.first().ok_or_else(|| differs("list"))?),
            DataType::Struct(_) => self.structure(parts, of),
            _ => self.leaf(parts, of),
        }
    }

    fn list(&mut self, parts: &[Part<'_>], element: &Type) -> Result<ArrowArray, Cause> {
        let rows = parts.iter().map(|part| part.rows.len()).sum::<usize>();
        // A corrupt file may say any number.
        let mut offsets = Vec::with_capacity(rows.min(1 << 16) + 1);
        offsets.push(0i32);
        let mut end = 0usize;
        let mut inner = Vec::with_capacity(parts.len());
        let mut valid = Vec::with_capacity(parts.len());
        for part in parts {
            let Piece::List { bounds, validity, elements } = part.piece else { return Err(differs("list")) };
            let bounds = &bounds[part.rows.clone()];
            for (start, stop) in bounds {
                end += stop - start;
                offsets.push(
                    i32::try_from(end)
                        .map_err(|_| "an image has more than 2,147,483,647 values".to_owned())?,
                );
            }
            if let &[(start, stop)] = bounds {
                inner.extend((start < stop).then_some(Part { piece: elements, rows: start..stop }));
            } else {
                let ranges = joined(bounds.iter().map(|&(start, stop)| start..stop));
                inner.extend(ranges.into_iter().map(|rows| Part { piece: elements, rows }));
            }
            valid.push((validity, part.rows.clone()));
        }
        let values = self.array(&inner, element)?;
        let element = field_of(&element.field, &values);
        // SAFETY: they start at 0 and were only ever added to.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
        Ok(Arc::new(ListArray::try_new(element, offsets, values, nulls(&valid))?))
    }

    fn structure(&mut self, parts: &[Part<'_>], of: &Type) -> Result<ArrowArray, Cause> {
        let mut valid = Vec::with_capacity(parts.len());
        let mut opened = Vec::with_capacity(parts.len());
        for part in parts {
            let Piece::Struct { validity, names, fields } = part.piece else { return Err(differs("struct")) };
            valid.push((validity, part.rows.clone()));
            opened.push((names, fields));
        }
        let mut arrays = Vec::with_capacity(of.below.len());
        let mut inner = Vec::with_capacity(parts.len());
        for child in &of.below {
            inner.clear();
            let name = child.field.name();
            // Where the field is in the part before, whose names are the same but in strange files.
            let mut at: Option<(&FieldNames, usize)> = None;
            for (part, (names, fields)) in parts.iter().zip(&opened) {
                let index = match at {
                    Some((before, index)) if before == *names => index,
                    _ => names.iter().position(|n| n.as_ref() == name).ok_or_else(|| differs("struct"))?,
                };
                at = Some((names, index));
                let piece = fields.get(index).ok_or_else(|| differs("struct"))?;
                inner.push(Part { piece, rows: part.rows.clone() });
            }
            arrays.push(self.array(&inner, child)?);
        }
        let len = parts.iter().map(|p| p.rows.len()).sum();
        structure(of, arrays, nulls(&valid), len)
    }

    fn leaf(&mut self, parts: &[Part<'_>], of: &Type) -> Result<ArrowArray, Cause> {
        let mut leaves = Vec::with_capacity(parts.len());
        for part in parts {
            let Piece::Leaf(leaf) = part.piece else { return Err(differs("plain value")) };
            leaf.count_read(part.rows.len());
            leaves.push((leaf, &part.rows));
        }
        let Some((first, rows)) = leaves.first() else { return Ok(new_empty_array(of.field.data_type())) };
        let bytes = leaves.iter().map(|(leaf, rows)| rows.len().saturating_mul(leaf.width)).sum::<usize>();
        if bytes > LARGE_ALLOCATION && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            return Err(format!("not enough memory for {bytes} bytes").into());
        }
        if let Some(array) = plain_values(&leaves, bytes, of.field.data_type(), self.pool) {
            return Ok(array);
        }
        let array = if leaves.len() == 1 {
            first.values.slice((*rows).clone())?
        } else {
            let slices = leaves.iter().map(|(leaf, rows)| leaf.values.slice((*rows).clone()));
            let slices = slices.collect::<Result<Vec<_>, _>>()?;
            ChunkedArray::try_new(slices, first.values.dtype().clone())?.into_array()
        };
        Ok(crate::bridge::import_array(&self.session.arrow().execute_arrow(
            array,
            Some(&of.theirs),
            &mut self.ctx,
        )?)?)
    }
}

/// The field of an array: the one that is known, unless the library has made something else of its type.
fn field_of(known: &FieldRef, array: &ArrowArray) -> FieldRef {
    if known.data_type() == array.data_type() {
        Arc::clone(known)
    } else {
        Arc::new(Field::new(known.name(), array.data_type().clone(), known.is_nullable()))
    }
}

/// A struct array of arrays, one for each field of its type.
pub(crate) fn structure(
    of: &Type,
    arrays: Vec<ArrowArray>,
    nulls: Option<NullBuffer>,
    len: usize,
) -> Result<ArrowArray, Cause> {
    let known = match of.field.data_type() {
        DataType::Struct(fields)
            if fields.iter().zip(&arrays).all(|(field, array)| field.data_type() == array.data_type()) =>
        {
            fields.clone()
        }
        _ => of.below.iter().zip(&arrays).map(|(below, array)| field_of(&below.field, array)).collect(),
    };
    Ok(Arc::new(StructArray::try_new_with_length(known, arrays, nulls, len)?))
}

/// The values of all ranges, where they are plain ones of the type that is asked for. They are copied together, or, of
/// one range, left where they lie.
fn plain_values(
    leaves: &[(&Leaf, &Range<usize>)],
    bytes: usize,
    data_type: &DataType,
    pool: &mut BufferPool,
) -> Option<ArrowArray> {
    let (first, _) = leaves.first()?;
    if *data_type == DataType::Boolean {
        return together_bits(leaves);
    }
    let (Plain::Same(ptype, _) | Plain::Each(ptype, _)) = first.plain.as_ref()? else { return None };
    macro_rules! array_of {
        ($($ptype:ident => $numbers:ident),*) => {
            match ptype {
                $(PType::$ptype if $numbers::DATA_TYPE == *data_type => {
                    let there = in_place::<<$numbers as ArrowPrimitiveType>::Native>(leaves);
                    let values = match there {
                        Some(values) => values,
                        None => ScalarBuffer::from(together(leaves, *ptype, bytes, pool)?),
                    };
                    Some(Arc::new(PrimitiveArray::<$numbers>::new(values, None)))
                })*
                _ => None,
            }
        };
    }
    array_of!(
        U8 => UInt8Type, U16 => UInt16Type, U32 => UInt32Type, U64 => UInt64Type,
        I8 => Int8Type, I16 => Int16Type, I32 => Int32Type, I64 => Int64Type,
        F16 => Float16Type, F32 => Float32Type, F64 => Float64Type
    )
}

/// The values of a single range where they lie, which has to be where such values may. Few are copied for less.
fn in_place<T: ArrowNativeType>(leaves: &[(&Leaf, &Range<usize>)]) -> Option<ScalarBuffer<T>> {
    let [(Leaf { plain: Some(Plain::Each(_, values)), width, .. }, rows)] = leaves else { return None };
    let bytes = rows.start * width..rows.end * width;
    if bytes.len() < BufferPool::MIN_KEPT_BYTES || bytes.end > values.len() || *width != size_of::<T>() {
        return None;
    }
    let buffer = Buffer::from(values.slice_unaligned(bytes).into_bytes());
    (buffer.as_ptr().align_offset(align_of::<T>()) == 0).then(|| ScalarBuffer::from(buffer))
}

/// The truth values of all ranges; `None` where any range is of something else.
fn together_bits(leaves: &[(&Leaf, &Range<usize>)]) -> Option<ArrowArray> {
    let mut out = BooleanBufferBuilder::new(leaves.iter().map(|(_, rows)| rows.len()).sum());
    for (leaf, rows) in leaves {
        let Some(Plain::Bits(bits)) = &leaf.plain else { return None };
        if rows.end > bits.len() {
            return None;
        }
        (rows.start..rows.end).for_each(|row| out.append(bits.value(row)));
    }
    Some(Arc::new(BooleanArray::new(out.finish(), None)))
}

/// The bytes of all ranges, one after the other; `None` where any is of another type or not plain.
fn together(
    leaves: &[(&Leaf, &Range<usize>)],
    ptype: PType,
    bytes: usize,
    pool: &mut BufferPool,
) -> Option<Buffer> {
    let mut out = pool.take(bytes);
    for (leaf, rows) in leaves {
        match leaf.plain.as_ref()? {
            Plain::Each(own, values) if *own == ptype => {
                out.extend_from_slice(values.get(rows.start * leaf.width..rows.end * leaf.width)?);
            }
            Plain::Same(own, value) if *own == ptype => {
                let value = value.get(..leaf.width)?;
                (rows.start..rows.end).for_each(|_| out.extend_from_slice(value));
            }
            _ => return None,
        }
    }
    Some(pool.lend(out))
}

/// Memory for values, which comes back when the batch that they are in is gone. A loader hands it from one read to the next
/// ([`wellread_store::FormatContext`]).
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<MutableBuffer>,
    lent: Vec<Buffer>,
}

impl BufferPool {
    /// Bytes from which on a buffer is kept; the allocator has smaller ones at hand.
    const MIN_KEPT_BYTES: usize = 4 << 10;
    /// Bytes of a buffer that is kept, at most.
    const KEPT: usize = 8 << 20;

    /// An empty buffer for so many bytes.
    fn take(&mut self, bytes: usize) -> MutableBuffer {
        let kept = if bytes < Self::MIN_KEPT_BYTES { None } else { self.free.pop() };
        let mut out = kept.unwrap_or_else(|| MutableBuffer::with_capacity(bytes));
        out.clear();
        out.reserve(bytes);
        out
    }

    /// The buffer's bytes, for a batch.
    fn lend(&mut self, filled: MutableBuffer) -> Buffer {
        let large = (Self::MIN_KEPT_BYTES..=Self::KEPT).contains(&filled.len());
        let filled = Buffer::from(filled);
        if large {
            self.lent.push(filled.clone());
        }
        filled
    }

    /// Takes back what is in no batch any more.
    pub fn take_back(&mut self) {
        self.free.extend(self.lent.drain(..).filter_map(|buffer| buffer.into_mutable().ok()));
    }
}

/// Which of the rows are null; `None` where none is.
fn nulls(parts: &[(&Mask, Range<usize>)]) -> Option<NullBuffer> {
    if parts.iter().all(|(mask, _)| mask.all_true()) {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(parts.iter().map(|(_, rows)| rows.len()).sum());
    for (mask, rows) in parts {
        for row in rows.clone() {
            bits.append(mask.value(row));
        }
    }
    Some(NullBuffer::new(bits.finish())).filter(|nulls| nulls.null_count() > 0)
}

fn differs(from: &str) -> Cause {
    format!("a chunk of a column holds something else than the {from} that its type says").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_come_back_when_their_batch_is_gone() {
        let mut pool = BufferPool::default();
        let mut filled = pool.take(BufferPool::MIN_KEPT_BYTES);
        filled.extend_from_slice(&[1u8; BufferPool::MIN_KEPT_BYTES]);
        let batch = pool.lend(filled);
        pool.take_back();
        assert!(pool.free.is_empty(), "it is still in use");
        drop(batch);
        pool.take_back();
        assert!(pool.free.is_empty(), "it was given up when it did not come back");

        let mut filled = pool.take(BufferPool::MIN_KEPT_BYTES);
        filled.extend_from_slice(&[2u8; BufferPool::MIN_KEPT_BYTES]);
        let batch = pool.lend(filled);
        let kept = batch.as_ptr();
        drop(batch);
        pool.take_back();
        let again = pool.take(BufferPool::MIN_KEPT_BYTES);
        assert_eq!((again.as_ptr(), again.len()), (kept, 0));
        // Small ones are the allocator's business.
        let small = pool.lend(MutableBuffer::from_len_zeroed(8));
        drop(small);
        assert!(pool.lent.is_empty());
    }
}
