//! Columns of a fragment read as record batches, or as pieces of images row by row.
//!
//! ```text
//!  columns ──node──▶ Leaf … Leaf                                        once for a fragment
//!  positions ──fill──▶ each leaf: Output (values, starts of lists) ─┬─batch──▶ RecordBatch
//!                                                                   └─PieceLeaves──▶ pieces of each row
//! ```

use super::ahead::Ahead;
use super::buffers::DecodeBuffers;
use super::input::Input;
use super::page::Page;
use super::pieces::PieceLeaves;
use super::tree::{Leaf, Node, Output, WIDTHS, narrowed, node};
use crate::runtime::catch_panic;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, OffsetSizeTrait, RecordBatch, StructArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use lance_core::datatypes::Field as LanceField;
use lance_encoding::decoder::ColumnInfo;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_store::FormatContext;
use wellread_store::direct::Fault::{self, Irregular};
use wellread_store::direct::{
    EachBatch, OTHER_TYPE, Stop, arrays, each_part, rows_of_a_batch, take_back, trim,
};
use wellread_store::place::WantedRanges;
use wellread_store::table::{Columns, RowPieces};

/// Columns of a fragment that can all be read here.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The columns with lists of 64-bit integers as lists of each of [`WIDTHS`]; the last as they are.
    schemas: [SchemaRef; WIDTHS.len()],
    tree: Vec<Node>,
    leaves: Vec<Leaf>,
    /// For each column, where its rows may be null: a leaf in lists, which have no elements then.
    nulls: Vec<Option<usize>>,
    /// How they are read row by row, where they are pieces of images.
    pieces: Option<PieceLeaves>,
    /// Index of the width that was wide enough for all that was read until now.
    width: AtomicUsize,
    /// Rows that make a batch.
    batch_rows: usize,
    /// Whether reads may wait for a network.
    is_remote: bool,
}

/// Memory of a reader, used again from read to read.
#[derive(Debug, Default)]
struct Scratch {
    reused: DecodeBuffers,
    outputs: Vec<Output>,
}

impl Direct {
    /// The `columns` that `schema` is of, which are `fields` of Lance; `locate` finds a field's file and its pages there.
    /// `None` where one of them is of another kind than is read here.
    pub fn new(
        columns: &Columns,
        schema: &Schema,
        fields: &[LanceField],
        rows: usize,
        locate: &dyn Fn(i32) -> Option<(Arc<Input>, Arc<ColumnInfo>)>,
    ) -> Option<Self> {
        let mut leaves: Vec<Leaf> = vec![];
        let (mut tree, mut nulls) = (vec![], vec![]);
        for (field, lance) in schema.fields().iter().zip(fields) {
            let first = leaves.len();
            tree.push(node(field.data_type(), lance, 0, false, &mut leaves, locate)?);
            let may_be = |leaf: &Leaf| leaf.pages.iter().any(Page::has_nulls);
            let found = leaves[first..].iter().position(may_be).map(|i| first + i);
            // Values outside of lists do not tell a null from a zero.
            if found.is_some() && leaves[first..].iter().any(|leaf| leaf.depth == 0) {
                return None;
            }
            nulls.push(found);
        }
        let mut bytes = 0;
        for leaf in &leaves {
            if leaf.pages.iter().map(|p| p.rows).sum::<usize>() != rows || rows == 0 {
                return None;
            }
            bytes += leaf.pages.iter().map(|p| p.values * leaf.size).sum::<usize>();
        }
        let batch_rows = rows_of_a_batch(bytes, rows);
        let width = if leaves.iter().any(|l| l.narrows) { 0 } else { WIDTHS.len() - 1 };
        let schemas = WIDTHS.map(|width| {
            let narrowed = schema.fields().iter().map(|f| narrowed(f, width, false)).collect::<Vec<_>>();
            Arc::new(Schema::new_with_metadata(narrowed, schema.metadata().clone()))
        });
        let width = AtomicUsize::new(width);
        let pieces = PieceLeaves::new(columns, &tree, &leaves, &schemas);
        let is_remote = leaves.iter().any(|leaf| leaf.input.is_remote());
        let own = Self { schemas, tree, leaves, nulls, pieces, width, batch_rows, is_remote };
        (!own.leaves.is_empty()).then_some(own)
    }

    /// Whether values are compressed into pieces that say how much memory they take.
    pub fn has_prefixes(&self) -> bool {
        self.leaves.iter().flat_map(|leaf| &leaf.pages).any(Page::has_prefixes)
    }

