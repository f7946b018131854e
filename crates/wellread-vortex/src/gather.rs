//! Arrow arrays of chosen rows from pieces of columns: lists' bounds are added up, values decompressed straight
//! into the new array.

use crate::piece::{Leaf, Piece, joined};
use crate::session::Cause;
use arrow_array::{ArrayRef as ArrowArray, ListArray, StructArray, new_empty_array};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use std::ops::Range;
use std::sync::Arc;
use vortex::array::arrays::{ChunkedArray, PrimitiveArray};
use vortex::array::validity::Validity;
use vortex::array::{ArrayRef, ExecutionCtx, IntoArray};
use vortex::arrow::ArrowSessionExt;
use vortex::buffer::{Alignment, ByteBufferMut};
use vortex::dtype::FieldNames;
use vortex::mask::Mask;
use vortex::session::VortexSession;

/// Bytes of values above which memory is asked for before the library takes it, which ends the process where it is
/// refused.
const MUCH: usize = 64 << 20;

/// Which fields are wanted below a column.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    all: bool,
    fields: Vec<(String, Wanted)>,
}

/// Everything below a column.
pub(crate) static ALL: Wanted = Wanted { all: true, fields: vec![] };

impl Wanted {
    /// What lies at or below any of the paths.
    pub fn of(paths: &[Vec<String>]) -> Self {
        let mut root = Self::default();
        for path in paths {
            let mut at = &mut root;
            for name in path {
                let i = at.fields.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
                    at.fields.push((name.clone(), Self::default()));
                    at.fields.len() - 1
                });
                at = &mut at.fields[i].1;
            }
            at.all = true;
        }
        root
    }

    /// What is wanted of a field.
    pub fn field(&self, name: &str) -> Option<&Self> {
        if self.all {
            return Some(&ALL);
        }
        self.fields.iter().find(|(n, _)| n == name).map(|(_, wanted)| wanted)
    }
}

/// Some rows of a piece.
pub(crate) struct Part<'a> {
    pub piece: &'a Piece,
    pub rows: Range<usize>,
}

/// Bytes that rows of a piece become, which are fetched from memory meanwhile.
pub(crate) fn weight(piece: &Piece, rows: &Range<usize>, wanted: &Wanted) -> usize {
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
        Piece::Leaf(leaf) => {
            leaf.prefetch(rows);
            rows.len().saturating_mul(leaf.width)
        }
    }
}

/// Gathers rows into Arrow arrays.
pub(crate) struct Gather<'a> {
    pub session: &'a VortexSession,
    pub ctx: ExecutionCtx,
}

