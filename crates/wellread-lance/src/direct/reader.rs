//! Columns of a fragment read as record batches, or as pieces of images row by row.

use super::fault::Fault::{self, Irregular};
use super::fault::Stop;
use super::input::Input;
use super::page::{Page, Room};
use super::pieces::PieceLeaves;
use super::tree::{Leaf, Node, Output, WIDTHS, narrowed, node};
use crate::runtime::quietly;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch, StructArray, make_array};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use lance_core::datatypes::Field as LanceField;
use lance_encoding::decoder::ColumnInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wellread_store::FormatContext;
use wellread_store::table::{Columns, RowPieces};

/// Bytes of values that make a batch: few enough to stay in a core's own cache until they are used.
const BATCH_BYTES: usize = 512 << 10;
/// Bytes of a buffer that a reader keeps for its next read, at most.
const KEPT_BYTES: usize = 8 << 20;

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
    batch_rows: u32,
}

/// Memory of a reader, used again from read to read.
#[derive(Debug, Default)]
struct Scratch {
    room: Room,
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
        let batch_rows = (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, 1 << 16) as u32;
        let width = if leaves.iter().any(|l| l.narrows) { 0 } else { WIDTHS.len() - 1 };
        let schemas = WIDTHS.map(|width| {
            let narrowed = schema.fields().iter().map(|f| narrowed(f, width, false)).collect::<Vec<_>>();
            Arc::new(Schema::new_with_metadata(narrowed, schema.metadata().clone()))
        });
        let width = AtomicUsize::new(width);
        let pieces = PieceLeaves::new(columns, &tree, &leaves, &schemas);
        (!leaves.is_empty()).then_some(Self { schemas, tree, leaves, nulls, pieces, width, batch_rows })
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
        each: &mut dyn FnMut(RecordBatch) -> wellread_store::Result<()>,
    ) -> Result<(), Stop> {
        self.read_with(
            positions,
            context,
            |rows, width, outputs| self.batch(rows, width, outputs),
            |(batch, lent), outputs| {
                each(batch)?;
                for (output, buffer) in outputs.iter_mut().zip(lent) {
                    output.values = buffer.into_mutable().unwrap_or_default();
                }
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

    /// Reads rows, as many at a time as make a batch: `make` does something with their number, index of a width and what was
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
        let mut done = 0;
        let result = positions.chunks(self.batch_rows as usize).try_for_each(|rows| {
            let made = loop {
                let width = self.width.load(Ordering::Relaxed);
                // Lance's codecs panic on some bytes that are not as they should be.
                let made = quietly(|| make(rows.len(), width, self.fill(rows, width, scratch)?));
                match made.unwrap_or(Err(Irregular("a panic"))) {
                    Ok(made) => break made,
                    Err(Fault::TooNarrow) if width + 1 < WIDTHS.len() => {
                        self.width.fetch_max(width + 1, Ordering::Relaxed);
                    }
                    Err(Fault::TooNarrow) => return Err(Stop::Irregular(done, "values too large")),
                    Err(Fault::Unknown) => return Err(Stop::Unknown(done)),
                    Err(Irregular(why)) => return Err(Stop::Irregular(done, why)),
                }
            };
            done += rows.len();
            give(made, &mut scratch.outputs).map_err(Stop::Refused)
        });
        scratch.outputs.retain(|o| o.values.capacity() <= KEPT_BYTES);
        scratch.room.trim(KEPT_BYTES);
        result
    }

    /// Reads all leaves of some rows.
    fn fill<'a>(
        &self,
        rows: &[u32],
        width: usize,
        scratch: &'a mut Scratch,
    ) -> Result<&'a mut [Output], Fault> {
        let outputs = &mut scratch.outputs[..self.leaves.len()];
        for (leaf, output) in self.leaves.iter().zip(outputs.iter_mut()) {
            leaf.read(rows, WIDTHS[width], &mut scratch.room, output)?;
        }
        Ok(outputs)
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
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        if columns.iter().any(|c| c.len() != rows) {
            return Err(Irregular("columns of another length"));
        }
        let batch = RecordBatch::try_new(Arc::clone(schema), columns);
        Ok((batch.map_err(|_| Irregular("columns do not fit"))?, values))
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
                let data = ArrayData::builder(data_type.clone())
                    .len(values[*i].len() / size)
                    .add_buffer(values[*i].clone());
                Ok(make_array(data.build().map_err(|_| Irregular("values do not fit their type"))?))
            }
            (Node::Struct(children), DataType::Struct(fields)) => {
                let children = children.iter().zip(fields);
                let children =
                    children.map(|(node, f)| self.array(node, f.data_type(), around, values, outputs));
                let children = children.collect::<Result<Vec<_>, _>>()?;
                let array = StructArray::try_new(fields.clone(), children, None);
                Ok(Arc::new(array.map_err(|_| Irregular("fields of different lengths"))?))
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
            _ => Err(Irregular("another type than was planned for")),
        }
    }
}

fn list<O: OffsetSizeTrait>(field: &FieldRef, starts: &[i64], element: ArrayRef) -> Result<ArrayRef, Fault> {
    let offsets = starts.iter().copied().chain([element.len() as i64]);
    let offsets: Option<Vec<O>> = offsets.map(|o| O::from_usize(usize::try_from(o).ok()?)).collect();
    let offsets = offsets.ok_or(Irregular("lists too long for their type"))?;
    if offsets.windows(2).any(|w| w[0] > w[1]) {
        return Err(Irregular("lists out of order"));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let array = GenericListArray::try_new(Arc::clone(field), offsets, element, None);
    Ok(Arc::new(array.map_err(|_| Irregular("lists do not fit their elements"))?))
}