    /// Reads rows at ascending `positions` of the fragment, handing on batches of them in order.
    pub fn read(
        &self,
        positions: &[u32],
        context: &mut FormatContext,
        each: &mut EachBatch<'_>,
    ) -> Result<(), Stop> {
        self.read_with(
            positions,
            context,
            |rows, width, outputs| self.batch(rows, width, outputs),
            |(batch, lent), outputs| {
                each(batch)?;
                let outputs = outputs.iter_mut();
                outputs.zip(lent).for_each(|(output, lent)| take_back(&mut output.values, lent));
                Ok(())
            },
        )
    }

    /// Whether [`Self::read_pieces`] can read these columns.
    pub fn has_pieces(&self) -> bool {
        self.pieces.is_some()
    }

    /// Reads rows at ascending `positions` of the fragment, handing on the pieces of each in order.
    pub fn read_pieces(
        &self,
        positions: &[u32],
        context: &mut FormatContext,
        each: &mut dyn FnMut(&dyn RowPieces) -> wellread_store::Result<()>,
    ) -> Result<(), Stop> {
        let leaves = self.pieces.as_ref().ok_or(Stop::Unknown(0))?;
        self.read_with(
            positions,
            context,
            |rows, width, outputs| leaves.check(rows, width, &self.leaves, outputs).map(|()| (rows, width)),
            |(rows, width), outputs| leaves.each(rows, width, outputs, each),
        )
    }

    /// Reads rows, as many at a time as make a batch. `make` does something with their number, index of a width and what was
    /// read of each leaf, `give` hands that on.
    fn read_with<M>(
        &self,
        positions: &[u32],
        context: &mut FormatContext,
        make: impl Fn(usize, usize, &mut [Output]) -> Result<M, Fault>,
        mut give: impl FnMut(M, &mut [Output]) -> wellread_store::Result<()>,
    ) -> Result<(), Stop> {
        let scratch = context.get::<Scratch>();
        scratch.outputs.resize_with(scratch.outputs.len().max(self.leaves.len()), Output::default);
        let make = |scratch: &mut Scratch, part: Range<usize>| loop {
            let (rows, width) = (&positions[part.clone()], self.width.load(Ordering::Relaxed));
            // Lance's codecs panic on some bytes that are not as they should be.
            let made = catch_panic(|| make(rows.len(), width, self.fill(rows, width, scratch)?));
            match made.unwrap_or(Err(Irregular("a panic"))) {
                Err(Fault::TooNarrow) if width + 1 < WIDTHS.len() => {
                    self.width.fetch_max(width + 1, Ordering::Relaxed);
                }
                made => return made,
            }
        };
        let result = each_part(positions.len(), self.batch_rows, scratch, make, |scratch, made| {
            give(made, &mut scratch.outputs)
        });
        for Output { values, .. } in &mut scratch.outputs {
            trim(values.capacity(), values);
        }
        scratch.reused.trim();
        result
    }