impl Gather<'_> {
    /// The rows of all parts, one after the other, as an array of the type of `field` without the fields that are not
    /// wanted.
    pub fn array(&mut self, parts: &[Part<'_>], field: &Field, wanted: &Wanted) -> Result<ArrowArray, Cause> {
        match field.data_type() {
            DataType::List(element) => self.list(parts, element, wanted),
            DataType::Struct(_) => self.structure(parts, field, wanted),
            _ => self.leaf(parts, field),
        }
    }

    fn list(&mut self, parts: &[Part<'_>], element: &Field, wanted: &Wanted) -> Result<ArrowArray, Cause> {
        let mut offsets = vec![0i32];
        let mut end = 0usize;
        let mut inner = vec![];
        let mut valid = vec![];
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
            let ranges = joined(bounds.iter().map(|&(start, stop)| start..stop));
            inner.extend(ranges.into_iter().map(|rows| Part { piece: elements, rows }));
            valid.push((validity, part.rows.clone()));
        }
        let values = self.array(&inner, element, wanted)?;
        let element = Field::new(element.name(), values.data_type().clone(), element.is_nullable());
        // SAFETY: they start at 0 and were only ever added to.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
        Ok(Arc::new(ListArray::try_new(Arc::new(element), offsets, values, nulls(&valid))?))
    }

    fn structure(&mut self, parts: &[Part<'_>], field: &Field, wanted: &Wanted) -> Result<ArrowArray, Cause> {
        let DataType::Struct(children) = field.data_type() else { return Err(differs("struct")) };
        let mut valid = Vec::with_capacity(parts.len());
        let mut opened = Vec::with_capacity(parts.len());
        for part in parts {
            let Piece::Struct { validity, names, fields } = part.piece else { return Err(differs("struct")) };
            valid.push((validity, part.rows.clone()));
            opened.push((names, fields));
        }
        let mut arrays = vec![];
        for child in children {
            let Some(wanted) = wanted.field(child.name()) else { continue };
            let mut inner = Vec::with_capacity(parts.len());
            // Where the field is in the part before, whose names are the same but in strange files.
            let mut at: Option<(&FieldNames, usize)> = None;
            for (part, (names, fields)) in parts.iter().zip(&opened) {
                let index = match at {
                    Some((before, index)) if before == *names => index,
                    _ => names
                        .iter()
                        .position(|n| n.as_ref() == child.name())
                        .ok_or_else(|| differs("struct"))?,
                };
                at = Some((names, index));
                let piece = fields.get(index).ok_or_else(|| differs("struct"))?;
                inner.push(Part { piece, rows: part.rows.clone() });
            }
            arrays.push((Arc::clone(child), self.array(&inner, child, wanted)?));
        }
        let len = parts.iter().map(|p| p.rows.len()).sum();
        structure(arrays, nulls(&valid), len)
    }

    fn leaf(&mut self, parts: &[Part<'_>], field: &Field) -> Result<ArrowArray, Cause> {
        let mut leaves = Vec::with_capacity(parts.len());
        for part in parts {
            let Piece::Leaf(leaf) = part.piece else { return Err(differs("plain value")) };
            leaf.count_read(part.rows.len());
            leaves.push((leaf, &part.rows));
        }
        let Some((first, rows)) = leaves.first() else { return Ok(new_empty_array(field.data_type())) };
        let bytes = leaves.iter().map(|(leaf, rows)| rows.len().saturating_mul(leaf.width)).sum::<usize>();
        if bytes > MUCH && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            return Err(format!("not enough memory for {bytes} bytes").into());
        }
        let array = if leaves.len() == 1 {
            first.values.slice((*rows).clone())?
        } else if let Some(array) = copied(&leaves, bytes) {
            array
        } else {
            let slices = leaves.iter().map(|(leaf, rows)| leaf.values.slice((*rows).clone()));
            let slices = slices.collect::<Result<Vec<_>, _>>()?;
            ChunkedArray::try_new(slices, first.values.dtype().clone())?.into_array()
        };
        Ok(self.session.arrow().execute_arrow(array, Some(field), &mut self.ctx)?)
    }
}

/// A struct array of named arrays.
pub(crate) fn structure(
    arrays: Vec<(Arc<Field>, ArrowArray)>,
    nulls: Option<NullBuffer>,
    len: usize,
) -> Result<ArrowArray, Cause> {
    let named = arrays.into_iter().map(|(f, array)| {
        (Arc::new(Field::new(f.name(), array.data_type().clone(), f.is_nullable())), array)
    });
    let (fields, arrays): (Vec<_>, Vec<_>) = named.unzip();
    Ok(Arc::new(StructArray::try_new_with_length(fields.into(), arrays, nulls, len)?))
}

/// The values of all ranges copied together, where they lie there as plain numbers without nulls.
fn copied(leaves: &[(&Leaf, &Range<usize>)], bytes: usize) -> Option<ArrayRef> {
    let (first, _) = leaves.first()?;
    let (ptype, _) = first.plain.as_ref()?;
    let mut out = ByteBufferMut::with_capacity_aligned(bytes, Alignment::new(first.width));
    for (leaf, rows) in leaves {
        let (_, values) = leaf.plain.as_ref().filter(|(own, _)| own == ptype)?;
        out.extend_from_slice(values.get(rows.start * first.width..rows.end * first.width)?);
    }
    let validity = Validity::from(first.values.dtype().nullability());
    Some(PrimitiveArray::from_byte_buffer(out.freeze(), *ptype, validity).into_array())
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
