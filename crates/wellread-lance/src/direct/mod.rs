//! Pages read here instead of by Lance: numbers in structs and lists, without nulls.
//!
//! ```text
//!  rows of a fragment ──Page──▶ values and starts of lists, leaf by leaf ──Tree──▶ record batch
//! ```
//!
//! Lance's metadata says where pages are and how they are encoded, and its codecs are used for what is rare; what is
//! read here is the bytes of chunks, with their levels as runs ([`levels`]) and their values unpacked to where they
//! belong ([`values`]). A page of another kind is left to Lance ([`Direct::new`] gives `None`), and so are rows whose
//! bytes are not as they should be ([`Stop::Irregular`]): what is wrong with them, Lance says.

mod input;
mod levels;
mod page;
mod values;

pub(crate) use input::Input;

use arrow_array::{ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch, StructArray, make_array};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Fields, SchemaRef};
use lance::datatypes::Field as LanceField;
use lance_encoding::decoder::{ColumnInfo, PageEncoding};
use lance_encoding::format::metadata::page_layout::Layout;
use levels::Starts;
use page::{Page, Room};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use wellread_store::Error;

/// Bytes of values that make a batch: few enough to stay in a core's own cache until they are used.
const BATCH_BYTES: usize = 512 << 10;

/// Bytes that are not as they should be, in a few words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Irregular(pub &'static str);

/// Why reading ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The bytes are not as they should be, from this number of rows on.
    Irregular(usize, &'static str),
    /// Whoever takes the batches said so.
    Refused(Error),
}

/// Columns of a fragment that can all be read here.
#[derive(Debug)]
pub(crate) struct Direct {
    schema: SchemaRef,
    tree: Vec<Node>,
    leaves: Vec<Leaf>,
    /// Rows that make a batch.
    batch_rows: u32,
}

/// A column of numbers.
#[derive(Debug)]
struct Leaf {
    input: Arc<Input>,
    pages: Vec<Page>,
    /// First row of each page.
    starts: Vec<usize>,
    data_type: DataType,
    /// Bytes of a value.
    size: usize,
    /// Lists around it.
    depth: usize,
}

/// How leaves make up columns.
#[derive(Debug)]
enum Node {
    Leaf(usize),
    Struct(Fields, Vec<Node>),
    List { field: FieldRef, large: bool, element: Box<Node>, leaves: Range<usize> },
}

/// What was read of a leaf.
#[derive(Debug, Default)]
struct Output {
    values: MutableBuffer,
    starts: Starts,
}

