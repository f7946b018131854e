//! Rows read as record batches: runs of them are found in their row groups, lists followed, values unpacked.

use super::blocks::Blocks;
use super::layout::Column;
use super::pieces::PieceLeaves;
use super::scratch::{Lists, OUTSIDE, Run, Scratch};
use super::segment::Width;
use super::tree::Node;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer};
use arrow_schema::{DataType, SchemaRef};
use std::ops::Range;
use std::sync::Arc;
use wellread_store::FormatContext;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{EachBatch, OTHER_TYPE, Stop, append, arrays, each_part, take_back, trim};
use wellread_store::table::Rows;

/// Bytes of values that are read at once, at most; more is left to DuckDB, which minds its memory.
const MOST_BYTES: usize = 1 << 31;

/// Columns that can all be read here.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(super) blocks: Arc<Blocks>,
    pub(super) schema: SchemaRef,
    /// The columns.
    pub(super) tree: Vec<Node>,
    /// Which of their values are null.
    pub(super) valid: Vec<Option<BooleanBuffer>>,
    pub(super) leaves: Vec<Column>,
    /// How they are read row by row, where they are pieces of images.
    pub(super) pieces: Option<PieceLeaves>,
    /// The first row of each row group, and the number of rows.
    pub(super) starts: Vec<usize>,
    /// Rows that make a batch.
    pub(super) batch_rows: usize,
}

impl Direct {
    /// Reads rows, handing on batches of them in order.
    pub fn read(
        &self,
        rows: &Rows<'_>,
        context: &mut FormatContext,
        each: &mut EachBatch<'_>,
    ) -> Result<(), Stop> {
        let make = |scratch: &mut Scratch, part: Range<usize>| {
            self.runs(&rows.part(part), &mut scratch.rows)?;
            let runs = std::mem::take(&mut scratch.rows);
            let made = self.batch(&runs, scratch);
            scratch.rows = runs;
            made
        };
        self.with_scratch(context, |scratch| {
            each_part(rows.len(), self.batch_rows, scratch, make, |scratch, (batch, values)| {
                each(batch)?;
                let rooms = scratch.values.iter_mut();
                rooms.zip(values).for_each(|(room, lent)| take_back(room, lent));
                Ok(())
            })
        })
    }

    /// Does something with the memory that `context` keeps for it.
    pub(super) fn with_scratch<T>(
        &self,
        context: &mut FormatContext,
        work: impl FnOnce(&mut Scratch) -> T,
    ) -> T {
        let scratch = context.get::<Scratch>();
        scratch.values.resize_with(scratch.values.len().max(self.leaves.len()), MutableBuffer::default);
        let result = work(scratch);
        for buffer in scratch.values.iter_mut().chain([&mut scratch.ends]) {
            trim(buffer.capacity(), buffer);
        }
        result
    }

    /// Where rows lie.
    pub(super) fn runs(&self, rows: &Rows<'_>, runs: &mut Vec<Run>) -> Result<(), Fault> {
        runs.clear();
        // The row group of the row before, and its rows: rows ascend.
        let (mut row_group, mut inside) = (0, 0..0);
        for row in (0..rows.len()).map(|i| rows.at(i)) {
            if !inside.contains(&row) {
                row_group = self.starts.partition_point(|start| *start <= row).wrapping_sub(1);
                let bounds = self.starts.get(row_group..).and_then(<[_]>::first_chunk);
                let [start, end] = bounds.copied().ok_or(OUTSIDE)?;
                inside = start..end;
            }
            let at = row - inside.start;
            append(runs, row_group, at..at + 1);
        }
        Ok(())
    }

    /// A batch of rows, and the values in it, whose memory can be used again when it is gone.
    fn batch(&self, runs: &[Run], scratch: &mut Scratch) -> Result<(RecordBatch, Vec<Buffer>), Fault> {
        let mut values = vec![Buffer::default(); self.leaves.len()];
        let columns = self.tree.iter().zip(&self.valid).zip(self.schema.fields());
        let columns = columns.map(|((node, valid), field)| {
            let array = self.array(node, field.data_type(), runs, scratch, &mut values)?;
            let nulls = valid.as_ref().map(|valid| self.nulls(valid, runs)).transpose()?;
            let data = array.into_data().into_builder().nulls(nulls).build();
            Ok(make_array(data.map_err(|_| Irregular("nulls do not fit their rows"))?))
        });
        let columns = columns.collect::<Result<Vec<_>, Fault>>()?;
        let rows = runs.iter().map(|run| run.values.len()).sum();
        Ok((arrays::batch(&self.schema, columns, rows)?, values))
    }

