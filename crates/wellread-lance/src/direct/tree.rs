//! How leaves, columns of numbers, make up the columns that are asked for, and reading the values and lists of a leaf.
//!
//! ```text
//!  type of a column, field of Lance ──node──▶ Node over Leaf…        once
//!  rows ──Leaf::read──▶ its pages ──▶ Output: values, starts of lists     each read
//! ```

use super::ahead::Ahead;
use super::buffers::{DecodeBuffers, LeafWidths};
use super::input::Input;
use super::levels::Starts;
use super::page::Page;
use arrow_buffer::MutableBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use lance_core::datatypes::Field as LanceField;
use lance_encoding::decoder::ColumnInfo;
use std::ops::Range;
use std::sync::Arc;
use wellread_store::direct::Fault::{self, Irregular};

/// Bytes that the values in lists of 64-bit integers are delivered in. Pixels are 64-bit integers where the type was
/// inferred. Packed to as few bits as they have, they are delivered in as few bytes. This saves writing eight times
/// as many only to narrow them again.
pub(super) const WIDTHS: [usize; 3] = [1, 2, 8];

/// A column of numbers.
#[derive(Debug)]
pub(super) struct Leaf {
    pub input: Arc<Input>,
    pub pages: Vec<Page>,
    /// First row of each page.
    pub starts: Vec<usize>,
    /// Bytes of a value as it is stored.
    pub size: usize,
    /// Lists around it.
    pub depth: usize,
    /// Whether it is delivered in one of [`WIDTHS`].
    pub narrows: bool,
}

/// How leaves make up columns; types are those of a schema beside it.
#[derive(Debug)]
pub(super) enum Node {
    Leaf(usize),
    Struct(Vec<Node>),
    List { element: Box<Node>, leaves: Range<usize> },
}

/// The values that were read of a leaf.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub values: MutableBuffer,
    pub starts: Starts,
}

/// The field with its lists of 64-bit integers as lists of integers of `width` bytes.
pub(super) fn narrowed(field: &FieldRef, width: usize, in_list: bool) -> FieldRef {
    let data_type = match (field.data_type(), width) {
        (DataType::Struct(fields), _) => {
            DataType::Struct(fields.iter().map(|f| narrowed(f, width, false)).collect())
        }
        (DataType::List(element), _) => DataType::List(narrowed(element, width, true)),
        (DataType::LargeList(element), _) => DataType::LargeList(narrowed(element, width, true)),
        (DataType::Int64 | DataType::UInt64, 1) if in_list => DataType::UInt8,
        (DataType::Int64 | DataType::UInt64, 2) if in_list => DataType::UInt16,
        (other, _) => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// The node of a column, or of a part of one inside of `depth` lists; its leaves are added to `leaves`. `None` where it is of
/// another kind than is read here.
pub(super) fn node(
    data_type: &DataType,
    lance: &LanceField,
    depth: usize,
    in_list: bool,
    leaves: &mut Vec<Leaf>,
    locate: &dyn Fn(i32) -> Option<(Arc<Input>, Arc<ColumnInfo>)>,
) -> Option<Node> {
    match data_type {
        DataType::Struct(fields) if fields.len() == lance.children.len() && !fields.is_empty() => {
            let children = fields
                .iter()
                .zip(&lance.children)
                .map(|(field, lance)| node(field.data_type(), lance, depth, false, leaves, locate))
                .collect::<Option<Vec<_>>>()?;
            Some(Node::Struct(children))
        }
        DataType::List(field) | DataType::LargeList(field) => {
            let first = leaves.len();
            let element = node(field.data_type(), lance.children.first()?, depth + 1, true, leaves, locate)?;
            Some(Node::List { element: Box::new(element), leaves: first..leaves.len() })
        }
        DataType::Boolean | DataType::Null => None,
        primitive => {
            let size = primitive.primitive_width().filter(|s| s.is_power_of_two() && *s <= 8)?;
            let (input, column) = locate(lance.id)?;
            let pages = column.page_infos.iter().map(|info| Page::new(info, size, depth));
            let pages = pages.collect::<Option<Vec<_>>>()?;
            let starts = pages.iter().scan(0, |row, page| Some(std::mem::replace(row, *row + page.rows)));
            let starts = starts.collect();
            let narrows = in_list && matches!(primitive, DataType::Int64 | DataType::UInt64);
            leaves.push(Leaf { input, pages, starts, size, depth, narrows });
            Some(Node::Leaf(leaves.len() - 1))
        }
    }
}

impl Leaf {
    /// Reads rows; lists of 64-bit integers in `width` bytes.
    pub fn read(
        &self,
        positions: &[u32],
        width: usize,
        reused: &mut DecodeBuffers,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let width = if self.narrows { width } else { self.size };
        let widths = LeafWidths { size: self.size, width, depth: self.depth };
        out.values.clear();
        out.starts.reset(self.depth);
        self.each_part(positions, |page, rows| {
            page.read(&self.input, &rows, widths, reused, &mut out.values, &mut out.starts)
        })
    }

    /// Notes what tells where rows lie, of pages that were not read from yet, where that may take a request each.
    pub fn plan_indices(&self, positions: &[u32], ahead: &mut Ahead) {
        if !self.input.is_remote() {
            return;
        }
        let mut last = None;
        let _ = self.each_part(positions, |page, _| {
            if last.replace(std::ptr::from_ref(page)) != Some(std::ptr::from_ref(page)) {
                for extent in page.index_extents() {
                    ahead.plan(&self.input, extent);
                }
            }
            Ok(())
        });
    }

    /// Reads what [`Self::plan_indices`] notes.
    pub fn load_indices(&self, positions: &[u32], reused: &mut DecodeBuffers) -> Result<(), Fault> {
        self.each_part(positions, |page, _| page.load_index(&self.input, self.size, self.depth, reused))
    }

    /// Notes where rows lie that will be read, where that may take a request each.
    pub fn plan(&self, positions: &[u32], ahead: &mut Ahead) {
        if !self.input.is_remote() {
            return;
        }
        // The error of a row is given when it is read.
        let _ = self.each_part(positions, |page, rows| {
            if let Some(extent) = page.extent(&rows) {
                ahead.plan(&self.input, extent);
            }
            Ok(())
        });
    }

    /// Hands on the pages that hold rows, and which rows of each.
    fn each_part(
        &self,
        positions: &[u32],
        mut each: impl FnMut(&Page, Range<usize>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
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
                each(page, part)?;
                rows.start = end;
            }
        }
        Ok(())
    }
}