    /// Reads all leaves of some rows.
    fn fill<'a>(
        &self,
        rows: &[u32],
        width: usize,
        scratch: &'a mut Scratch,
    ) -> Result<&'a mut [Output], Fault> {
        if self.is_remote {
            self.load_indices(rows, &mut scratch.reused)?;
            self.plan(rows, &mut scratch.reused);
            scratch.reused.ahead.fetch();
        }
        let outputs = &mut scratch.outputs[..self.leaves.len()];
        for (leaf, output) in self.leaves.iter().zip(outputs.iter_mut()) {
            leaf.read(rows, WIDTHS[width], &mut scratch.reused, output)?;
        }
        Ok(outputs)
    }

    /// Reads what tells where rows lie, of all pages that were not read from yet at once.
    fn load_indices(&self, rows: &[u32], reused: &mut DecodeBuffers) -> Result<(), Fault> {
        reused.ahead.clear();
        for leaf in &self.leaves {
            leaf.plan_indices(rows, &mut reused.ahead);
        }
        if reused.ahead.is_empty() {
            return Ok(());
        }
        reused.ahead.fetch();
        self.leaves.iter().try_for_each(|leaf| leaf.load_indices(rows, reused))
    }

    /// Notes where the chunks of rows lie.
    fn plan(&self, rows: &[u32], reused: &mut DecodeBuffers) {
        reused.ahead.clear();
        for leaf in &self.leaves {
            leaf.plan(rows, &mut reused.ahead);
        }
    }

    /// Adds what has to be read before [`Self::ranges`] can tell where rows at ascending `positions` lie.
    pub fn heads(&self, positions: &[u32], wanted: &mut WantedRanges) {
        let mut ahead = Ahead::default();
        for leaf in &self.leaves {
            leaf.plan_indices(positions, &mut ahead);
        }
        ahead.want(wanted);
    }

    /// Calls `each(file, position, length)` for all that tells where rows lie, of pages that were not read from yet.
    pub fn each_index(&self, each: &mut dyn FnMut(&Path, u64, u64)) {
        for leaf in &self.leaves {
            for page in &leaf.pages {
                for (offset, length) in page.index_extents() {
                    each(leaf.input.path(), offset, length);
                }
            }
        }
    }

    /// Adds where the chunks of rows at ascending `positions` lie. The index of those places is read, if it was not
    /// yet. Where that fails nothing is added: the reader of the rows gives the error.
    pub fn ranges(&self, positions: &[u32], wanted: &mut WantedRanges) {
        let mut reused = DecodeBuffers::default();
        // Lance's codecs panic on some bytes that are not as they should be.
        let loaded = catch_panic(|| self.load_indices(positions, &mut reused));
        if matches!(loaded, Some(Ok(()))) {
            self.plan(positions, &mut reused);
            reused.ahead.want(wanted);
        }
    }

    /// A batch of rows, and the buffers in it, which can be used again when it is gone.
    fn batch(
        &self,
        rows: usize,
        width: usize,
        outputs: &mut [Output],
    ) -> Result<(RecordBatch, Vec<Buffer>), Fault> {
        let values: Vec<Buffer> = outputs.iter_mut().map(|o| std::mem::take(&mut o.values).into()).collect();
        let schema = &self.schemas[width];
        let columns = self.tree.iter().zip(schema.fields()).zip(&self.nulls);
        let columns = columns.map(|((node, field), nulls)| {
            let array = self.array(node, field.data_type(), 0, &values, outputs)?;
            let Some(leaf) = *nulls else { return Ok(array) };
            let size = if self.leaves[leaf].narrows { WIDTHS[width] } else { self.leaves[leaf].size };
            self.with_nulls(&array, leaf, values[leaf].len() / size, outputs)
        });
        let columns = columns.collect::<Result<Vec<_>, Fault>>()?;
        Ok((arrays::batch(schema, columns, rows)?, values))
    }

    /// The column with its null rows, which are those without elements in `leaf`, a leaf of `count` values.
    fn with_nulls(
        &self,
        column: &ArrayRef,
        leaf: usize,
        count: usize,
        outputs: &[Output],
    ) -> Result<ArrayRef, Fault> {
        let column = column.as_struct_opt().ok_or(Irregular("nulls outside of a struct"))?;
        let (starts, depth) = (&outputs[leaf].starts.0, self.leaves[leaf].depth);
        let rows = &starts[depth - 1];
        // The outermost lists are of those one further in, or of values.
        let end = match depth {
            1 => count as i64,
            _ => starts[depth - 2].len() as i64,
        };
        let ends = rows.iter().skip(1).copied().chain([end]);
        let there: NullBuffer =
            rows.iter().zip(ends).map(|(&start, end)| start < end).collect::<Vec<_>>().into();
        let (fields, children, _) = column.clone().into_parts();
        let array = StructArray::try_new(fields, children, Some(there));
        Ok(Arc::new(array.map_err(|_| Irregular("nulls do not fit their rows"))?))
    }

    /// The array of a node inside of `around` lists.
    fn array(
        &self,
        node: &Node,
        data_type: &DataType,
        around: usize,
        values: &[Buffer],
        outputs: &[Output],
    ) -> Result<ArrayRef, Fault> {
        match (node, data_type) {
            (Node::Leaf(i), _) => {
                let size = data_type.primitive_width().ok_or(Irregular("no primitive type"))?;
                arrays::numbers(data_type, values[*i].len() / size, values[*i].clone(), None)
            }
            (Node::Struct(children), DataType::Struct(fields)) => {
                let children = children.iter().zip(fields);
                let children =
                    children.map(|(node, f)| self.array(node, f.data_type(), around, values, outputs));
                arrays::structure(fields, children.collect::<Result<_, _>>()?)
            }
            (Node::List { element, leaves }, DataType::List(field) | DataType::LargeList(field)) => {
                let starts_of = |i: usize| &outputs[i].starts.0[self.leaves[i].depth - 1 - around];
                let starts = starts_of(leaves.start);
                if leaves.clone().any(|i| starts_of(i) != starts) {
                    return Err(Irregular("lists of different lengths"));
                }
                let element = self.array(element, field.data_type(), around + 1, values, outputs)?;
                match data_type {
                    DataType::List(_) => list::<i32>(field, starts, element),
                    _ => list::<i64>(field, starts, element),
                }
            }
            _ => Err(OTHER_TYPE),
        }
    }
}

fn list<O: OffsetSizeTrait>(field: &FieldRef, starts: &[i64], element: ArrayRef) -> Result<ArrayRef, Fault> {
    let offsets = starts.iter().copied().chain([element.len() as i64]);
    let offsets: Option<Vec<O>> = offsets.map(|o| O::from_usize(usize::try_from(o).ok()?)).collect();
    let offsets = offsets.ok_or(Irregular("lists too long for their type"))?;
    arrays::list(field, offsets, element, false)
}