    /// The array of a node, of the values in `runs`.
    fn array(
        &self,
        node: &Node,
        data_type: &DataType,
        runs: &[Run],
        scratch: &mut Scratch,
        values: &mut [Buffer],
    ) -> Result<ArrayRef, Fault> {
        match (node, data_type) {
            (Node::Leaf { leaf, valid }, _) => {
                let column = &self.leaves[*leaf];
                let mut out = std::mem::take(&mut scratch.values[*leaf]);
                let read = self.values(column, runs, &mut scratch.raw, &mut out);
                values[*leaf] = out.into();
                let length = read?;
                let nulls = valid.as_ref().map(|valid| self.nulls(valid, runs)).transpose()?;
                let buffer = values[*leaf].slice_with_length(0, length * column.width.delivered);
                arrays::numbers(data_type, length, buffer, nulls)
            }
            (Node::Struct(children), DataType::Struct(fields)) => {
                let children = children.iter().zip(fields);
                let children =
                    children.map(|(node, f)| self.array(node, f.data_type(), runs, scratch, values));
                arrays::structure(fields, children.collect::<Result<_, _>>()?)
            }
            (Node::List { ends, has_nulls, element }, DataType::List(field)) => {
                let mut lists = Lists::default();
                self.lists(ends, runs, (&mut scratch.raw, &mut scratch.ends), &mut lists)?;
                let Lists { offsets, inner } = lists;
                let elements = self.array(element, field.data_type(), &inner, scratch, values)?;
                arrays::list(field, offsets, elements, *has_nulls)
            }
            _ => Err(OTHER_TYPE),
        }
    }

    /// Reads the values in `runs` of a column to the start of `out`, which grows to hold them: how many.
    pub(super) fn values(
        &self,
        column: &Column,
        runs: &[Run],
        raw: &mut Vec<u8>,
        out: &mut MutableBuffer,
    ) -> Result<usize, Fault> {
        if runs.iter().any(|run| run.values.end > column.count(run.part)) {
            return Err(OUTSIDE);
        }
        let Width { stored, delivered } = column.width;
        let wanted = runs.iter().map(|run| run.values.len()).sum::<usize>();
        if wanted.checked_mul(stored).is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(Irregular("too many values at once"));
        }
        // Values of an earlier read are written over, not cleared.
        if out.len() < wanted * delivered {
            out.resize(wanted * delivered, 0);
        }
        let mut left = &mut out.as_slice_mut()[..wanted * delivered];
        for run in runs {
            for (segment, inside) in column.pieces(run.part, run.values.clone()) {
                let (now, rest) = left.split_at_mut_checked(inside.len() * delivered).ok_or(OUTSIDE)?;
                segment.read(&self.blocks, inside, column.width, raw, now)?;
                left = rest;
            }
        }
        if left.is_empty() { Ok(wanted) } else { Err(OUTSIDE) }
    }

    /// Where the lists in `runs` begin and end. DuckDB keeps of each list where it ends.
    pub(super) fn lists(
        &self,
        ends: &Column,
        runs: &[Run],
        (raw, room): (&mut Vec<u8>, &mut MutableBuffer),
        out: &mut Lists,
    ) -> Result<(), Fault> {
        let Lists { offsets, inner } = out;
        offsets.clear();
        offsets.push(0);
        inner.clear();
        let mut total = 0usize;
        for &Run { part, ref values } in runs {
            let wanted = Run { part, values: values.start.saturating_sub(1)..values.end };
            let count = self.values(ends, std::slice::from_ref(&wanted), raw, room)?;
            let mut ends = room.typed_data::<u64>()[..count].iter().map(|end| *end as usize);
            let start = if values.start == 0 { 0 } else { ends.next().ok_or(OUTSIDE)? };
            let mut last = start;
            for end in ends {
                total = end
                    .checked_sub(last)
                    .and_then(|n| total.checked_add(n))
                    .ok_or(Irregular("lists out of order"))?;
                offsets.push(i32::try_from(total).map_err(|_| Irregular("too many elements at once"))?);
                last = end;
            }
            append(inner, part, start..last);
        }
        Ok(())
    }

    /// Which of the rows in `runs` are null.
    fn nulls(&self, valid: &BooleanBuffer, runs: &[Run]) -> Result<NullBuffer, Fault> {
        let first = |run: &Run| self.starts.get(run.part).copied().unwrap_or(usize::MAX);
        let rows = runs.iter().flat_map(|run| run.values.clone().map(|at| first(run).saturating_add(at)));
        rows.map(|row| if row < valid.len() { Ok(valid.value(row)) } else { Err(OUTSIDE) }).collect()
    }
}