/// Memory of a thread, used again from read to read.
#[derive(Debug, Default)]
struct Scratch {
    room: Room,
    outputs: Vec<Output>,
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Direct {
    /// The columns of `schema`, which are `fields` of Lance; `locate` finds a field's file and its pages there.
    /// `None` where one of them is of another kind than is read here.
    pub fn new(
        schema: SchemaRef,
        fields: &[LanceField],
        rows: usize,
        locate: &dyn Fn(i32) -> Option<(Arc<Input>, Arc<ColumnInfo>)>,
    ) -> Option<Self> {
        let mut leaves = vec![];
        let tree = schema
            .fields()
            .iter()
            .zip(fields)
            .map(|(field, lance)| node(field.data_type(), lance, 0, &mut leaves, locate))
            .collect::<Option<Vec<_>>>()?;
        let mut bytes = 0;
        for leaf in &leaves {
            if leaf.pages.iter().map(|p| p.rows).sum::<usize>() != rows || rows == 0 {
                return None;
            }
            bytes += leaf.pages.iter().map(|p| p.values * leaf.size).sum::<usize>();
        }
        let batch_rows = (BATCH_BYTES / (bytes / rows).max(1)).clamp(1, 1 << 16) as u32;
        (!leaves.is_empty()).then_some(Self { schema, tree, leaves, batch_rows })
    }

    /// Reads rows at ascending `positions` of the fragment, handing on batches of them in order.
    pub fn read(
        &self,
        positions: &[u32],
        each: &mut dyn FnMut(RecordBatch) -> wellread_store::Result<()>,
    ) -> Result<(), Stop> {
        // Taken, not borrowed: whoever takes the batches may read again.
        let mut scratch = SCRATCH.take().unwrap_or_default();
        scratch.outputs.resize_with(scratch.outputs.len().max(self.leaves.len()), Output::default);
        let result = self.read_with(positions, &mut scratch, each);
        SCRATCH.set(Some(scratch));
        result
    }

    fn read_with(
        &self,
        positions: &[u32],
        scratch: &mut Scratch,
        each: &mut dyn FnMut(RecordBatch) -> wellread_store::Result<()>,
    ) -> Result<(), Stop> {
        let mut done = 0;
        for rows in positions.chunks(self.batch_rows as usize) {
            let irregular = |Irregular(why)| Stop::Irregular(done, why);
            let outputs = &mut scratch.outputs[..self.leaves.len()];
            for (leaf, output) in self.leaves.iter().zip(outputs.iter_mut()) {
                leaf.read(rows, &mut scratch.room, output).map_err(irregular)?;
            }
            // Buffers go out with the batch and come back when it is gone.
            let lent: Vec<Buffer> = outputs.iter_mut().map(|o| std::mem::take(&mut o.values).into()).collect();
            let batch = self.batch(rows.len(), &lent, outputs).map_err(irregular)?;
            each(batch).map_err(Stop::Refused)?;
            for (output, buffer) in outputs.iter_mut().zip(lent) {
                output.values = buffer.into_mutable().unwrap_or_default();
            }
            done += rows.len();
        }
        Ok(())
    }

    fn batch(&self, rows: usize, values: &[Buffer], outputs: &[Output]) -> Result<RecordBatch, Irregular> {
        let columns = self.tree.iter().map(|node| self.array(node, 0, values, outputs));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        if columns.iter().any(|c| c.len() != rows) {
            return Err(Irregular("columns of another length"));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|_| Irregular("columns do not fit"))
    }

    /// The array of a node inside of `around` lists.
    fn array(
        &self,
        node: &Node,
        around: usize,
        values: &[Buffer],
        outputs: &[Output],
    ) -> Result<ArrayRef, Irregular> {
        match node {
            Node::Leaf(i) => {
                let leaf = &self.leaves[*i];
                let data = ArrayData::builder(leaf.data_type.clone())
                    .len(values[*i].len() / leaf.size)
                    .add_buffer(values[*i].clone());
                Ok(make_array(data.build().map_err(|_| Irregular("values do not fit their type"))?))
            }
            Node::Struct(fields, children) => {
                let children = children.iter().map(|child| self.array(child, around, values, outputs));
                let children = children.collect::<Result<Vec<_>, _>>()?;
                let array = StructArray::try_new(fields.clone(), children, None);
                Ok(Arc::new(array.map_err(|_| Irregular("fields of different lengths"))?))
            }
            Node::List { field, large, element, leaves } => {
                let starts_of = |i: usize| &outputs[i].starts.0[self.leaves[i].depth - 1 - around];
                let starts = starts_of(leaves.start);
                if leaves.clone().any(|i| starts_of(i) != starts) {
                    return Err(Irregular("lists of different lengths"));
                }
                let element = self.array(element, around + 1, values, outputs)?;
                if *large { list::<i64>(field, starts, element) } else { list::<i32>(field, starts, element) }
            }
        }
    }
}

fn list<O: OffsetSizeTrait>(field: &FieldRef, starts: &[i64], element: ArrayRef) -> Result<ArrayRef, Irregular> {
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

fn node(
    data_type: &DataType,
    lance: &LanceField,
    depth: usize,
    leaves: &mut Vec<Leaf>,
    locate: &dyn Fn(i32) -> Option<(Arc<Input>, Arc<ColumnInfo>)>,
) -> Option<Node> {
    match data_type {
        DataType::Struct(fields) if fields.len() == lance.children.len() && !fields.is_empty() => {
            let children = fields
                .iter()
                .zip(&lance.children)
                .map(|(field, lance)| node(field.data_type(), lance, depth, leaves, locate))
                .collect::<Option<Vec<_>>>()?;
            Some(Node::Struct(fields.clone(), children))
        }
        DataType::List(field) | DataType::LargeList(field) => {
            let first = leaves.len();
            let element = node(field.data_type(), lance.children.first()?, depth + 1, leaves, locate)?;
            Some(Node::List {
                field: Arc::clone(field),
                large: matches!(data_type, DataType::LargeList(_)),
                element: Box::new(element),
                leaves: first..leaves.len(),
            })
        }
        DataType::Boolean | DataType::Null => None,
        primitive => {
            let size = primitive.primitive_width().filter(|s| s.is_power_of_two() && *s <= 8)?;
            let (input, column) = locate(lance.id)?;
            let pages = column.page_infos.iter().map(|info| Page::new(info, size, depth));
            let pages = pages.collect::<Option<Vec<_>>>()?;
            let starts = pages.iter().scan(0, |row, page| Some(std::mem::replace(row, *row + page.rows)));
            let starts = starts.collect();
            leaves.push(Leaf { input, pages, starts, data_type: primitive.clone(), size, depth });
            Some(Node::Leaf(leaves.len() - 1))
        }
    }
}

impl Leaf {
    fn read(&self, positions: &[u32], room: &mut Room, out: &mut Output) -> Result<(), Irregular> {
        out.values.clear();
        out.starts.reset(self.depth);
        for run in crate::rows::runs(positions, u32::MAX) {
            let mut rows = run.start as usize..run.end as usize;
            while !rows.is_empty() {
                let at = self.starts.partition_point(|&start| start <= rows.start).wrapping_sub(1);
                let page = self.pages.get(at).ok_or(Irregular("rows outside of the file"))?;
                let first = self.starts[at];
                let end = rows.end.min(first + page.rows);
                if end <= rows.start {
                    return Err(Irregular("rows outside of the file"));
                }
                let part = rows.start - first..end - first;
                page.read(&self.input, part, (self.size, self.depth), room, &mut out.values, &mut out.starts)?;
                rows.start = end;
            }
        }
        Ok(())
    }
}

/// How the values of a column are encoded, in a few words; `None` for a column without pages.
pub(crate) fn encoding(column: &ColumnInfo) -> Option<String> {
    let encoding = match &column.page_infos.first()?.encoding {
        PageEncoding::Structural(layout) => match layout.layout.as_ref()? {
            Layout::MiniBlockLayout(chunks) => match (&chunks.dictionary, &chunks.value_compression) {
                (None, Some(encoding)) => values::words(encoding),
                _ => "dictionary".into(),
            },
            Layout::FullZipLayout(zipped) => zipped.value_compression.as_ref().map_or_else(String::new, values::words),
            Layout::ConstantLayout(_) => "constant".into(),
            Layout::BlobLayout(_) => "blobs".into(),
        },
        PageEncoding::Legacy(_) => "file format 2.0".into(),
        PageEncoding::Planar(_) => "file format 2.3".into(),
    };
    Some(encoding)
}
